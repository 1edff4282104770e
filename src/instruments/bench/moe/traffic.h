// How many bytes a dispatch and a combine move, from the routing alone.
#pragma once

#include <cstdint>
#include <vector>

#include "src/instruments/bench/moe/backend.h"

namespace shmemctl::moe {

/// Of one call, by rank.
struct Traffic {
  /// DeepEP's count: values and scales of every row that a rank receives (of a combine: gives
  /// back), its own among them; with low latency a row for each choice, however many travel.
  std::vector<std::uint64_t> logical_bytes;
  /// What a rank's rows bring to other ranks: values and scales that really leave it, for
  /// themselves or handed on.
  std::vector<std::uint64_t> sent_bytes;
  /// Of these, to ranks of other nodes.
  std::vector<std::uint64_t> crossing_bytes;
  /// [from][to]: the same by way, of ranks that are not the same.
  std::vector<std::uint64_t> moved_bytes;
};
Traffic dispatch_traffic(const Setup& setup);
Traffic combine_traffic(const Setup& setup);

} // namespace shmemctl::moe
