// What the PEs of a dispatch and a combine tell each other: words of symmetric memory. For host and
// device.
#pragma once

#include <cstdint>

#include "src/moe/shape.h"

namespace shmemctl::moe {

/// Of one PE, at the same offset on each; all zeros before the first call. Written by peers, but
/// for the words marked "own". One call at a time uses them.
///
/// Calls (dispatches and combines, counted together) have epochs, 1, 2, ...: who begins one says so
/// to all (`entered`), and by that also that its earlier kernels have read what it had received.
/// Who has moved all that it moves in a call says so (`finished`). Both only ever grow, so nothing
/// has to be zeroed.
struct Cells {
  static constexpr int ranks = max_ranks_of_kernels;
  /// By half (of the epoch of the notification), source and destination: count_word().
  ///
  /// Why two halves: a source that begins notification e + 2 has heard e + 1 from every rank, and a
  /// rank that has sent e + 1 has read all words of e.
  std::uint64_t counts[2][ranks][ranks];
  std::uint64_t entered[ranks];  ///< by rank, the call that it has begun
  std::uint64_t finished[ranks]; ///< by rank, the call that it has moved everything of
  /// Own: spent waiting until that rank had begun a call or told its counts, and until it had moved
  /// everything: sums.
  std::uint64_t wait_ns[2][ranks];
  std::uint64_t call;         ///< own: calls that are over
  std::uint64_t notification; ///< own: notifications that are over
  std::uint32_t blocks_done;  ///< own: blocks of the present launch that have done their part
  std::uint32_t padding[27];
};

} // namespace shmemctl::moe
