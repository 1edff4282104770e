// A report as metrics for Prometheus' textfile collector.
#pragma once

#include <string>

#include "reports/report.h"

namespace shmemctl {

/// The text exposition format, in base units: gauges shmemctl_*, since a report is a snapshot. NIC
/// counters are deltas with the labels {device,port} of node_exporter; what is unknown is left out.
std::string write_prometheus(const Report& report);

} // namespace shmemctl
