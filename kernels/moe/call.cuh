// How the ranks of a high-throughput dispatch or combine (all ranks, or those of one node) begin
// and complete a call together, by flags within the kernel instead of separate barriers, and how a
// timeout of one rank fails the call on all ranks.
#pragma once

#include "kernels/device/wait.cuh"
#include "kernels/moe/call_flags.h"

namespace shmemctl::moe {

using namespace device; // tests define blockIdx and the like in that namespace

/// Called by one thread that has read a failure (has_failed()) from a flag: reports the missing
/// rank and records the failure for the end of the call.
/// @param reporter the rank that stored the flag
__device__ inline void adopt_failure(const DeviceJob& job, CallFlags* flags, std::uint64_t word,
                                     std::int32_t reporter) {
  device::store_relaxed(&flags->failure, word);
  device::report_wait(job, missing_rank_of(word), number_of_call(word),
                      static_cast<std::uint64_t>(reporter), nullptr, WaitKind::call_failed);
}
/// Called by one thread whose wait for `rank` timed out and has been reported: records the failure
/// for the end of the call. If another wait of this PE timed out first and thereby ended this one,
/// the missing rank is the one of that wait.
__device__ inline void record_failure(const DeviceJob& job, CallFlags* flags, std::uint64_t epoch,
                                      std::int32_t rank) {
  std::uint64_t state = 0;
  device::poll_or_expire(
      [&] {
        state = device::load_acquire(&job.report->state);
        return state != WaitReport::being_written;
      },
      [&](std::uint64_t waited_ns) { return waited_ns > job.timeout_ns; });
  const std::int32_t reported = state == WaitReport::written ? job.report->peer : -1;
  device::store_relaxed(&flags->failure,
                        failed_call(number_of_call(epoch), reported < 0 ? rank : reported));
}

/// Whether a call of this rank has failed. A block of notify then waits for no rank, and the plan
/// sends nothing.
__device__ inline bool calls_have_failed(const CallFlags* flags) {
  return has_failed(device::load_relaxed(&flags->call));
}

/// One call, as seen by the threads of a grid.
class Call {
public:
  /// @param first the first of `n_ranks` consecutive ranks, which include this one
  __device__ Call(const DeviceJob& job, CallFlags* flags, std::int32_t n_ranks,
                  std::int32_t first = 0)
      : job_(job), flags_(flags), n_ranks_(n_ranks), first_(first),
        epoch_(device::load_relaxed(&flags->call) + 1) {}

  /// The number of the call; has_failed() if an earlier call of this rank failed.
  __device__ std::uint64_t epoch() const { return epoch_; }

