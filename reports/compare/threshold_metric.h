// Numbers of a row by name.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/report.h"

namespace shmemctl {

/// Names to choose from, for messages; of the statistics only those in us.
std::vector<std::string> metric_names();
/// "bandwidth_GBps", "p50_us" (any unit of time or rate), "latency_us" (the median), ...
bool is_metric(const std::string& name);
/// The number of a row; nothing if the row has none, or has it in another unit.
std::optional<double> metric_of(const ResultRow& row, const std::string& name);

} // namespace shmemctl
