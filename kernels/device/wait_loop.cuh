// The polling loop, with a deadline, of every wait of a kernel for a word in memory. report_wait()
// (wait_report.cuh) reports which PE was awaited. Waits for a network, which sleep between their
// polls, are in network_operations.cuh.
#pragma once

#include "kernels/device/memory_order.cuh"
#include "src/abi/device_job.h"

namespace shmemctl::device {

/// Called by one thread: polls until `poll()` returns true; false if `expired` ended the wait. The
/// clock is read after the first poll, so a wait whose condition already holds costs one poll. No
/// back-off: it would add latency, and polls of this GPU's own memory cause no traffic on links.
/// @param poll    loads, and returns whether the wait is over; chooses the memory order of its
///                loads
/// @param expired returns whether to give up, given the nanoseconds since the first poll; called
///                only at every 256th poll, because reading the clock takes longer than a poll
template <class Poll, class Expired>
__device__ inline bool poll_or_expire(const Poll& poll, const Expired& expired) {
  constexpr unsigned polls_per_clock_read = 256;
  std::uint64_t begin_ns = 0;
  for (unsigned polls = 0; !poll(); ++polls)
    if (polls == 0)
      begin_ns = global_time_ns();
    else if (polls % polls_per_clock_read == 0 && expired(global_time_ns() - begin_ns))
      return false;
  return true;
}

/// poll_or_expire() with the timeout of the job. Also ends if a kernel of this PE has reported a
/// problem. If it returns false, the caller reports which PE was awaited.
/// @param times multiple of the timeout; more than 1 if the awaited thread is itself in a wait,
///              which knows more, so that it times out and reports first
template <class Poll>
__device__ inline bool poll_until(const DeviceJob& job, const Poll& poll, unsigned times = 1) {
  return poll_or_expire(poll, [&](std::uint64_t waited_ns) {
    return waited_ns > times * job.timeout_ns ||
           load_relaxed(&job.report->state) != WaitReport::none;
  });
}

} // namespace shmemctl::device
