// From counters to a verdict: loads, groups, threshold violations, findings and the report's
// section; for one host and for a job.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "src/base/finding.h"
#include "src/instruments/hotspots/load.h"
#include "src/instruments/hotspots/thresholds.h"
#include "src/model/topo/mapping/mapping.h"

namespace shmemctl {

/// A counter without a usable value, and the reason.
struct UnavailableCounter {
  std::string host, device, counter, reason;
  int port = 1;
};

/// What the counters of one or more hosts say.
struct Hotspots {
  std::vector<PortLoad> loads;
  std::vector<LoadGroup> groups;
  std::vector<CounterSign> signs; ///< changes beyond the thresholds
  std::vector<UnavailableCounter> unavailable;
};

/// The loads and signs of one host. Groups are not judged yet, and the loads' `pes` are empty.
Hotspots read_hotspots(const NodeTotals& totals, const std::string& host,
                       const NicThresholds& thresholds);
/// Merges another host's verdict; call judge_groups() afterwards.
void join_hotspots(Hotspots& all, Hotspots more);
/// Fills `groups` and marks hot loads.
void judge_groups(Hotspots& hotspots, const OutlierSettings& settings);

/// Fills `pes` of that host's loads from the mapping of its PEs to NICs.
void attribute(Hotspots& hotspots, const std::string& host, const Node& node,
               const Mapping& mapping);

/// nic-hotspot-measured or receive-side-narrow, link-flapping, nic-lossy, nic-congested,
/// counters-unavailable: at most one finding per port and id; for each id in port order.
Findings hotspot_findings(const Hotspots& hotspots, const NicThresholds& thresholds);

/// Keys `ports`, `groups`, `signs`, `unavailable` of the report's `hotspots`.
nlohmann::json hotspots_json(const Hotspots& hotspots, const NicThresholds& thresholds);

/// Where a PE runs.
struct PeMachine {
  std::uint64_t machine_id = 0; ///< identifies the machine, also if it is split into virtual nodes
  std::string name;
};

/// One machine of a job: its PEs share its NICs.
struct JobHost {
  std::string name; ///< unique: "node7 (PE 8)" if several machines have the same name
  int leader = 0;   ///< the first PE of the machine, which reads the counters
  std::vector<int> pes;
};
/// Ordered by leader. @param machines by PE
std::vector<JobHost> job_hosts(const std::vector<PeMachine>& machines);
/// Index in `hosts` by PE.
std::vector<std::size_t> host_of_pes(const std::vector<JobHost>& hosts, std::size_t n_pes);

/// A port that a PE uses: according to the mapping or to its transports.
struct PortUser {
  std::string host, device;
  int port = 1;
  PeBytes moved;
  bool reported = false; ///< `moved` was reported by the transports
};

/// What one host counted.
struct HostTotals {
  std::string host;
  NodeTotals totals;
  std::size_t left_out = 0; ///< counters omitted because the message was full
};

/// Loads of all hosts with the PEs that use each port, counters beyond their thresholds, counters
/// without a usable value, and outliers within their host and rail.
/// @param outliers nullptr: none, because the PEs are not expected to send and receive equal
/// amounts
Hotspots hotspots_of_job(const std::vector<HostTotals>& hosts, const std::vector<PortUser>& users,
                         const NicThresholds& thresholds, const OutlierSettings* outliers);

} // namespace shmemctl
