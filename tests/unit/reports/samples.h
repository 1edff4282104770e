// Reports shared by the tests of this folder.
#pragma once

#include "reports/report.h"

namespace shmemctl {

/// A report with something in every section; follows the schema.
Report sample_report();
/// topology of sample_report(): two GPUs, two HCAs, one Ethernet NIC.
nlohmann::json sample_topology();
nlohmann::json sample_mapping();
nlohmann::json sample_comparison();
/// hotspots of two ports of node7: mlx5_0 is hot, and what eth0 carried is unknown.
nlohmann::json sample_hotspots();
/// sample_report() with what merging, comparing and thresholds add.
Report sample_full_report();

} // namespace shmemctl
