// The independent variables of result rows, as columns of a table.
#pragma once

#include <string>
#include <vector>

#include "reports/report.h"

namespace shmemctl {

/// Names of the rows' parameters in order of appearance, size first. At most 16: no case has more,
/// though a made-up document may.
std::vector<std::string> parameter_names(const std::vector<const ResultRow*>& rows);

} // namespace shmemctl
