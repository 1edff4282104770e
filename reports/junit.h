// A report as JUnit XML, which CI systems show as tests.
#pragma once

#include <string>

#include "reports/report.h"

namespace shmemctl {

/// One suite each for results, checks, the loads of NICs, the rows of a comparison, thresholds, and
/// warnings and errors (with --fail-on info also infos) that the other suites do not cover. A test
/// fails if it is a reason for exit code 1. An incomplete report has one more test, which fails.
std::string write_junit(const Report& report);

} // namespace shmemctl
