// What the low-latency kernels share: waits with masking, and the call counters.
#pragma once

#include "kernels/device/scope.cuh"
#include "kernels/device/wait.cuh"
#include "kernels/moe/low_latency.h"

namespace shmemctl::moe {

/// The buffer (of two) for the rows, metadata and flags of a dispatch.
__device__ inline std::int32_t buffer_of_dispatch(std::uint64_t epoch) {
  return buffer_of_epoch(epoch);
}

/// Polls until `ready()` holds. If it does not hold in time, the rank is masked; job.report is not
/// filled, because the other ranks go on. Nothing of a masked rank is used, even if `ready()` holds
/// later: a late flag may be for rows that this rank has never sent to it.
/// @return whether the rank is ready and not masked
template <class Ready>
__device__ inline bool wait_or_mask(LowLatencyFlags* flags, std::int32_t rank,
                                    std::uint64_t rank_timeout_ns, const Ready& ready) {
  bool is_masked = false;
  const auto poll = [&] {
    // Both loads are in flight together, so reading the mask adds no latency.
    is_masked = device::load_relaxed(&flags->masked[rank]) != 0;
    const bool is_ready = ready();
    return is_masked || is_ready;
  };
  const auto expired = [&](std::uint64_t waited_ns) { return waited_ns > rank_timeout_ns; };
  if (device::poll_or_expire(poll, expired))
    return !is_masked;
  device::store_relaxed(&flags->masked[rank], 1);
  return false;
}
/// Waits until that rank is known to have begun the dispatch, by its `begun` flag or by the count
/// of its first block (which are unordered), or until it is masked. @return the time at which the
/// wait ended, by the global timer
/// @param first the flag of the rank's first sending block
__device__ inline std::uint64_t wait_for_begin(LowLatencyFlags* flags, std::int32_t rank,
                                               std::uint64_t rank_timeout_ns, std::uint64_t epoch,
                                               const std::uint64_t* first) {
  wait_or_mask(flags, rank, rank_timeout_ns, [&] {
    const bool begun = device::load_relaxed(&flags->begun[rank]) >= epoch;
    return has_come(device::load_relaxed(first), epoch) || begun;
  });
  return device::global_time_ns();
}
/// Called by one thread per rank and launch: adds the time since `begin_ns` to the wait for `rank`.
/// @param op 0: dispatch, 1: combine
__device__ inline void count_wait(LowLatencyFlags* flags, int op, std::int32_t rank,
                                  std::uint64_t begin_ns) {
  flags->wait_ns[op][rank] += device::global_time_ns() - begin_ns;
}

#ifdef __CUDACC__
/// Called by one thread of each of `blocks` blocks: the last one advances the call counter. That is
/// safe when all threads of these blocks have read it; no other order is needed. What the blocks
/// stored is ordered by the flags that they set at other ranks, or by the end of the launch.
__device__ inline void count_block(std::uint32_t* blocks_done, std::uint32_t blocks,
                                   std::uint64_t* counter, std::uint64_t epoch) {
  if (blocks == 1 || atomicAdd(blocks_done, 1u) + 1 == blocks) {
    *blocks_done = 0;
    device::store_relaxed(counter, epoch);
  }
}
/// Called by all threads of the grid at the end of the kernel.
__device__ inline void count_call(std::uint32_t* blocks_done, std::uint32_t blocks,
                                  std::uint64_t* counter, std::uint64_t epoch) {
  __syncthreads();
  if (threadIdx.x == 0)
    count_block(blocks_done, blocks, counter, epoch);
}
/// Like count_call(), but called by all threads of the grid just before their block waits for other
/// ranks: at the end of the kernel, the launch would end only when the count has reached the L2
/// cache. All threads must have read the counter: the block's vote on its value ensures that.
__device__ inline void count_call_early(std::uint32_t* blocks_done, std::uint32_t blocks,
                                        std::uint64_t* counter, std::uint64_t epoch) {
  const bool all_have_read = device::Block::all(epoch != 0);
  if (all_have_read && threadIdx.x + 1 == blockDim.x)
    count_block(blocks_done, blocks, counter, epoch);
}
#endif

} // namespace shmemctl::moe
