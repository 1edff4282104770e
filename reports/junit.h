// A report as JUnit XML, which CI systems show as tests.
#pragma once

#include <string>

#include "reports/report.h"

namespace shmemctl {

/// One suite each for results, checks, the rows of a comparison, thresholds, and findings of
/// severity error that the other suites do not cover. A test fails if it makes the report's exit
/// code 1.
std::string write_junit(const Report& report);

} // namespace shmemctl
