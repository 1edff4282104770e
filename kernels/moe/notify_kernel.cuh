// Notify: each rank counts its rows for each other one and tells all; then every rank knows where
// its rows go, and how many it receives.
#pragma once

#include "kernels/device/wait.cuh"
#include "kernels/moe/high_throughput.h"
#include "kernels/moe/packed_counts.h"

namespace shmemctl::moe {

inline constexpr int notify_threads = 1024;
inline constexpr int notify_warps = notify_threads / 32;
inline constexpr int tokens_of_thread = 4; ///< in a pass of the block
static_assert(notify_threads * tokens_of_thread <= PackedCounts::most, "counts fit their fields");

/// The word's count, when it has this epoch; 0 if it does not come: then the report names the rank.
__device__ inline std::int32_t wait_for_count(const DeviceJob& job, const std::uint64_t* word,
                                              std::uint64_t epoch, std::int32_t source) {
  device::Patience patience;
  // The word is all that is read, so nothing has to be acquired with it.
  std::uint64_t seen = device::load_relaxed(word);
  while (!has_come(seen, epoch)) {
    if (patience.over(job)) {
      device::report_wait(job, source, count_word(epoch, 0), seen, word);
      return 0;
    }
    seen = device::load_relaxed(word);
  }
  return count_of(seen);
}

__device__ inline PackedCounts from_lanes_below(PackedCounts counts, int distance) {
  PackedCounts other{};
  other.low = __shfl_up_sync(0xffffffffu, static_cast<unsigned long long>(counts.low), distance);
  other.high = __shfl_up_sync(0xffffffffu, static_cast<unsigned long long>(counts.high), distance);
  return other;
}
/// By a warp: the sum of the lanes up to this one.
__device__ inline PackedCounts scan_warp(PackedCounts counts) {
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const PackedCounts other = from_lanes_below(counts, distance);
    if (static_cast<int>(threadIdx.x % 32) >= distance)
      counts = counts + other;
  }
  return counts;
}

/// By block 0: slots of all tokens; then counts to everybody and from everybody.
class RankCounts {
public:
  __device__ RankCounts(const DeviceJob& job, const NotifyArguments& all, std::uint64_t epoch)
      : job_(job), all_(all), divide_(all.shape.local_experts()), epoch_(epoch),
        n_(all.shape.n_ranks), thread_(static_cast<std::int32_t>(threadIdx.x)) {}

  __device__ void run() {
    for (std::int32_t first = 0; first < all_.tokens; first += notify_threads * tokens_of_thread)
      count(first);
    publish();
    receive();
  }

private:
  static constexpr int ranks = max_ranks_of_kernels;

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
  /// Tokens first + i * threads + thread: neighbouring threads read neighbouring tokens.
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
      const PackedCounts mine = PackedCounts::of(masks[i]), sum = scan_warp(mine);
      before[i] = sum - mine;
      if (lane == 31)
        of_warps[i * notify_warps + warp] = sum;
    }
    __syncthreads();
    if (warp == 0)
      scan_warps(of_warps);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < tokens_of_thread; ++i) {
      const int warps_before = i * notify_warps + warp;
      if (warps_before > 0)
        before[i] = before[i] + of_warps[warps_before - 1];
      write_slots(first + i * notify_threads + thread_, masks[i], before[i]);
    }
    const PackedCounts total = of_warps[tokens_of_thread * notify_warps - 1];
