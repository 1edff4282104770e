// The number of bytes that a dispatch and a combine move, computed from the routing alone.
#pragma once

#include <cstdint>
#include <vector>

#include "src/instruments/bench/moe/backend.h"

namespace shmemctl::moe {

/// The traffic of one call, by rank.
struct Traffic {
  /// Values and scales of every row that a rank receives (in a combine: returns), including its
  /// own. In low-latency mode one row per expert choice, however many are really sent; in a combine
  /// of partial results, one row per token and rank.
  std::vector<std::uint64_t> logical_bytes;
  /// Values and scales that really leave a rank for other ranks, including rows that are to be
  /// forwarded.
  std::vector<std::uint64_t> sent_bytes;
  /// The part of sent_bytes that goes to ranks of other nodes.
  std::vector<std::uint64_t> crossing_bytes;
  /// [from][to]: sent_bytes by pair of ranks; 0 from a rank to itself.
  std::vector<std::uint64_t> moved_bytes;
};
Traffic dispatch_traffic(const Setup& setup);
Traffic combine_traffic(const Setup& setup);

} // namespace shmemctl::moe
