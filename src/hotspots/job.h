// What the hosts of a job counted, put together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/hotspots/hotspots.h"

namespace shmemctl {

/// Where a PE runs.
struct PeMachine {
  std::uint64_t machine_id = 0; ///< of the machine, whatever virtual nodes it is split into
  std::string name;
};

/// One machine of a job: its PEs share its NICs.
struct JobHost {
  std::string name; ///< where several machines have the same one: "node7 (PE 8)"
  int leader = 0;   ///< the PE that reads the counters: the first
  std::vector<int> pes;
};
/// In the order of their leaders. @param machines by PE
std::vector<JobHost> job_hosts(const std::vector<PeMachine>& machines);
/// Index in `hosts` by PE.
std::vector<std::size_t> host_of_pes(const std::vector<JobHost>& hosts, std::size_t n_pes);

/// A port that a PE uses: by the mapping, or as its transports say.
struct PortUser {
  std::string host, device;
  int port = 1;
  PeBytes moved;
  bool told = false; ///< `moved` is what transports say
};

/// What one host counted.
struct HostTotals {
  std::string host;
  NodeTotals totals;
  std::size_t left_out = 0; ///< counters that had no room on the way here
};

/// Loads of all hosts with the PEs that use each port, counters beyond their thresholds, counters
/// that tell nothing, and who stands out in their host and rail.
/// @param outliers nullptr: nobody does, as the PEs need not send and receive as much as each other
Hotspots hotspots_of_job(const std::vector<HostTotals>& hosts, const std::vector<PortUser>& users,
                         const NicThresholds& thresholds, const OutlierSettings* outliers);

} // namespace shmemctl
