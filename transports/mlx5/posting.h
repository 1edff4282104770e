// One entry from its reservation to the doorbell, and what a quiet waits for: the same steps for
// host threads and kernels. What happens while a step has to wait is the caller's `Waits`:
//   bool room(end)     until look_for_room(end); false: it gave up
//   bool turn(attempt) until attempt() is true; false: it gave up
// Who gives up leaves the queue standing still.
#pragma once

#include "transports/mlx5/entry.h"
#include "transports/mlx5/send_queue.h"

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

/// How an entry is posted.
struct Post {
  Bell bell = Bell::now;
  bool completion = false; ///< for its own sake; the queue makes some entries complete anyhow
  bool fence = false;      ///< READs and atomics before it are done before it begins
};

/// Publishes blocks that are written, and rings if it is this thread's turn to. Of a group its
/// leader does.
template <class Queue, class Waits>
SHMEMCTL_HOST_DEVICE bool publish(const Queue& queue, std::uint64_t first, std::uint32_t blocks,
                                  const Signalled& signalled, Bell bell, Waits& waits) {
  queue.written();
  Turn turn = Turn::not_mine;
  const auto hand_on = [&] {
    turn = queue.try_publish(first, blocks, signalled, bell);
    return turn != Turn::not_mine;
  };
  if (!hand_on() && !waits.turn(hand_on))
    return false;
  const auto ring = [&] { return queue.try_ring(first + blocks); };
  return turn != Turn::ring || ring() || waits.turn(ring);
}

/// Posts an entry of `blocks` blocks for each member of the group, all in the same way. It is
/// complete when the queue's completed() is beyond `start`.
/// @param known a value that completed() has had
/// @param build fills it in: build(EntrySlot&, const EntryHead&)
template <class Queue, class Group, class Waits, class Build>
SHMEMCTL_HOST_DEVICE bool post_entry(const Queue& queue, const Group& group, std::uint32_t blocks,
                                     const Post& how, std::uint64_t known, Waits& waits,
                                     const Build& build, std::uint64_t& start) {
  const std::uint32_t all_blocks = blocks * group.size();
  const std::uint64_t first = group.from_leader(group.rank() == 0 ? queue.reserve(all_blocks) : 0);
  const std::uint64_t end = first + all_blocks;
  start = first + group.rank() * blocks;
  bool ok = group.rank() != 0 || queue.has_room(end, known) || waits.room(end);
  if (!group.from_leader(ok ? 1 : 0))
    return false;
  // Behind the leader's look at what is complete.
  group.sync();
  const bool completes = how.completion || queue.completes(start, blocks);
  EntrySlot slot(queue, start);
  build(slot, EntryHead{start, queue.view().qpn,
                        static_cast<std::uint8_t>((completes ? flag_completion : 0) |
                                                  (how.fence ? flag_fence : 0))});
  const std::int32_t last = group.last_with(completes);
  Signalled signalled{0, 0};
  if (last >= 0) {
    const std::uint64_t its_start = first + static_cast<std::uint64_t>(last) * blocks;
    signalled = {its_start + 1, its_start + blocks};
  }
  group.sync();
  if (group.rank() == 0)
    ok = publish(queue, first, all_blocks, signalled, how.bell, waits);
  return group.from_leader(ok ? 1 : 0) != 0;
}

/// What completed() has to reach so that all that was posted before is complete; posts and rings
/// what is needed for it to come.
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
  const bool posted = post_entry(
      queue, Alone{}, blocks_of(nop_octowords), {Bell::now, true, false}, known, waits,
      [](auto& slot, const EntryHead& head) { build_nop(slot, head); }, start);
  complete = start + 1;
  return posted;
}

} // namespace shmemctl::mlx5
