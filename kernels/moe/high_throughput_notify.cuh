// Notify: every rank counts the rows that it sends to each rank and the tokens that choose each
// expert, and sends the counts to all ranks. Then every rank knows where its rows go and how many
// it receives.
#pragma once

#include "kernels/moe/high_throughput_counts.cuh"
#include "kernels/moe/token_counts.h"
#include "kernels/stream_wait.cuh"

namespace shmemctl::moe {

inline constexpr int notify_threads = 1024;
inline constexpr int notify_warps = notify_threads / 32;
inline constexpr int tokens_of_thread = 4; ///< tokens that a thread counts per pass of the block
static_assert(notify_threads * tokens_of_thread <= PackedCounts::most, "counts fit their fields");

__device__ inline PackedCounts from_lanes_below(PackedCounts counts, int distance) {
  PackedCounts other{};
  other.low = __shfl_up_sync(0xffffffffu, static_cast<unsigned long long>(counts.low), distance);
  other.high = __shfl_up_sync(0xffffffffu, static_cast<unsigned long long>(counts.high), distance);
  return other;
}
/// Called by a warp: the sum over the lanes up to and including this one.
__device__ inline PackedCounts scan_warp(PackedCounts counts) {
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const PackedCounts other = from_lanes_below(counts, distance);
    if (static_cast<int>(threadIdx.x % 32) >= distance)
      counts = counts + other;
  }
  return counts;
}

/// Block 0: computes the slots of all tokens, and exchanges row counts with all ranks.
class RankCounts {
public:
  __device__ RankCounts(const DeviceJob& job, const NotifyArguments& all, std::uint64_t epoch,
                        bool failed)
      : all_(all), totals_(job, all, epoch, failed), divide_(all.shape.local_experts()),
        n_(all.shape.n_ranks), thread_(static_cast<std::int32_t>(threadIdx.x)) {}

  /// @return whether the plan is valid
  __device__ bool run() {
    __shared__ std::int32_t counts[ranks * ranks];
    for (std::int32_t first = 0; first < all_.tokens; first += tokens_of_pass)
      count(first);
    if (!all_.counts_first || all_.tokens == 0)
      totals_.publish(earlier_);
    return totals_.receive(counts);
  }

private:
  static constexpr int ranks = RankTotals::ranks;
  static constexpr int tokens_of_pass = notify_threads * tokens_of_thread;

  __device__ std::uint32_t ranks_of(std::int32_t token) const {
    std::uint32_t mask = 0;
    if (token >= all_.tokens)
      return mask;
    const std::int32_t top_k = all_.shape.top_k;
    const std::int32_t* const experts = all_.experts + static_cast<std::int64_t>(token) * top_k;
    const auto take = [&](std::int32_t expert) {
      if (expert >= 0)
        mask |= 1u << divide_(static_cast<std::uint32_t>(expert));
    };
    if (top_k == 8 && reinterpret_cast<std::uintptr_t>(all_.experts) % 16 == 0) {
      const int4 low = __ldg(reinterpret_cast<const int4*>(experts));
      const int4 high = __ldg(reinterpret_cast<const int4*>(experts) + 1);
      for (const std::int32_t expert : {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w})
        take(expert);
    } else {
      for (std::int32_t k = 0; k < top_k; ++k)
        take(__ldg(experts + k));
    }
    return mask;
  }
  /// One pass. A thread counts the tokens first + i * threads + thread, so that adjacent threads
  /// read adjacent tokens.
  __device__ void count(std::int32_t first) {
    __shared__ PackedCounts of_warps[tokens_of_thread * notify_warps];
    const int warp = thread_ / 32, lane = thread_ % 32;
    std::uint32_t masks[tokens_of_thread];
#pragma unroll
    for (int i = 0; i < tokens_of_thread; ++i)
      masks[i] = ranks_of(first + i * notify_threads + thread_);
    PackedCounts before[tokens_of_thread];
#pragma unroll
    for (int i = 0; i < tokens_of_thread; ++i) {
      const PackedCounts counts = PackedCounts::of(masks[i]), sum = scan_warp(counts);
      before[i] = sum - counts;
      if (lane == 31)
        of_warps[i * notify_warps + warp] = sum;
    }
    __syncthreads();
    if (warp == 0)
      scan_warps(of_warps);
    __syncthreads();
    const PackedCounts total = of_warps[tokens_of_thread * notify_warps - 1];
    if (all_.counts_first && first + tokens_of_pass >= all_.tokens) {
      std::int32_t sums[ranks];
#pragma unroll
      for (int rank = 0; rank < ranks; ++rank)
        sums[rank] = earlier_[rank] + total.of_rank(rank);
      totals_.publish(sums);
    }
#pragma unroll
    for (int i = 0; i < tokens_of_thread; ++i) {
      const int warps_before = i * notify_warps + warp;
      if (warps_before > 0)
        before[i] = before[i] + of_warps[warps_before - 1];
      write_slots(first + i * notify_threads + thread_, masks[i], before[i]);
    }
#pragma unroll
    for (int rank = 0; rank < ranks; ++rank)
      earlier_[rank] += total.of_rank(rank);
    __syncthreads(); // all threads have read of_warps
  }
  /// Called by one warp: inclusive prefix sums, in place.
  __device__ void scan_warps(PackedCounts* of_warps) const {
    PackedCounts earlier{0, 0};
#pragma unroll
    for (int i = 0; i < tokens_of_thread; ++i) {
      const PackedCounts sum = earlier + scan_warp(of_warps[i * notify_warps + thread_]);
      of_warps[i * notify_warps + thread_] = sum;
      earlier.low = __shfl_sync(0xffffffffu, static_cast<unsigned long long>(sum.low), 31);
      earlier.high = __shfl_sync(0xffffffffu, static_cast<unsigned long long>(sum.high), 31);
    }
  }
  __device__ void write_slots(std::int32_t token, std::uint32_t mask, PackedCounts before) const {
    if (token >= all_.tokens)
      return;
    std::int32_t* const slots = all_.plan.slots + static_cast<std::int64_t>(token) * n_;
#pragma unroll
    for (int rank = 0; rank < ranks; ++rank)
      if (rank < n_)
        slots[rank] = goes_to(mask, rank) ? earlier_[rank] + before.of_rank(rank) : -1;
  }

