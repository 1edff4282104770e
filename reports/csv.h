// A report for spreadsheets.
#pragma once

#include <string>

#include "reports/report.h"

namespace shmemctl {

/// RFC 4180 with a header line: a comparison's rows, else the results if there are any, else
/// doctor's checks, else the mapping (a row per PE and NIC), else the findings. What is unknown is
/// an empty cell. Throws Error (usage) for results whose parameters differ so much that the table
/// would not fit memory.
std::string write_csv(const Report& report);

} // namespace shmemctl
