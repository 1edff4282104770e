// The headline of a page.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "reports/html/sections.h"
#include "reports/report.h"

namespace shmemctl::html {

/// {"level": "pass", "warning" or "fail", "text", "detail", "counts"}: the text names what is wrong
/// first (subject and id of the worst findings, or the first row that failed), the detail is that
/// finding's message or, if all is well, a simulation's verdict, and the counts are of incomplete
/// runs, errors, warnings and failed rows. Detail and counts may be empty.
nlohmann::json headline(const std::vector<Shown>& shown, const Findings& compared);

} // namespace shmemctl::html
