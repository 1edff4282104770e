// Synchronisation of a call with the ranks of this rank's rail: those with the same local index on
// the other nodes.
#pragma once

#include "kernels/device/rma.cuh"
#include "kernels/device/wait.cuh"
#include "kernels/moe/call.cuh"
#include "kernels/moe/high_throughput_internode.h"

namespace shmemctl::moe {

using namespace device; // tests define blockIdx and the like in that namespace

/// Increments a counter in shared memory.
__device__ inline void add_shared(std::int32_t* at) {
#ifdef __CUDACC__
  atomicAdd(at, 1);
#else
  __atomic_fetch_add(at, 1, __ATOMIC_RELAXED);
#endif
}

/// Raises a value in shared memory to at least `value`.
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

/// Called by one thread per rank and launch: adds `ns` to the time spent waiting for that rank.
/// @param what first index of wait_ns: 0: for the rank to enter the call or to send its counts
__device__ inline void add_wait(const InternodeShape& shape, const InternodeMemory& memory,
                                std::int32_t me, int what, std::int32_t rank, std::uint64_t ns) {
  const std::int32_t local = rank - shape.first_rank_of_node(me);
  if (local >= 0 && local < shape.node_ranks)
    memory.node.flags->wait_ns[what][local] += ns;
  else if (shape.rail(me, shape.node_of_rank(rank)) == rank)
    memory.rails->wait_ns[what][shape.node_of_rank(rank)] += ns;
}

/// One call, as seen by the ranks of a rail.
///
/// The buffers at a peer are safe to overwrite in call e once that peer has entered call e: it has
/// then read the rows and sums of all earlier calls. So a rank sends only after it has seen the
/// flags of its whole rail. This rank's send buffers are then safe to overwrite as well: a peer
/// that has entered call e has received everything that was sent in earlier calls.
class Rails {
public:
  __device__ Rails(const DeviceJob& job, const InternodeShape& shape, const InternodeMemory& memory,
                   std::uint64_t epoch)
      : job_(job), shape_(shape), memory_(memory), epoch_(epoch),
        node_(shape.node_of_rank(job.pe)) {}

  std::int32_t __device__ node() const { return node_; }
  /// The node with that peer index, and the rank of this rail on it.
  std::int32_t __device__ peer_node(std::int32_t peer) const {
    return shape_.peer_node(node_, peer);
  }
  std::int32_t __device__ peer_rank(std::int32_t peer) const {
    return shape_.rail(job_.pe, peer_node(peer));
  }
  /// The peer index that this node has at that node.
  std::int32_t __device__ index_at_peer(std::int32_t peer) const {
    return shape_.peer_index(peer_node(peer), node_);
  }

  /// Called once, by all threads of the grid: tells the rail that this rank has entered the call.
  __device__ void announce() const {
    if (blockIdx.x != 0)
      return;
    for (int peer = device::Block::rank(); peer < shape_.other_nodes();
         peer += device::Block::size())
      set_flag(turn_of_call(epoch_), epoch_, peer_rank(peer));
  }
  /// Called by all threads of a block when the call has failed: ranks of the rail that wait for
  /// this one, in this call or the next one, fail at once. A network may deliver the failure before
  /// the call's number, which then overwrites it: so it is put into both flags, and a rank that
  /// misses both times out.
  /// @param failure what Call::finish() or Call::fail() has returned
  __device__ void announce_failure(std::uint64_t failure) const {
    for (int peer = device::Block::rank(); peer < shape_.other_nodes();
         peer += device::Block::size())
      for (std::int32_t turn = 0; turn < 2; ++turn)
        set_flag(turn, failure, peer_rank(peer));
  }
  /// Called by all threads of a block: waits until the whole rail has entered the call. False: a
  /// rank timed out or its call failed, and the report names the missing rank.
  __device__ bool wait_for_all() const {
    bool all = !has_failed(epoch_);
    for (int peer = device::Block::rank(); peer < shape_.other_nodes();
         peer += device::Block::size())
      all = all && wait(&memory_.rails->entered[turn_of_call(epoch_)][peer_node(peer)], peer, 0,
                        blockIdx.x == 0);
    return device::Block::all(all);
  }
  /// Called by one thread: waits until that peer has put this call's number into `word`. False:
  /// timeout, or its call failed, and the report names the missing rank.
  /// @param counts whether to add the time to wait_ns
  __device__ bool wait(const std::uint64_t* word, std::int32_t peer, int what, bool counts) const {
    const std::uint64_t begin_ns = counts ? device::global_time_ns() : 0;
    const std::uint64_t seen = wait_for_number(word, peer);
    if (counts)
      memory_.rails->wait_ns[what][peer_node(peer)] += device::global_time_ns() - begin_ns;
    CallFlags* const flags = memory_.node.flags;
    if (seen < epoch_)
      record_failure(job_, flags, epoch_, peer_rank(peer));
    else if (has_failed(seen))
      adopt_failure(job_, flags, seen, peer_rank(peer));
    return seen >= epoch_ && !has_failed(seen);
  }

private:
  /// @return the flag's value once it is this call's number, or after the timeout; or the peer's
  /// failure, if it stores one in the meantime
  __device__ std::uint64_t wait_for_number(const std::uint64_t* word, std::int32_t peer) const {
    constexpr unsigned polls_per_failure_check =
        16; // polls of the flag per poll of the failure flag
    const std::uint64_t* const failure =
        &memory_.rails->entered[turn_of_call(epoch_ + 1)][peer_node(peer)];
    std::uint64_t seen = 0, failed = 0;
    unsigned polls = 0;
    const auto poll = [&] {
      seen = device::load_acquire(word);
      if (seen >= epoch_)
        return true;
      if (++polls % polls_per_failure_check == 0)
        failed = device::load_relaxed(failure);
      return has_failed(failed);
    };
    if (!device::poll_until(job_, poll))
      device::report_wait(job_, peer_rank(peer), epoch_, seen, word);
    return has_failed(failed) ? failed : seen;
  }
  /// Sets one of the two `entered` flags at a rank. Release: what earlier kernels of this rank have
  /// read is ordered before, because a rank that sees the flag overwrites it.
  __device__ void set_flag(std::int32_t turn, std::uint64_t value, std::int32_t rank) const {
    std::uint64_t* const word = &memory_.rails->entered[turn][node_];
    if (std::uint64_t* const there = device::pointer_to(job_, word, rank)) {
      device::store_release(there, value);
    } else {
      device::network_release(); // the request itself is relaxed
      device::put_value(job_, word, value, rank);
    }
  }

  const DeviceJob& job_;
  const InternodeShape& shape_;
  const InternodeMemory& memory_;
  std::uint64_t epoch_;
  std::int32_t node_;
};

} // namespace shmemctl::moe
