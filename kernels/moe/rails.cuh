// How a rank has to do with its rail: the ranks with the same place on other nodes.
#pragma once

#include "kernels/device/rma.cuh"
#include "kernels/device/wait.cuh"
#include "kernels/moe/hybrid.h"

namespace shmemctl::moe {

using namespace device; // tests have blockIdx and the like there

/// One more, of words in a block's shared memory.
__device__ inline void add_shared(std::int32_t* at) {
#ifdef __CUDACC__
  atomicAdd(at, 1);
#else
  __atomic_fetch_add(at, 1, __ATOMIC_RELAXED);
#endif
}

/// At least `value`, of a word there.
__device__ inline void raise_shared(std::uint64_t* at, std::uint64_t value) {
#ifdef __CUDACC__
  atomicMax(reinterpret_cast<unsigned long long*>(at), static_cast<unsigned long long>(value));
#else
  std::uint64_t seen = __atomic_load_n(at, __ATOMIC_RELAXED);
  while (seen < value && !__atomic_compare_exchange_n(at, &seen, value, false, __ATOMIC_RELAXED,
                                                      __ATOMIC_RELAXED)) {
  }
#endif
}

/// By one thread for each rank and launch: `ns` more that were spent waiting for it.
/// @param what 0: until it had begun, or told its counts; 1: for its rows
__device__ inline void add_wait(const HybridShape& shape, const HybridMemory& memory,
                                std::int32_t me, int what, std::int32_t rank, std::uint64_t ns) {
  const std::int32_t mate = rank - shape.first_mate(me);
  if (mate >= 0 && mate < shape.node_ranks)
    memory.node.cells->wait_ns[what][mate] += ns;
  else if (shape.rail(me, shape.node_of_rank(rank)) == rank)
    memory.rails->wait_ns[what][shape.node_of_rank(rank)] += ns;
}

/// One call, towards the ranks of the rail. What a rank sends to its rail may overwrite what the
/// rail has read in earlier calls, so it waits until the rail has begun this one; and who has begun
/// a call has received all of the calls before it, so what was sent from may be written again.
class Rails {
public:
  __device__ Rails(const DeviceJob& job, const HybridShape& shape, const HybridMemory& memory,
                   std::uint64_t epoch)
      : job_(job), shape_(shape), memory_(memory), epoch_(epoch),
        node_(shape.node_of_rank(job.pe)) {}

  std::int32_t __device__ node() const { return node_; }
  /// The other node in that place, and the rail's rank on it.
  std::int32_t __device__ node_in(std::int32_t place) const { return shape_.node_in(node_, place); }
  std::int32_t __device__ rank_in(std::int32_t place) const {
    return shape_.rail(job_.pe, node_in(place));
  }
  /// The place of this node among the others of the node in `place`.
  std::int32_t __device__ place_there(std::int32_t place) const {
    return shape_.place_of(node_in(place), node_);
  }

  /// By all threads of the grid, once: this rank has begun the call.
  __device__ void announce() const {
    if (blockIdx.x != 0)
      return;
    for (int place = device::Block::rank(); place < shape_.other_nodes();
         place += device::Block::size())
      tell(&memory_.rails->entered[node_], rank_in(place));
  }
  /// By all threads of a block: until the whole rail has begun it. False: a rank has not come, and
  /// the report names it.
  __device__ bool wait_for_all() const {
    bool all = true;
    for (int place = device::Block::rank(); place < shape_.other_nodes();
         place += device::Block::size())
      all = wait(&memory_.rails->entered[node_in(place)], place, 0, blockIdx.x == 0) && all;
    return device::Block::all(all);
  }
  /// By one thread: until the rail's rank in that place has written this call's number there.
  /// @param counts whether to add up the time
  __device__ bool wait(const std::uint64_t* word, std::int32_t place, int what, bool counts) const {
    const std::uint64_t begin_ns = counts ? device::global_time_ns() : 0;
    bool ok = true;
    device::wait_at_least(job_, word, epoch_, rank_in(place), ok);
    if (counts)
      memory_.rails->wait_ns[what][node_in(place)] += device::global_time_ns() - begin_ns;
    return ok;
  }

private:
  /// Release: what earlier kernels have read comes before, since whoever hears of it writes there.
  __device__ void tell(std::uint64_t* word, std::int32_t rank) const {
    if (std::uint64_t* const there = device::pointer_to(job_, word, rank)) {
      device::store_release(there, epoch_);
    } else {
#ifndef SHMEMCTL_MUTATE_MOE_RAIL_RELEASE
      device::network_release(); // the request itself is relaxed
#endif
      device::put_value(job_, word, epoch_, rank);
    }
  }

  const DeviceJob& job_;
  const HybridShape& shape_;
  const HybridMemory& memory_;
  std::uint64_t epoch_;
  std::int32_t node_;
};

} // namespace shmemctl::moe
