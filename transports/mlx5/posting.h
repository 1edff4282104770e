// One entry from its reservation to the doorbell, and what a quiet waits for: the same steps for
// host threads and kernels. What happens while a step has to wait is the caller's `Waits`:
//   bool room(end)     until look_for_room(end); false: it gave up
//   bool turn(attempt) until attempt() is true; false: it gave up
// Who gives up leaves the queue standing still.
#pragma once

#include "transports/mlx5/entry.h"
#include "transports/mlx5/send_queue.h"

namespace shmemctl::mlx5 {

/// How an entry is posted.
struct Post {
  Bell bell = Bell::now;
  bool completion = false; ///< for its own sake; the queue makes some entries complete anyhow
  bool fence = false;      ///< READs and atomics before it are done before it begins
};

/// Posts an entry of `blocks` blocks. It is complete when the queue's completed() is beyond
/// `start`.
/// @param known a value that completed() has had
/// @param build fills it in: build(EntrySlot&, const EntryHead&)
template <class Queue, class Waits, class Build>
SHMEMCTL_HOST_DEVICE bool post_entry(const Queue& queue, std::uint32_t blocks, const Post& how,
                                     std::uint64_t known, Waits& waits, const Build& build,
                                     std::uint64_t& start) {
  start = queue.reserve(blocks);
  const std::uint64_t end = start + blocks;
  if (!queue.has_room(end, known) && !waits.room(end))
    return false;
  const bool completes = how.completion || queue.completes(start, blocks);
  EntrySlot slot(queue, start);
  build(slot, EntryHead{start, queue.view().qpn,
                        static_cast<std::uint8_t>((completes ? flag_completion : 0) |
                                                  (how.fence ? flag_fence : 0))});
  const Signalled signalled = completes ? Signalled{start + 1, end} : Signalled{0, 0};
  const auto publish = [&] { return queue.try_publish(start, blocks, signalled, how.bell); };
  return publish() || waits.turn(publish);
}

/// What completed() has to reach so that all that was posted before is complete; posts and rings
/// what is needed for it to come.
template <class Queue, class Waits>
SHMEMCTL_HOST_DEVICE bool post_quiet(const Queue& queue, std::uint64_t known, Waits& waits,
                                     std::uint64_t& complete) {
  auto target = queue.try_target();
  if (!target.known && !waits.turn([&] {
        target = queue.try_target();
        return target.known;
      }))
    return false;
  complete = target.complete;
  if (!target.needs_nop)
    return true;
  std::uint64_t start = 0;
  const bool posted = post_entry(
      queue, blocks_of(nop_octowords), {Bell::now, true, false}, known, waits,
      [](auto& slot, const EntryHead& head) { build_nop(slot, head); }, start);
  complete = start + 1;
  return posted;
}

} // namespace shmemctl::mlx5
