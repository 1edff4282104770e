// A report as metrics for Prometheus' textfile collector.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "reports/report.h"

namespace shmemctl {

using PrometheusLabels = std::vector<std::pair<std::string, std::string>>; ///< name, value

/// Whether a label may have this name: letters, digits and _, no digit first, and no leading __,
/// which Prometheus reserves.
bool is_prometheus_label(const std::string& name);

/// The text exposition format, in base units: gauges shmemctl_*, since a report is a snapshot. NIC
/// counters are deltas with the labels {device,port} of node_exporter; unknown values are omitted.
/// @param labels added to every series; is_prometheus_label() holds for their names
std::string write_prometheus(const Report& report, const PrometheusLabels& labels = {});

} // namespace shmemctl
