// A report for spreadsheets.
#pragma once

#include <string>

#include "reports/report.h"

namespace shmemctl {

/// RFC 4180 with a header line: a comparison's rows, else the results if there are any, else
/// doctor's checks, else the mapping (a row per PE and NIC), else the findings. Unknown values are
/// empty cells. Throws Error (usage) for results with so many different parameters that the table
/// would not fit in memory.
std::string write_csv(const Report& report);

} // namespace shmemctl
