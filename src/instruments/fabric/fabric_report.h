// The result of `fabric` as rows, findings and text.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "reports/report.h"
#include "reports/table.h"
#include "src/instruments/fabric/fabric.h"

namespace shmemctl::fabric {

/// More ordered pairs than these have no rows of their own, except those that are suspects.
inline constexpr std::size_t max_pair_rows = 4096;

/// Rows "fabric-nic" (each PE, sending and receiving: the time of a message over its pairs),
/// "fabric-pair" and "fabric-latency" (each ordered pair), "fabric-incast" and "fabric-all-to-all".
std::vector<ResultRow> rows_of(const Result& result);

/// What the counters say about a part that is slow.
struct Cause {
  std::string text; ///< "mlx5_0 of b counts loss: ..."; "" if the counters say nothing
  std::string fix;
};
/// @param hotspots of the report, null if no NIC was watched
Cause cause_of(const Suspect& suspect, const Result& result, const nlohmann::json& hotspots);

/// fabric-slow-host, fabric-slow-nic, fabric-slow-rail, fabric-slow-group, fabric-slow-pair,
/// fabric-one-way, fabric-slow-under-load, fabric-corrupt, and as info fabric-transient. Bandwidths
/// are errors, latencies and patterns warnings; in a job whose PEs share cores, all are.
Findings findings_of(const Result& result, const nlohmann::json& hotspots);

/// "4 hosts, 2 rails, 24 pairs in 3 rounds, ..." and the usual figures; then the slowest NICs.
std::string summary_of(const Result& result, const TextStyle& style);

} // namespace shmemctl::fabric
