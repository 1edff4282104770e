// Flags in symmetric memory by which the ranks of a high-throughput call synchronise. For host and
// device.
#pragma once

#include <cstdint>

#include "src/base/host_device.h"
#include "src/model/moe/shape.h"

namespace shmemctl::moe {

// A flag holds the number of a call, stored by one rank into the memory of another. A rank that
// times out stores failed_call() instead: that the call failed, and which rank was missing. That
// value is larger than every call number, so a peer that waits for a number sees it. It is sticky:
// all later calls fail at once.

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

// CallFlags::blocks_done counts the blocks of a launch that are done (low half) and those of them
// that timed out (high half).

inline constexpr std::uint32_t block_done = 1, block_failed = 1u << 16;
SHMEMCTL_HOST_DEVICE constexpr std::uint32_t count_of_block(bool ok) {
  return ok ? block_done : block_done + block_failed;
}
SHMEMCTL_HOST_DEVICE constexpr std::uint32_t blocks_in(std::uint32_t done) {
  return done % block_failed;
}

/// Flags of one rank, at the same offset on every rank; zeroed before the first call. Peers write
/// them, except those marked "own". One call at a time uses them.
///
/// Dispatches and combines are numbered together, by epochs 1, 2, ... A rank that enters call e
/// stores e into `entered` on all ranks with release semantics: its earlier kernels have then read
/// what they had received, so peers may overwrite its rows. A rank whose stores of call e are
/// complete stores e into `finished` on all ranks: its rows may be read. Both values only grow, so
/// they are never zeroed.
///
/// A rank that timed out stores failed_call() instead of a number: into `entered`, and into
/// `finished` unless that call's number is there already. A rank that sees it fails as well.
struct CallFlags {
  static constexpr int ranks = max_ranks_of_kernels;
  /// count_word() by buffer (the notify's epoch modulo 2), source and destination rank.
  ///
  /// Two buffers suffice. Rank S overwrites the counts of notify e at rank R when it begins notify
  /// e + 2. By then S has received the counts of e + 1 from R, and R sends those only after it has
  /// read all counts of e.
  std::uint64_t counts[2][ranks][ranks];
  std::uint64_t entered[ranks];  ///< by rank: the last call that the rank has entered
  std::uint64_t finished[ranks]; ///< by rank: the last call whose stores are complete
  /// Own. Total wait for each rank: [0] for it to enter a call or to send its counts, [1] for it to
  /// finish a call.
  std::uint64_t wait_ns[2][ranks];
  std::uint64_t call; ///< own: number of the last completed call; failed_call() after a failure
  std::uint64_t notification; ///< own: number of the last completed notify
  std::uint64_t failure;      ///< own: failed_call() of a wait that timed out; 0: no failure
  std::uint32_t blocks_done; ///< own: sum of count_of_block() over the blocks of the current launch
  std::uint32_t padding[25];
};

} // namespace shmemctl::moe