#pragma unroll
    for (int rank = 0; rank < ranks; ++rank)
      earlier_[rank] += total.of_rank(rank);
    __syncthreads(); // all have read
  }
  /// By one warp: in place, sums up to each.
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
  __device__ void publish() const {
    if (thread_ >= n_)
      return;
    std::uint64_t* const words = device::pointer_to(
        job_, &all_.memory.cells->counts[half_of_epoch(epoch_)][job_.pe][0], thread_);
#pragma unroll
    for (int rank = 0; rank < ranks; ++rank)
      if (rank < n_)
        device::store_relaxed(words + rank, count_word(epoch_, earlier_[rank]));
  }
  __device__ void receive() const {
    __shared__ std::int32_t counts[ranks * ranks];
    if (thread_ < n_ * n_) {
      const std::int32_t source = thread_ / n_;
      const std::uint64_t begin_ns = device::global_time_ns();
      counts[thread_] = wait_for_count(
          job_, &all_.memory.cells->counts[half_of_epoch(epoch_)][source][thread_ % n_], epoch_,
          source);
      all_.plan.counts[thread_] = counts[thread_];
      if (thread_ % n_ == 0)
        all_.memory.cells->wait_ns[0][source] += device::global_time_ns() - begin_ns;
    }
    __syncthreads();
    if (thread_ < n_)
      all_.plan.bases[thread_] = base_of(counts, n_, job_.pe, thread_);
    if (thread_ == 0 && all_.host_words != nullptr)
      device::store_relaxed(all_.host_words, count_word(epoch_, rows_of(counts, n_, job_.pe)));
  }

  const DeviceJob& job_;
  const NotifyArguments& all_;
  QuickDivision divide_;
  std::uint64_t epoch_;
  std::int32_t n_, thread_;
  std::int32_t earlier_[ranks] = {}; ///< rows of earlier passes: the same in all threads
};

/// By block 1: how many tokens choose each expert, to the expert's rank.
class ExpertCounts {
public:
  __device__ ExpertCounts(const DeviceJob& job, const NotifyArguments& all, std::uint64_t epoch)
      : job_(job), all_(all), epoch_(epoch), local_(all.shape.local_experts()),
        thread_(static_cast<std::int32_t>(threadIdx.x)) {}

  /// @param histogram [experts], shared
  __device__ void run(std::int32_t* histogram) const {
    for (std::int32_t expert = thread_; expert < all_.shape.n_experts; expert += notify_threads)
      histogram[expert] = 0;
    __syncthreads();
    count(histogram);
    __syncthreads();
    publish(histogram);
    receive();
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
  __device__ void publish(const std::int32_t* histogram) const {
    const Shape& shape = all_.shape;
    for (std::int32_t expert = thread_; expert < shape.n_experts; expert += notify_threads) {
      std::uint64_t* const words =
          device::pointer_to(job_, words_from(job_.pe), shape.rank_of_expert(expert));
      device::store_relaxed(words + expert % local_, count_word(epoch_, histogram[expert]));
    }
  }
  __device__ void receive() const {
    for (std::int32_t expert = thread_; expert < local_; expert += notify_threads) {
      std::int32_t count = 0;
      for (std::int32_t source = 0; source < all_.shape.n_ranks; ++source)
        count += wait_for_count(job_, words_from(source) + expert, epoch_, source);
      count = aligned_count(count, all_.shape.expert_alignment);
      all_.plan.expert_counts[expert] = count;
      if (all_.host_words != nullptr)
        device::store_relaxed(all_.host_words + 1 + expert, count_word(epoch_, count));
    }
  }
  __device__ std::uint64_t* words_from(std::int32_t source) const {
    return all_.memory.expert_words +
           (static_cast<std::int64_t>(half_of_epoch(epoch_)) * all_.shape.n_ranks + source) *
               local_;
  }

  const DeviceJob& job_;
  const NotifyArguments& all_;
  std::uint64_t epoch_;
  std::int32_t local_, thread_;
};

__global__ void __launch_bounds__(notify_threads, 1)
    notify(const __grid_constant__ DeviceJob job, const __grid_constant__ NotifyArguments all) {
  extern __shared__ std::int32_t histogram[];
  Cells* const cells = all.memory.cells;
  const std::uint64_t epoch = device::load_relaxed(&cells->notification) + 1;
  if (blockIdx.x == 0)
    RankCounts(job, all, epoch).run();
  else
    ExpertCounts(job, all, epoch).run(histogram);
  __syncthreads();
  if (threadIdx.x != 0)
    return;
  // The last block counts the notification: both have read its number.
#ifndef SHMEMCTL_MUTATE_MOE_NOTIFY_ORDER
  device::fence_system();
#endif
  if (device::atomic_word_add(&cells->blocks_done, 1u) + 1 == gridDim.x) {
    cells->blocks_done = 0;
    device::store_relaxed(&cells->notification, epoch);
  }
}

} // namespace shmemctl::moe
