// The rows of finding_reference(), by group. docs/reference/findings.md is generated from them.
#pragma once

#include <vector>

#include "reports/finding_reference.h"

namespace shmemctl {

// Sorted by id within a group.
std::vector<FindingReference> topology_findings();
std::vector<FindingReference> option_findings();
std::vector<FindingReference> transport_findings();
std::vector<FindingReference> bench_findings();
std::vector<FindingReference> moe_findings();
std::vector<FindingReference> nic_counter_findings();
std::vector<FindingReference> log_findings();
std::vector<FindingReference> fabric_findings();
std::vector<FindingReference> process_findings();
std::vector<FindingReference> simulation_findings();
std::vector<FindingReference> gpu_copy_findings();
std::vector<FindingReference> acceptance_findings();
std::vector<FindingReference> report_findings();
/// In doctor's order.
std::vector<FindingReference> check_findings();

} // namespace shmemctl
