// Kernels of atomics.
#pragma once

#include "kernels/bench/atomic_values.h"
#include "kernels/bench/launcher.h"

namespace shmemctl::bench {

struct AtomicArguments {
  AtomicKernel kernel;
  std::uint64_t first, count;
  std::byte* words;         ///< symmetric
  std::uint32_t word_bytes; ///< 4 or 8
  int peer;                 ///< -1: this PE issues nothing
  std::uint64_t n_words;    ///< the number of words for launch_atomic_bandwidth()
};
/// One thread issues one operation after the other on one word. Each is complete before the next:
/// by its result, or by a quiet if it returns none. control->wrong_at is the number of the first
/// operation that fetched a wrong value (`expected` and `found` are the values); UINT64_MAX if none
/// did.
SHMEMCTL_LAUNCHER(launch_atomic_latency, AtomicArguments)
/// Every thread of the grid adds to a word of its own; a quiet ends the launch.
SHMEMCTL_LAUNCHER(launch_atomic_rate, AtomicArguments)
/// Each operation adds to every one of `n_words` 64-bit words; neighbouring threads take
/// neighbouring words. A quiet ends the launch.
SHMEMCTL_LAUNCHER(launch_atomic_bandwidth, AtomicArguments)
SHMEMCTL_MAX_BLOCKS(max_atomic_blocks, (int device, int threads), (device, threads))

} // namespace shmemctl::bench
