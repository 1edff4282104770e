// What the multiprocessors of a job's GPUs move over the links between them, measured shortly in
// the run that asks: the limit that shares are of. No model knows it: of NVLink's raw rate packets
// and answers take their part.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "src/bench/bandwidth_limit.h"
#include "src/bench/case.h"
#include "src/runtime/runtime.h"

namespace shmemctl::bench {

/// By PE, in 10^9 bytes per second, while all that send do so at once; 0 of PEs that do not.
struct MeasuredLink {
  std::vector<double> stores_GBps; ///< what leaves this PE's GPU by its stores
  std::vector<double> loads_GBps;  ///< what comes to it by its loads
  int blocks = 0, threads = 0;     ///< of each PE's kernel
  std::size_t message_bytes = 0;   ///< to each peer
  std::string traffic;             ///< who moved: "all-to-all", "pair"

  /// The larger one: what the link is able to.
  double limit_GBps(std::size_t pe) const;
  /// "stores, 132 blocks of 1024 threads, messages of 16M, all-to-all".
  std::string conditions(std::size_t pe) const;
};

/// What was measured, or why nothing was.
struct LinkMeasurement {
  std::optional<MeasuredLink> link;
  std::string reason;
};

/// The limit of a point in which all senders of the measurement send: the sum of theirs; else the
/// model's, whose name says so.
std::optional<LinkLimit> limit_of(const LinkMeasurement& measured,
                                  const std::optional<LinkLimit>& model);

/// Measures each kind of traffic once.
class LinkMeter {
public:
  explicit LinkMeter(Runtime& runtime) : runtime_(runtime) {}
  /// Collective; the same on all PEs. The first time it takes some ms and, for as long, 96 MiB of
  /// the GPU heap. Nothing where PEs share a GPU (they take turns on it), where one is not mapped,
  /// where the heap has no room, or where what was moved came wrong. Throws Error as kernels' waits
  /// do.
  /// @param like whose traffic, direction and PEs count
  const LinkMeasurement& of(const Point& like);

private:
  using Pattern = std::tuple<Traffic, Direction, int, int>;
  Runtime& runtime_;
  std::map<Pattern, LinkMeasurement> known_;
};

} // namespace shmemctl::bench
