// `inspect` started once per node by a launcher: gathers the results of the nodes on PE 0.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reports/report.h"
#include "src/base/archive.h"
#include "src/base/error.h"
#include "src/base/finding.h"
#include "src/instruments/inspect/activity.h"
#include "src/instruments/inspect/inspect.h"
#include "src/runtime/bootstrap/bootstrap.h"

namespace shmemctl::inspect {

/// The results of one node.
struct HostInspection {
  std::string host;
  std::string processes; ///< the report's `processes` as JSON on one line
  Findings findings;     ///< without the findings `rank-awaited`
  std::vector<JobMember> members;
  std::vector<NicCounter> counters;
};
void serialize(Archive& archive, HostInspection& part);

/// @param processes processes_json() of the inspection
HostInspection host_inspection(const Inspection& inspection, const nlohmann::json& processes,
                               const std::string& host, std::vector<NicCounter> counters);

/// The combined results of all nodes.
struct JobInspection {
  nlohmann::json processes; ///< each with its `host`, and the verdicts on the whole job
  Findings findings;        ///< merged if only their subjects differ; subjects name the hosts
  std::vector<NicCounter> counters;
};
/// Combines the results of the hosts and judges the job. Throws Error (unavailable) for a part
/// whose `processes` cannot be parsed.
/// @param whole whether all processes of the nodes were inspected, not only some that were named
JobInspection join_hosts(const std::vector<HostInspection>& hosts, bool whole);

/// Where a PE runs; PEs with the same `machine_id` share a machine.
struct InspectingPe {
  std::uint64_t machine_id = 0;
  std::int64_t pid = 0;
};
/// Collective. Gathers where all PEs run, by PE.
std::vector<InspectingPe> gather_pes(Bootstrap& bootstrap, const InspectingPe& own,
                                     const Deadline& deadline);
/// Whether `pe` is the first PE on its machine and so inspects it; the other PEs only wait.
bool looks(const std::vector<InspectingPe>& pes, int pe);
/// PIDs of the PEs on the machine of `pe`, with its own: these are not inspected.
std::vector<int> pids_beside(const std::vector<InspectingPe>& pes, int pe);
int machine_count(const std::vector<InspectingPe>& pes);

/// Collective. Gathers the results of the PEs that inspect on PE 0; empty elsewhere. A result may
/// be larger than a message of the bootstrap. Throws Error.
/// @param own nullptr if this PE does not inspect
std::vector<HostInspection> gather_inspections(Bootstrap& bootstrap, const HostInspection* own,
                                               const Deadline& deadline);

} // namespace shmemctl::inspect
