// The result of `fabric` as rows, findings and text.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "reports/report.h"
#include "reports/table.h"
#include "src/instruments/fabric/fabric.h"

namespace shmemctl::fabric {

/// Up to this number of ordered pairs, all have rows; if there are more, only the suspect pairs.
inline constexpr std::size_t max_pair_rows = 4096;

/// Rows "fabric-nic" (for each PE, sending and receiving: the time of a message over its pairs),
/// "fabric-pair" and "fabric-latency" (for each ordered pair), "fabric-incast" and
/// "fabric-all-to-all".
std::vector<ResultRow> rows_of(const Result& result);

/// What the counters say about a slow part.
struct Cause {
  std::string text; ///< "packets are lost: ..."; "" if the counters show no cause
  std::string fix;
};
/// @param hotspots the report's `hotspots`; null if no NIC was watched
Cause cause_of(const Suspect& suspect, const Result& result, const nlohmann::json& hotspots);

/// The findings fabric-slow-host, fabric-slow-nic, fabric-slow-rail, fabric-slow-group,
/// fabric-slow-pair, fabric-one-way, fabric-lossy, fabric-slow-under-load, fabric-corrupt,
/// fabric-unconfirmed and fabric-transient. Corruption is always an error. Slow bandwidth and loss
/// are errors, or warnings if PEs share cores. Slow latency, patterns and fabric-unconfirmed are
/// warnings; fabric-transient is info.
Findings findings_of(const Result& result, const nlohmann::json& hotspots);

/// A summary: "4 hosts, 2 rails: 24 ordered pairs in 3 rounds of disjoint pairs, ...", the usual
/// values, and a table of the NICs (of more than 32 rows, the slowest).
std::string summary_of(const Result& result, const TextStyle& style);

} // namespace shmemctl::fabric
