// How notify sends counts from rank to rank, and computes the plan from them. This part also
// compiles for host threads, on which tests run it.
#pragma once

#include "kernels/moe/call.cuh"
#include "kernels/moe/high_throughput.h"

namespace shmemctl::moe {

/// Waits for the count of that epoch. False: timeout, and the report names the rank.
__device__ inline bool wait_for_count(const DeviceJob& job, const std::uint64_t* word,
                                      std::uint64_t epoch, std::int32_t source,
                                      std::int32_t& count) {
  std::uint64_t seen = 0;
  const auto poll = [&] {
    // Relaxed loads suffice: the flag itself carries the count, no other data is read.
    seen = device::load_relaxed(word);
    return has_come(seen, epoch);
  };
  if (!device::poll_until(job, poll)) {
    device::report_wait(job, source, count_word(epoch, 0), seen, word);
    return false;
  }
  count = count_of(seen);
  return true;
}

/// Exchanges row counts by source and destination rank, and computes the bases of this rank's rows.
/// Called by the threads of a block.
class RankTotals {
public:
  static constexpr int ranks = max_ranks_of_kernels;

  /// @param failed calls_have_failed()
  __device__ RankTotals(const DeviceJob& job, const NotifyArguments& all, std::uint64_t epoch,
                        bool failed)
      : job_(job), all_(all), epoch_(epoch), buffer_(buffer_of_epoch(epoch)), failed_(failed),
        n_(all.shape.n_ranks), thread_(device::Block::rank()) {}

  /// @param counts [ranks]: the number of this rank's rows for each rank
  __device__ void publish(const std::int32_t (&counts)[ranks]) const {
    for (std::int32_t to = thread_; to < n_; to += device::Block::size()) {
      std::uint64_t* const words =
          device::pointer_to(job_, &all_.memory.flags->counts[buffer_][job_.pe][0], to);
#pragma unroll
      for (int rank = 0; rank < ranks; ++rank)
        if (rank < n_)
          device::store_relaxed(words + rank, count_word(epoch_, counts[rank]));
    }
  }
  /// @param counts [ranks * ranks], which the block's threads share
  /// @return whether the plan is valid, the same in all threads; otherwise it sends nothing
  __device__ bool receive(std::int32_t* counts) const {
    bool all_arrived = !failed_;
    for (std::int32_t i = thread_; i < n_ * n_; i += device::Block::size()) {
      const std::int32_t source = i / n_;
      const std::uint64_t begin_ns = device::global_time_ns();
      counts[i] = 0;
      if (!failed_ && !wait_for_count(job_, &all_.memory.flags->counts[buffer_][source][i % n_],
                                      epoch_, source, counts[i])) {
        record_failure(job_, all_.memory.flags, epoch_, source);
        all_arrived = false;
      }
      all_.plan.counts[i] = counts[i];
      if (i % n_ == 0)
        all_.memory.flags->wait_ns[0][source] += device::global_time_ns() - begin_ns;
    }
    all_arrived = device::Block::all(all_arrived);
    for (std::int32_t rank = thread_; rank < n_; rank += device::Block::size())
      all_.plan.bases[rank] = all_arrived ? base_of(counts, n_, job_.pe, rank) : 0;
    if (!all_arrived)
      clear();
    if (thread_ == 0 && all_.host_words != nullptr)
      device::store_relaxed(all_.host_words,
                            count_word(epoch_, all_arrived ? rows_of(counts, n_, job_.pe) : -1));
    return all_arrived;
  }

private:
  __device__ void clear() const {
    for (std::int64_t i = thread_; i < static_cast<std::int64_t>(all_.tokens) * n_;
         i += device::Block::size())
      all_.plan.slots[i] = -1;
    for (std::int32_t i = thread_; i < n_ * n_; i += device::Block::size())
      all_.plan.counts[i] = 0;
  }

  const DeviceJob& job_;
  const NotifyArguments& all_;
  std::uint64_t epoch_;
  std::int32_t buffer_;
  bool failed_;
  std::int32_t n_, thread_;
};

/// Exchanges how many tokens choose each expert. Called by the threads of a block.
class ExpertTotals {
public:
  /// @param failed calls_have_failed()
  __device__ ExpertTotals(const DeviceJob& job, const NotifyArguments& all, std::uint64_t epoch,
                          bool failed)
      : job_(job), all_(all), epoch_(epoch), failed_(failed), local_(all.shape.local_experts()),
        thread_(device::Block::rank()) {}

  /// Sends each expert's count to the rank of that expert.
  /// @param chosen [experts]: how many of this rank's tokens choose each expert
  __device__ void publish(const std::int32_t* chosen) const {
    const Shape& shape = all_.shape;
    for (std::int32_t expert = thread_; expert < shape.n_experts; expert += device::Block::size()) {
      std::uint64_t* const words =
          device::pointer_to(job_, words_from(job_.pe), shape.rank_of_expert(expert));
      device::store_relaxed(words + expert % local_, count_word(epoch_, chosen[expert]));
    }
  }
  /// @return whether the counts are valid, the same in all threads; otherwise they are 0
  __device__ bool receive() const {
    bool all_arrived = !failed_;
    for (std::int32_t expert = thread_; expert < local_ && !failed_;
         expert += device::Block::size()) {
      std::int32_t count = 0;
      for (std::int32_t source = 0; source < all_.shape.n_ranks; ++source) {
        std::int32_t of_source = 0;
        if (!wait_for_count(job_, words_from(source) + expert, epoch_, source, of_source)) {
          record_failure(job_, all_.memory.flags, epoch_, source);
          all_arrived = false;
        }
        count += of_source;
      }
      all_.plan.expert_counts[expert] = aligned_count(count, all_.shape.expert_alignment);
    }
    all_arrived = device::Block::all(all_arrived);
    for (std::int32_t expert = thread_; expert < local_; expert += device::Block::size()) {
      if (!all_arrived)
        all_.plan.expert_counts[expert] = 0;
      if (all_.host_words != nullptr)
        device::store_relaxed(
            all_.host_words + 1 + expert,
            count_word(epoch_, all_arrived ? all_.plan.expert_counts[expert] : -1));
    }
    return all_arrived;
  }

private:
  __device__ std::uint64_t* words_from(std::int32_t source) const {
    return all_.memory.expert_count_flags +
           (static_cast<std::int64_t>(buffer_of_epoch(epoch_)) * all_.shape.n_ranks + source) *
               local_;
  }

  const DeviceJob& job_;
  const NotifyArguments& all_;
  std::uint64_t epoch_;
  bool failed_;
  std::int32_t local_, thread_;
};

/// Called by all threads of the grid after receive(). The last block advances the notify counter,
/// because by then every block has read it; if any block failed, all later calls fail.
/// @param ok of this block, the same in its threads
__device__ inline void finish_notify(const DeviceJob& job, const NotifyArguments& all,
                                     std::uint64_t epoch, bool ok) {
  CallFlags* const flags = all.memory.flags;
  bool failed = false;
  if (device::Block::rank() == 0) {
    device::fence_system();
    const std::uint32_t block_count = count_of_block(ok);
    const std::uint32_t done =
        device::atomic_word_add(&flags->blocks_done, block_count) + block_count;
    if (blocks_in(done) == gridDim.x) {
      failed = done != gridDim.x;
      device::store_relaxed(&flags->blocks_done, 0u);
      device::store_relaxed(&flags->notification, epoch);
    }
    if (failed)
      Call(job, flags, all.shape.n_ranks).fail();
  }
}

} // namespace shmemctl::moe
