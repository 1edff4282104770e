// How the ranks of a dispatch or combine (all, or those of a node) begin and end a call together,
// without a barrier.
#pragma once

#include "kernels/device/wait.cuh"
#include "kernels/moe/cells.h"

namespace shmemctl::moe {

using namespace device; // tests have blockIdx and the like there

/// One call, as the threads of a grid's blocks see it.
class Call {
public:
  /// @param first the first of `n_ranks` neighbouring ranks, this one among them
  __device__ Call(const DeviceJob& job, Cells* cells, std::int32_t n_ranks, std::int32_t first = 0)
      : job_(job), cells_(cells), n_ranks_(n_ranks), first_(first),
        epoch_(device::load_relaxed(&cells->call) + 1) {}

  __device__ std::uint64_t epoch() const { return epoch_; }

  /// By all threads of the grid, once: tells everybody that this rank has come.
  __device__ void announce() const {
    if (blockIdx.x == 0)
      tell_all(cells_->entered);
  }
  /// By all threads of a block: until all ranks have come. False: one has not, and the report
  /// names it.
  __device__ bool wait_for_all() const {
    return device::Block::all(hear_all(cells_->entered, cells_->wait_ns[0], blockIdx.x == 0));
  }
  /// By all threads of the grid: what they moved is there (and each of them has waited for its own
  /// bulk copies). The last block tells everybody and waits for everybody; the others leave.
  __device__ void finish() const {
    device::Block::sync();
    bool last = false;
    if (device::Block::rank() == 0) {
#ifdef SHMEMCTL_MUTATE_MOE_CALL_ORDER
      last = device::atomic_word_add(&cells_->blocks_done, 1u) + 1 == gridDim.x;
#else
      // Release and acquire of this GPU's scope: the last block has seen what all blocks did, and
      // its own releases below pass that on to the other ranks, as grid_meet() and its callers do.
      last = device::atomic_word_add_ordered(&cells_->blocks_done, 1u) + 1 == gridDim.x;
#endif
    }
    if (device::Block::all(!last))
      return;
    tell_all(cells_->finished);
    hear_all(cells_->finished, cells_->wait_ns[1], true);
    device::Block::sync();
    if (device::Block::rank() == 0) {
      device::store_relaxed(&cells_->blocks_done, 0u);
      device::store_relaxed(&cells_->call, epoch_);
    }
  }

private:
  /// My word on every rank: the call's epoch. Release: what earlier kernels of mine, or this
  /// block's threads before a sync, have read or written comes before.
  __device__ void tell_all(const std::uint64_t* words) const {
    for (int rank = device::Block::rank(); rank < n_ranks_; rank += device::Block::size())
      device::store_release(device::pointer_to(job_,
                                               const_cast<std::uint64_t*>(words) + job_.pe - first_,
                                               first_ + rank),
                            epoch_);
  }
  /// Whether this thread's ranks have told me. @param counts whether to add up the time
  __device__ bool hear_all(const std::uint64_t* words, std::uint64_t* wait_ns, bool counts) const {
    bool all = true;
    const std::uint64_t begin_ns = counts ? device::global_time_ns() : 0;
    for (int rank = device::Block::rank(); rank < n_ranks_; rank += device::Block::size()) {
      bool ok = true;
      device::wait_at_least(job_, words + rank, epoch_, first_ + rank, ok);
      all = all && ok;
      if (counts)
        wait_ns[rank] += device::global_time_ns() - begin_ns;
    }
    return all;
  }

  const DeviceJob& job_;
  Cells* cells_;
  std::int32_t n_ranks_, first_;
  std::uint64_t epoch_;
};

} // namespace shmemctl::moe
