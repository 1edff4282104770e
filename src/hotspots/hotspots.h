// From what was counted to what it means: loads, groups, signs, findings, the report's section.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "src/base/finding.h"
#include "src/hotspots/balance.h"
#include "src/hotspots/thresholds.h"
#include "src/topo/mapping/mapping.h"

namespace shmemctl {

/// A counter that tells nothing, and why.
struct UnavailableCounter {
  std::string host, device, counter, reason;
  int port = 1;
};

/// What the counters of one or more hosts say.
struct Hotspots {
  std::vector<PortLoad> loads;
  std::vector<LoadGroup> groups;
  std::vector<CounterSign> signs; ///< their rules are those of the thresholds given
  std::vector<UnavailableCounter> unavailable;
};

/// What was counted on one host. Groups are not judged yet, and no PEs are known.
Hotspots read_hotspots(const NodeTotals& totals, const std::string& host,
                       const NicThresholds& thresholds);
/// Adds another host's; judge_groups() has to come after.
void join_hotspots(Hotspots& all, Hotspots more);
/// Fills `groups` and marks the loads that are hot.
void judge_groups(Hotspots& hotspots, const OutlierSettings& settings);

/// Fills `pes` of the loads of that host from the mapping of its PEs to NICs.
void attribute(Hotspots& hotspots, const std::string& host, const Node& node,
               const Mapping& mapping);

/// nic-hotspot-measured, nic-congested, nic-lossy, link-flapping, counters-unavailable: one for a
/// port and id, in the order of the ports.
Findings hotspot_findings(const Hotspots& hotspots, const NicThresholds& thresholds);

/// Keys `ports`, `groups`, `signs`, `unavailable` of the report's `hotspots`.
nlohmann::json hotspots_json(const Hotspots& hotspots, const NicThresholds& thresholds);

} // namespace shmemctl
