// Sums of counters over a run, and the JSON form in which PEs exchange them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "src/instruments/hotspots/sampler.h"

namespace shmemctl {

/// One counter over the whole run. Its change is the sum of the changes between samples, so that
/// one that wraps at 2^32 repeatedly is followed. After a reset, or a reading that failed, there is
/// no change, only the reason.
struct CounterTotal {
  std::string counter;
  std::optional<std::uint64_t> before, after;
  std::optional<std::int64_t> delta;
  std::string problem;              ///< why there is no delta
  double window_s = 0;              ///< from its first reading to its last; 0: unknown
  std::optional<double> peak_per_s; ///< the largest rate between two samples

  bool read() const { return readings > 0; }
  std::optional<double> per_s() const;

  int readings = 0;
  double first_s = 0, last_s = 0;
};

struct PortTotals {
  MeasuredPort port;
  std::vector<CounterTotal> counters; ///< in the order of port.counters

  const CounterTotal* find(const std::string& counter) const;
};

/// Accumulates samples.
class NodeTotals {
public:
  explicit NodeTotals(const std::vector<MeasuredPort>& ports);
  /// Continues with what another host accumulated.
  explicit NodeTotals(std::vector<PortTotals> ports) : ports_(std::move(ports)) {}
  /// @param sample of these ports and their counters
  void add(const NodeSample& sample);
  /// New totals that begin with the last sample.
  NodeTotals from_here() const;
  /// Marks all counters as not comparable, with this problem.
  void spoil(const std::string& problem);
  const std::vector<PortTotals>& ports() const { return ports_; }

private:
  std::vector<PortTotals> ports_;
};

/// The changes between two trees of one machine, recorded before and after. Ports and counters that
/// are in only one of them have no change.
/// @param window_s the time between them; empty: from /proc/uptime of both, if both have it
NodeTotals compare_trees(const Sysroot& before, const Node& node_before, const Sysroot& after,
                         const Node& node_after, std::optional<double> window_s);

/// Which counters are included when there is no room for all.
enum class CounterDetail {
  all,
  changed, ///< the changed ones, load counters, and those without a usable value
  load,    ///< load counters only
  none
};

/// The totals in a compact form: most counters of a healthy NIC do not change, and the ports of a
/// host have the same counters.
nlohmann::json totals_json(const NodeTotals& totals, CounterDetail detail);

/// The most detailed level that fits into that many bytes of text; `none` if nothing does.
CounterDetail detail_within(const NodeTotals& totals, std::size_t max_bytes);

/// Parses totals_json(). Counters that were omitted are in no port.
/// @param left_out is set to the number of omitted counters
/// Throws std::exception for anything else, and for impossible numbers.
NodeTotals totals_from_json(const nlohmann::json& object, std::size_t& left_out);

} // namespace shmemctl
