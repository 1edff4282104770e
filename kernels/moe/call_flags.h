// What the PEs of a dispatch and a combine tell each other: words of symmetric memory. For host and
// device.
#pragma once

#include <cstdint>

#include "src/base/host_device.h"
#include "src/moe/shape.h"

namespace shmemctl::moe {

// The number of a call, as ranks store it into each other's memory. A rank that times out stores,
// in place of the number, that the call failed and which rank was missing. Such a word is above
// every number, so a peer that waits for a number sees it, and it is sticky: all later calls fail
// at once.

inline constexpr std::uint64_t failed_bit = std::uint64_t{1} << 63;
inline constexpr int missing_rank_shift = 48;

/// @param culprit the missing rank
SHMEMCTL_HOST_DEVICE constexpr std::uint64_t failed_call(std::uint64_t number,
                                                         std::int32_t culprit) {
  return failed_bit | static_cast<std::uint64_t>(culprit) << missing_rank_shift |
         (number & ((std::uint64_t{1} << missing_rank_shift) - 1));
}
SHMEMCTL_HOST_DEVICE constexpr bool has_failed(std::uint64_t word) {
  return word >= failed_bit;
}
SHMEMCTL_HOST_DEVICE constexpr std::int32_t missing_rank_of(std::uint64_t word) {
  return static_cast<std::int32_t>((word & ~failed_bit) >> missing_rank_shift);
}
SHMEMCTL_HOST_DEVICE constexpr std::uint64_t number_of_call(std::uint64_t word) {
  return word & ((std::uint64_t{1} << missing_rank_shift) - 1);
}

// blocks_done: how many blocks of the launch have done their part, and above that, how many of
// those timed out.

inline constexpr std::uint32_t block_done = 1, block_failed = 1u << 16;
SHMEMCTL_HOST_DEVICE constexpr std::uint32_t count_of_block(bool ok) {
  return ok ? block_done : block_done + block_failed;
}
SHMEMCTL_HOST_DEVICE constexpr std::uint32_t blocks_in(std::uint32_t done) {
  return done % block_failed;
}

/// Of one PE, at the same offset on each; all zeros before the first call. Written by peers, but
/// for the words marked "own". One call at a time uses them.
///
/// Calls (dispatches and combines, counted together) have epochs, 1, 2, ...: who begins one says so
/// to all (`entered`), and by that also that its earlier kernels have read what it had received.
/// Who has moved all that it moves in a call says so (`finished`). Both only ever grow, so nothing
/// has to be zeroed.
///
/// A rank that timed out never stores a number into `finished`, but failed_call(), there and into
/// `entered`. A rank that sees it fails too, in this call or in its next one.
struct CallFlags {
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
  std::uint64_t call;         ///< own: calls that are over; failed_call() when one has failed
  std::uint64_t notification; ///< own: notifications that are over
  std::uint64_t failure;      ///< own: failed_call() of a wait that timed out; 0: none
  std::uint32_t blocks_done;  ///< own: of the present launch: count_of_block() of each
  std::uint32_t padding[25];
};

} // namespace shmemctl::moe
