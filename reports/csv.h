// A report for spreadsheets.
#pragma once

#include <string>

#include "reports/report.h"

namespace shmemctl {

/// RFC 4180 with a header line; the first of these that the report has: a comparison's rows,
/// results, ports of `hotspots`, checks, mapping (a row per PE and NIC), findings. Unknown values
/// are empty cells. Throws Error (usage) for results with so many different parameters that the
/// table would not fit in memory.
std::string write_csv(const Report& report);

} // namespace shmemctl
