// What each finding id means: the table behind docs/reference/findings.md and the man pages.
#pragma once

#include <string>
#include <vector>

namespace shmemctl {

/// One id of a report's `findings[]`. The texts are sentences in Markdown.
struct FindingReference {
  std::string id;         ///< "nic-hotspot"
  std::string group;      ///< heading under which the page lists it
  std::string severities; ///< "error, warning": its possible severities, the worst first
  std::string meaning;
  std::string evidence; ///< how it is detected
  std::string fix;
};

/// All ids: those of findings by group, then those of doctor's checks in doctor's order.
const std::vector<FindingReference>& finding_reference();

// The rows by group.

/// Each group is sorted by id.
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
/// All checks, in doctor's order.
std::vector<FindingReference> check_findings();

} // namespace shmemctl