  /// Called once, by all threads of the grid: tells all ranks, by a flag, that this one has entered
  /// the call.
  __device__ void announce() const {
    if (blockIdx.x == 0)
      set_all_flags(flags_->entered, epoch_);
  }
  /// Called by all threads of a block: waits until every rank has entered the call, so that their
  /// buffers may be overwritten. False: a rank timed out or has failed, and the report names the
  /// missing rank. Blocks may disagree: finish() counts those that failed.
  __device__ bool wait_for_all() const {
    return device::Block::all(wait_for_flags(flags_->entered, flags_->wait_ns[0], blockIdx.x == 0));
  }
  /// Called by all threads of the grid after their stores (each thread has waited for its own bulk
  /// copies). The last block sets the `finished` flag on all ranks and waits for theirs; the other
  /// blocks return.
  ///
  /// If any block failed, the failure is stored on all ranks in place of the call's number, also
  /// for ranks that have not entered the call yet: no rank may take the contents of its buffers for
  /// the data of this call.
  ///
  /// @param ok of this block: every rank has entered, and all its stores are complete
  /// @return in the last block, failed_call() if the call failed; else 0
  __device__ std::uint64_t finish(bool ok) const {
    device::Block::sync();
    bool last = false, all_ok = true;
    if (device::Block::rank() == 0) {
      const std::uint32_t block_count = count_of_block(ok);
      // Acquire-release at GPU scope: the last block observes the stores of all blocks, and its
      // system scope releases below make them visible to the other ranks.
      const std::uint32_t done =
          device::atomic_word_add_ordered(&flags_->blocks_done, block_count) + block_count;
      last = blocks_in(done) == gridDim.x;
      all_ok = done == gridDim.x;
    }
    if (device::Block::all(!last))
      return 0;
    // One more block barrier, the only cost of failure handling when there is no failure.
    all_ok = device::Block::all(all_ok);
    if (all_ok) {
      set_all_flags(flags_->finished, epoch_);
      all_ok = wait_for_flags(flags_->finished, flags_->wait_ns[1], true);
      all_ok = device::Block::all(all_ok);
    } else {
      set_all_flags(flags_->finished, device::load_relaxed(&flags_->failure));
    }
    const std::uint64_t failure = all_ok ? 0 : device::load_relaxed(&flags_->failure);
    if (failure != 0) // ranks that enter this call, or the next one, fail as well
      set_all_flags(flags_->entered, failure);
    if (device::Block::rank() == 0) {
      device::store_relaxed(&flags_->blocks_done, 0u);
      device::store_relaxed(&flags_->call, failure != 0 ? failure : epoch_);
    }
    return failure;
  }

  /// Called by one thread after a notify that failed, instead of a call: all later calls fail, on
  /// this rank and on those that it stores the failure to. @return failed_call()
  __device__ std::uint64_t fail() const {
    device::fence_system(); // another block may have recorded the failure
    const std::uint64_t failure = device::load_relaxed(&flags_->failure);
    for (int rank = 0; rank < n_ranks_; ++rank)
      set_flag(flags_->entered, rank, failure);
    device::store_relaxed(&flags_->call, failure);
    return failure;
  }

private:
  /// Sets this rank's flag on every rank. Release: everything that earlier kernels of this rank, or
  /// the threads of this block before a block barrier, have read or written is ordered before it.
  __device__ void set_all_flags(std::uint64_t* words, std::uint64_t word) const {
    for (int rank = device::Block::rank(); rank < n_ranks_; rank += device::Block::size())
      set_flag(words, rank, word);
  }
  __device__ void set_flag(std::uint64_t* words, int rank, std::uint64_t word) const {
    std::uint64_t* const there = device::pointer_to(job_, words + job_.pe - first_, first_ + rank);
    device::store_release(there, word);
  }
  /// Waits for the flags of the ranks that this thread polls.
  /// @param counts whether to add the time to wait_ns
  __device__ bool wait_for_flags(const std::uint64_t* words, std::uint64_t* wait_ns,
                                 bool counts) const {
    if (has_failed(epoch_)) { // an earlier call failed: do not wait, and report this call, too
      if (device::Block::rank() == 0)
        adopt_failure(job_, flags_, device::load_relaxed(&flags_->failure), job_.pe);
      return false;
    }
    bool all = true;
    const std::uint64_t begin_ns = counts ? device::global_time_ns() : 0;
    for (int rank = device::Block::rank(); rank < n_ranks_; rank += device::Block::size()) {
      bool ok = true;
      const std::uint64_t seen =
          device::wait_at_least(job_, words + rank, epoch_, first_ + rank, ok);
      if (!ok)
        record_failure(job_, flags_, epoch_, first_ + rank);
      else if (has_failed(seen))
        adopt_failure(job_, flags_, seen, first_ + rank);
      all = all && ok && !has_failed(seen);
      if (counts)
        wait_ns[rank] += device::global_time_ns() - begin_ns;
    }
    return all;
  }

  const DeviceJob& job_;
  CallFlags* flags_;
  std::int32_t n_ranks_, first_;
  std::uint64_t epoch_;
};

} // namespace shmemctl::moe
