// Sums of counters over a run, and their JSON form in which PEs exchange them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "src/hotspots/sampler.h"

namespace shmemctl {

/// One counter over the whole time. Its change is the sum of the changes between samples, so that
/// one that wraps at 2^32 repeatedly is followed. A reset, or a reading that failed on the
/// way, leaves no change, only the reason.
struct CounterTotal {
  std::string counter;
  std::optional<std::uint64_t> before, after;
  std::optional<std::int64_t> delta;
  std::string problem;              ///< why there is no delta
  double window_s = 0;              ///< from its first reading to its last; 0: not known
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

/// Adds samples up.
class NodeTotals {
public:
  explicit NodeTotals(const std::vector<MeasuredPort>& ports);
  /// As another host added them up.
  explicit NodeTotals(std::vector<PortTotals> ports) : ports_(std::move(ports)) {}
  /// @param sample of these ports, with their counters
  void add(const NodeSample& sample);
  /// Totals that begin with what was read last.
  NodeTotals from_here() const;
  /// Nothing that was counted can be compared: all counters get this problem.
  void spoil(const std::string& problem);
  const std::vector<PortTotals>& ports() const { return ports_; }

private:
  std::vector<PortTotals> ports_;
};

/// Two trees of one machine, recorded before and after. Ports and counters that only one of them
/// has have no change.
/// @param window_s the time between them; nothing: by /proc/uptime of both, where both have it
NodeTotals compare_trees(const Sysroot& before, const Node& node_before, const Sysroot& after,
                         const Node& node_after, std::optional<double> window_s);

/// Which counters go along where not all of them have room.
enum class CounterDetail {
  all,
  changed, ///< those that changed, load counters, and those without a usable value
  load,    ///< load counters only
  none
};

/// Small: most counters of a healthy NIC do not change, and ports of a host have the same ones.
nlohmann::json totals_json(const NodeTotals& totals, CounterDetail detail);

/// The most detail that fits into that many bytes of text; `none` if nothing does.
CounterDetail detail_within(const NodeTotals& totals, std::size_t most_bytes);

/// What totals_json() says. Counters that did not go along are in no port.
/// @param left_out is set to how many these are
/// Throws std::exception for what is no such object, and for numbers that no counter can have.
NodeTotals totals_from_json(const nlohmann::json& object, std::size_t& left_out);

} // namespace shmemctl
