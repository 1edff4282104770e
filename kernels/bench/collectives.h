// Kernels of collectives.
#pragma once

#include "kernels/bench/launcher.h"

namespace shmemctl::bench {

enum class CollectiveKernel : std::int32_t {
  broadcast,
  fcollect,
  alltoall,
  alltoallv,
  reduce,
  reducescatter
};

/// Types of the numbers that reductions add up. bf16 and fp16 are added as 32-bit floats, and
/// rounded once.
enum class CollectiveNumber : std::int32_t { int64, float32, bf16, fp16 };

/// The calls with the numbers first to first + count - 1, each made by all blocks of the grid, with
/// a grid barrier between them. Consecutive calls send from different places of the source.
struct CollectiveArguments {
  CollectiveKernel kernel;
  CollectiveNumber number; ///< the numbers that a reduction combines
  std::uint64_t first, count;
  std::byte* memory; ///< symmetric; the source is at its start
  std::uint64_t dest_offset_bytes;
  std::uint64_t size_bytes;         ///< size of a message, a contribution, a block or a part
  std::uint64_t lists_offset_bytes; ///< where alltoallv's lists start: sizes, offsets in source and
                                    ///< dest, by PE
};
SHMEMCTL_LAUNCHER(launch_collective, CollectiveArguments)
SHMEMCTL_MAX_BLOCKS(max_collective_blocks,
                    (CollectiveKernel kernel, CollectiveNumber number, int device, int threads),
                    (kernel, number, device, threads))
/// For the reductions among the collectives; called by launch_collective().
SHMEMCTL_INNER_LAUNCHER(launch_reduction, CollectiveArguments)
SHMEMCTL_INNER_MAX_BLOCKS(max_reduction_blocks, (CollectiveKernel kernel, CollectiveNumber number,
                                                 int device, int threads))

} // namespace shmemctl::bench
