// `inspect` started once per node by a launcher: what the nodes found, gathered on PE 0.
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

/// What one node found.
struct HostInspection {
  std::string host;
  std::string processes; ///< the report's `processes` as JSON on one line
  Findings findings;     ///< without findings about processes for which the ranks wait
  std::vector<JobMember> members;
  std::vector<NicCounter> counters;
};
void serialize(Archive& archive, HostInspection& part);

/// @param processes processes_json() of the inspection
HostInspection host_inspection(const Inspection& inspection, const nlohmann::json& processes,
                               const std::string& host, std::vector<NicCounter> counters);

/// What all nodes found together.
struct JobInspection {
  nlohmann::json processes; ///< each with its `host`, and the verdict on the whole job
  Findings findings; ///< equal findings of several hosts are one, whose subject names the hosts
  std::vector<NicCounter> counters;
};
/// @param whole all processes of the nodes were looked at, not only some that were named
/// Throws Error (unavailable) for a part whose `processes` cannot be parsed.
JobInspection join_hosts(const std::vector<HostInspection>& hosts, bool whole);

/// Which PEs share a machine.
struct InspectingPe {
  std::uint64_t machine_id = 0;
  std::int64_t pid = 0;
};
/// Collective: where all PEs run.
std::vector<InspectingPe> gather_pes(Bootstrap& bootstrap, const InspectingPe& own,
                                     const Deadline& deadline);
/// The first PE of its machine inspects it; the others only wait.
bool looks(const std::vector<InspectingPe>& pes, int pe);
/// PIDs of the PEs on this machine, which are not inspected.
std::vector<int> pids_beside(const std::vector<InspectingPe>& pes, int pe);
int machine_count(const std::vector<InspectingPe>& pes);

/// Collective: the parts of those PEs that have one, on PE 0; empty elsewhere. A part may be larger
/// than a message of the bootstrap. Throws Error.
/// @param own null: this PE does not look
std::vector<HostInspection> gather_inspections(Bootstrap& bootstrap, const HostInspection* own,
                                               const Deadline& deadline);

} // namespace shmemctl::inspect
