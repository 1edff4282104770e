// How the ranks of a dispatch or combine (all, or those of a node) begin and end a call together,
// without a barrier; and how a timeout of one of them fails the call on all.
#pragma once

#include "kernels/device/wait.cuh"
#include "kernels/moe/call_flags.h"

namespace shmemctl::moe {

using namespace device; // tests have blockIdx and the like there

/// By the calling thread, when a peer's word has_failed(): reports the missing rank, and records
/// the failure for the end of the call.
/// @param reporter whose word it is
__device__ inline void adopt_failure(const DeviceJob& job, CallFlags* flags, std::uint64_t word,
                                     std::int32_t reporter) {
  device::store_relaxed(&flags->failure, word);
  device::report_wait(job, missing_rank_of(word), number_of_call(word),
                      static_cast<std::uint64_t>(reporter), nullptr, WaitKind::call_failed);
}
/// By the calling thread, when a wait for `rank` timed out, which has been reported: records the
/// failure for the end of the call. Where another wait of this PE timed out first, and ended this
/// one (Patience), the missing rank is that one's.
__device__ inline void record_failure(const DeviceJob& job, CallFlags* flags, std::uint64_t epoch,
                                      std::int32_t rank) {
  std::uint64_t state = device::load_acquire(&job.report->state);
  while (state == WaitReport::being_written)
    state = device::load_acquire(&job.report->state);
  const std::int32_t reported = state == WaitReport::written ? job.report->peer : -1;
  device::store_relaxed(&flags->failure,
                        failed_call(number_of_call(epoch), reported < 0 ? rank : reported));
}

/// One call, as the threads of a grid's blocks see it.
class Call {
public:
  /// @param first the first of `n_ranks` neighbouring ranks, this one among them
  __device__ Call(const DeviceJob& job, CallFlags* flags, std::int32_t n_ranks,
                  std::int32_t first = 0)
      : job_(job), flags_(flags), n_ranks_(n_ranks), first_(first),
        epoch_(device::load_relaxed(&flags->call) + 1) {}

  /// The call's number; it has_failed() if an earlier call of this rank did.
  __device__ std::uint64_t epoch() const { return epoch_; }

  /// By all threads of the grid, once: tells everybody that this rank has come.
  __device__ void announce() const {
    if (blockIdx.x == 0)
      set_all_flags(flags_->entered, epoch_);
  }
  /// By all threads of a block: until all ranks have come. False: one has not, or has failed, and
  /// the report names who was missing. Blocks may disagree: finish() counts those that failed.
  __device__ bool wait_for_all() const {
#ifdef SHMEMCTL_MUTATE_MOE_ENTERED_NO_WAIT
    return true;
#else
    return device::Block::all(wait_for_flags(flags_->entered, flags_->wait_ns[0], blockIdx.x == 0));
#endif
  }
  /// By all threads of the grid: what they moved is there (and each of them has waited for its own
  /// bulk copies). The last block tells everybody and waits for everybody; the others leave.
  ///
  /// If any block has not done its part, the failure is stored on all ranks in place of the call's
  /// number, also for ranks that have not begun the call yet: no rank may take what is in its
  /// memory for this call's.
  ///
  /// @param ok of this block: everybody came, and all that it moves was moved
  /// @return in the last block, the word of the failure if there was one; else 0
  __device__ std::uint64_t finish(bool ok) const {
#ifdef SHMEMCTL_MUTATE_MOE_FAILURE_NOT_SENT // a rank that timed out says that it has moved
                                            // everything
    ok = true;
#endif
    device::Block::sync();
    bool last = false, all_ok = true;
    if (device::Block::rank() == 0) {
      const std::uint32_t mine = count_of_block(ok);
#ifdef SHMEMCTL_MUTATE_MOE_CALL_ORDER
      const std::uint32_t done = device::atomic_word_add(&flags_->blocks_done, mine) + mine;
#else
      // Release and acquire of this GPU's scope: the last block has seen what all blocks did, and
      // its own releases below pass that on to the other ranks, as grid_meet() and its callers do.
      const std::uint32_t done = device::atomic_word_add_ordered(&flags_->blocks_done, mine) + mine;
#endif
      last = blocks_in(done) == gridDim.x;
      all_ok = done == gridDim.x;
    }
    if (device::Block::all(!last))
      return 0;
    // One more barrier of the last block, which is all that failures cost where there are none.
    all_ok = device::Block::all(all_ok);
    if (all_ok) {
      set_all_flags(flags_->finished, epoch_);
#ifndef SHMEMCTL_MUTATE_MOE_FINISHED_NO_WAIT
      all_ok = wait_for_flags(flags_->finished, flags_->wait_ns[1], true);
#endif
      all_ok = device::Block::all(all_ok);
    } else {
      set_all_flags(flags_->finished, device::load_relaxed(&flags_->failure));
    }
    const std::uint64_t failure = all_ok ? 0 : device::load_relaxed(&flags_->failure);
    if (failure != 0) // ranks that begin this call, or the next one, fail there
      set_all_flags(flags_->entered, failure);
    if (device::Block::rank() == 0) {
      device::store_relaxed(&flags_->blocks_done, 0u);
      device::store_relaxed(&flags_->call, failure != 0 ? failure : epoch_);
    }
    return failure;
  }

  /// By one thread, instead of a call, behind a notify that failed: all calls from now on fail,
  /// here and on the ranks that this is stored to. @return the word of the failure
  __device__ std::uint64_t fail() const {
    device::fence_system(); // another block may have recorded it
    const std::uint64_t failure = device::load_relaxed(&flags_->failure);
    for (int rank = 0; rank < n_ranks_; ++rank)
      set_flag(flags_->entered, rank, failure);
    device::store_relaxed(&flags_->call, failure);
    return failure;
  }

private:
  /// My word on every rank: the call's epoch. Release: what earlier kernels of mine, or this
  /// block's threads before a sync, have read or written comes before.
  __device__ void set_all_flags(std::uint64_t* words, std::uint64_t word) const {
    for (int rank = device::Block::rank(); rank < n_ranks_; rank += device::Block::size())
      set_flag(words, rank, word);
  }
  __device__ void set_flag(std::uint64_t* words, int rank, std::uint64_t word) const {
    std::uint64_t* const there = device::pointer_to(job_, words + job_.pe - first_, first_ + rank);
#ifdef SHMEMCTL_MUTATE_MOE_ENTERED_RELAXED
    if (words == flags_->entered)
      return device::store_relaxed(there, word);
#endif
    device::store_release(there, word);
  }
  /// Whether this thread's ranks have told me. @param counts whether to add up the time
  __device__ bool wait_for_flags(const std::uint64_t* words, std::uint64_t* wait_ns,
                                 bool counts) const {
    if (has_failed(epoch_)) { // an earlier call did: no wait, and this call is reported too
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
