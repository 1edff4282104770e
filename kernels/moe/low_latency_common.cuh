// What the kernels of low_latency.h have in common: waits that mask, and the count of calls.
#pragma once

#include "kernels/device/wait.cuh"
#include "kernels/moe/low_latency.h"

namespace shmemctl::moe {

/// The half of rows, records and their words that a dispatch takes.
__device__ inline std::int32_t buffer_of_dispatch(std::uint64_t epoch) {
#ifdef SHMEMCTL_MUTATE_MOE_ONE_HALF
  return 0;
#else
  return buffer_of_epoch(epoch);
#endif
}

/// Waits until `ready()`. A rank that does not make it true in time is masked, and job.report stays
/// as it is, because the others go on. Of a masked one nothing is taken, ready or not: what it says
/// late may be of rows that it never got. @return whether it came true
template <class Ready>
__device__ inline bool wait_or_mask(LowLatencyFlags* flags, std::int32_t rank,
                                    std::uint64_t rank_timeout_ns, const Ready& ready) {
  std::uint64_t begin_ns = 0;
  for (unsigned looks = 0;; ++looks) {
    // Both loads are on the way together: the mask costs no time of its own.
#ifdef SHMEMCTL_MUTATE_MOE_MASK_IGNORED
    const bool is_masked = false;
#else
    const bool is_masked = device::load_relaxed(&flags->masked[rank]) != 0;
#endif
    const bool is_ready = ready();
    if (is_masked)
      return false;
    if (is_ready)
      return true;
    if (looks == 0) {
      begin_ns = device::global_time_ns();
    } else if (looks % 256 == 0 && device::global_time_ns() - begin_ns > rank_timeout_ns) {
      device::store_relaxed(&flags->masked[rank], 1);
      return false;
    }
  }
}
/// Of a dispatch: waits until that rank has been heard to have begun, by its word or by its rows
/// (the word comes in no order to them), and no longer than to mask it. @return when
/// @param first the word of its first part
__device__ inline std::uint64_t wait_for_begin(LowLatencyFlags* flags, std::int32_t rank,
                                               std::uint64_t rank_timeout_ns, std::uint64_t epoch,
                                               const std::uint64_t* first) {
  wait_or_mask(flags, rank, rank_timeout_ns, [&] {
    const bool told = device::load_relaxed(&flags->begun[rank]) >= epoch;
    return has_come(device::load_relaxed(first), epoch) || told;
  });
  return device::global_time_ns();
}
/// By one thread for each rank and launch.
/// @param op 0: dispatch, 1: combine
__device__ inline void count_wait(LowLatencyFlags* flags, int op, std::int32_t rank,
                                  std::uint64_t begin_ns) {
  flags->wait_ns[op][rank] += device::global_time_ns() - begin_ns;
}

#ifdef __CUDACC__
/// By all threads of the grid's blocks, at their end: the last one of `blocks` counts the call. All
/// have read its number, which is all that the count comes behind: what the blocks wrote is ordered
/// by what they told the other ranks, or by the end of the launch.
__device__ inline void count_call(std::uint32_t* blocks_done, std::uint32_t blocks,
                                  std::uint64_t* counter, std::uint64_t epoch) {
  __syncthreads();
  if (threadIdx.x != 0)
    return;
  if (blocks == 1 || atomicAdd(blocks_done, 1u) + 1 == blocks) {
    *blocks_done = 0;
    device::store_relaxed(counter, epoch);
  }
}
#endif

} // namespace shmemctl::moe
