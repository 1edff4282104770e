// Posting a WQE, from the reservation of WQEBBs to the doorbell, and what quiet waits for: the same
// steps for host threads and kernels. The caller's `Waits` says how to wait:
//   bool room(end)     returns when poll_for_room(end) is true; false: gave up
//   bool turn(attempt) returns when attempt() is true; false: gave up
// A thread that gives up before try_publish() has published its WQEBBs blocks all later WQEs.
#pragma once

#include "src/abi/send_queue.h"
#include "src/abi/wqe.h"

namespace shmemctl::mlx5 {

/// A single thread that posts for itself. A group of threads that post together (a warp: WarpGroup)
/// has the same members, and all its threads call them in the same order:
///   rank(), size()       of this thread, and how many there are; rank 0 is the leader
///   from_leader(value)   broadcast: the leader's value, in all threads
///   last_with(flag)      the highest rank whose flag is true; -1 if there is none
///   sync()               barrier of the group that also orders memory
struct Alone {
  SHMEMCTL_HOST_DEVICE static constexpr std::uint32_t rank() { return 0; }
  SHMEMCTL_HOST_DEVICE static constexpr std::uint32_t size() { return 1; }
  SHMEMCTL_HOST_DEVICE static constexpr std::uint64_t from_leader(std::uint64_t value) {
    return value;
  }
  SHMEMCTL_HOST_DEVICE static constexpr std::int32_t last_with(bool flag) { return flag ? 0 : -1; }
  SHMEMCTL_HOST_DEVICE static constexpr void sync() {}
};

/// Options of a post.
struct Post {
  DoorbellMode doorbell = DoorbellMode::now;
  bool completion = false; ///< the caller needs a CQE; some WQEs request one in any case
  bool fence = false;      ///< starts after all earlier READs and atomics are complete
};

/// Publishes the WQEBBs, and rings the doorbell if try_publish() says so. Called by the group's
/// leader.
template <class Queue, class Waits>
SHMEMCTL_HOST_DEVICE bool publish(const Queue& queue, std::uint64_t first, std::uint32_t wqebbs,
                                  const Signalled& signalled, DoorbellMode doorbell, Waits& waits) {
  queue.written();
  PublishResult turn = PublishResult::not_my_turn;
  const auto hand_on = [&] {
    turn = queue.try_publish(first, wqebbs, signalled, doorbell);
    return turn != PublishResult::not_my_turn;
  };
  if (!hand_on() && !waits.turn(hand_on))
    return false;
  const auto ring = [&] { return queue.try_ring(first + wqebbs); };
  return turn != PublishResult::ring || ring() || waits.turn(ring);
}

/// Each thread of the group posts a WQE of `wqebbs` WQEBBs with the same options. A WQE is complete
/// when the queue's completed() is greater than its `start`.
/// @param known an earlier value of completed()
/// @param build fills in the WQE: build(WqeSlot&, const WqeHead&)
template <class Queue, class Group, class Waits, class Build>
SHMEMCTL_HOST_DEVICE bool post_wqe(const Queue& queue, const Group& group, std::uint32_t wqebbs,
                                   const Post& how, std::uint64_t known, Waits& waits,
                                   const Build& build, std::uint64_t& start) {
  const std::uint32_t all_wqebbs = wqebbs * group.size();
  const std::uint64_t first = group.from_leader(group.rank() == 0 ? queue.reserve(all_wqebbs) : 0);
  const std::uint64_t end = first + all_wqebbs;
  start = first + group.rank() * wqebbs;
  bool ok = group.rank() != 0 || queue.has_room(end, known) || waits.room(end);
  if (!group.from_leader(ok ? 1 : 0))
    return false;
  // Acquire: the leader has polled the CQ, so the other threads may overwrite the WQEBBs it found
  // free.
  group.sync();
  const bool completes = how.completion || queue.completes(start, wqebbs);
  WqeSlot slot(queue, start);
  build(slot, WqeHead{start, queue.view().qpn,
                      static_cast<std::uint8_t>((completes ? flag_completion : 0) |
                                                (how.fence ? flag_fence : 0))});
  const std::int32_t last = group.last_with(completes);
  Signalled signalled{0, 0};
  if (last >= 0) {
    const std::uint64_t its_start = first + static_cast<std::uint64_t>(last) * wqebbs;
    signalled = {its_start + 1, its_start + wqebbs};
  }
  group.sync();
  if (group.rank() == 0)
    ok = publish(queue, first, all_wqebbs, signalled, how.doorbell, waits);
  return group.from_leader(ok ? 1 : 0) != 0;
}

/// Sets `complete`: when completed() has reached it, everything posted so far is complete. Posts a
/// NOP with a completion, or rings the doorbell, if that is needed for it. False: gave up.
template <class Queue, class Waits>
SHMEMCTL_HOST_DEVICE bool post_quiet(const Queue& queue, std::uint64_t known, Waits& waits,
                                     std::uint64_t& complete) {
  const auto target = queue.target();
  complete = target.complete;
  if (!target.needs_nop) {
    const auto flush = [&] { return queue.try_flush(); };
    return flush() || waits.turn(flush);
  }
  std::uint64_t start = 0;
  const bool posted = post_wqe(
      queue, Alone{}, wqebbs_for(nop_ds_count), {DoorbellMode::now, true, false}, known, waits,
      [](auto& slot, const WqeHead& head) { build_nop(slot, head); }, start);
  complete = start + 1;
  return posted;
}

} // namespace shmemctl::mlx5