  const NotifyArguments& all_;
  RankTotals totals_;
  QuickDivision divide_;
  std::int32_t n_, thread_;
  std::int32_t earlier_[ranks] = {}; ///< rows of earlier passes, the same in all threads
};

/// Block 1: the number of tokens that choose each expert, sent to the expert's rank.
class ExpertCounts {
public:
  __device__ ExpertCounts(const DeviceJob& job, const NotifyArguments& all, std::uint64_t epoch,
                          bool failed)
      : all_(all), totals_(job, all, epoch, failed),
        thread_(static_cast<std::int32_t>(threadIdx.x)) {}

  /// @param histogram [experts], shared
  /// @return whether the counts are valid
  __device__ bool run(std::int32_t* histogram) const {
    for (std::int32_t expert = thread_; expert < all_.shape.n_experts; expert += notify_threads)
      histogram[expert] = 0;
    __syncthreads();
    count(histogram);
    __syncthreads();
    totals_.publish(histogram);
    return totals_.receive();
  }

private:
  __device__ void count(std::int32_t* histogram) const {
    constexpr int at_once = 8; // loads in flight
    const std::int64_t choices = static_cast<std::int64_t>(all_.tokens) * all_.shape.top_k;
    for (std::int64_t first = thread_; first < choices; first += notify_threads * at_once) {
      std::int32_t experts[at_once];
#pragma unroll
      for (int i = 0; i < at_once; ++i) {
        const std::int64_t choice = first + static_cast<std::int64_t>(i) * notify_threads;
        experts[i] = choice < choices ? __ldg(all_.experts + choice) : no_expert;
      }
#pragma unroll
      for (int i = 0; i < at_once; ++i)
        if (experts[i] >= 0)
          atomicAdd(histogram + experts[i], 1);
    }
  }

  const NotifyArguments& all_;
  ExpertTotals totals_;
  std::int32_t thread_;
};

__global__ void __launch_bounds__(notify_threads, 1)
    notify(const __grid_constant__ DeviceJob job, const __grid_constant__ NotifyArguments all) {
  extern __shared__ std::int32_t histogram[];
  // A dispatch with DispatchArguments::after_notify may begin on free SMs now.
  on_stream::let_next_come();
  const CallFlags* const flags = all.memory.flags;
  const std::uint64_t epoch = device::load_relaxed(&flags->notification) + 1;
  const bool failed = calls_have_failed(flags); // both loads are in flight together
  const bool ok = blockIdx.x == 0 ? RankCounts(job, all, epoch, failed).run()
                                  : ExpertCounts(job, all, epoch, failed).run(histogram);
  finish_notify(job, all, epoch, ok);
}

} // namespace shmemctl::moe
