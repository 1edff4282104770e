// The timed region of a measuring kernel: all PEs start together, and the GPU's global timer is
// read before and after.
#pragma once

#include "kernels/bench/kernel_launch.h"
#include "kernels/shmem_device.cuh"

namespace shmemctl::bench {

using namespace device; // tests define blockIdx and the like in that namespace

/// The scopes of the device API, with the index in the grid of the caller (thread, warp or block)
/// that a thread belongs to, and the number of callers.
struct OfThread : Thread {
  using Api = Thread;
  static __device__ std::uint64_t caller() {
    return blockIdx.x * static_cast<std::uint64_t>(blockDim.x) + threadIdx.x;
  }
  static __device__ std::uint64_t callers() {
    return gridDim.x * static_cast<std::uint64_t>(blockDim.x);
  }
};
struct OfWarp : Warp {
  using Api = Warp;
  static __device__ std::uint64_t caller() { return OfThread::caller() / Api::size(); }
  static __device__ std::uint64_t callers() { return OfThread::callers() / Api::size(); }
};
struct OfBlock : Block {
  using Api = Block;
  static __device__ std::uint64_t caller() { return blockIdx.x; }
  static __device__ std::uint64_t callers() { return gridDim.x; }
};

/// Waits in the calling thread until the bits `mask` of a word of this PE are `value`. False on
/// timeout, which is reported.
__device__ inline bool wait_masked(const DeviceJob& job, const std::uint64_t* at,
                                   std::uint64_t mask, std::uint64_t value, int peer) {
  std::uint64_t seen = 0;
  const auto poll = [&] {
    seen = load_acquire(at);
    return (seen & mask) == value;
  };
  if (poll_until(job, poll))
    return true;
  report_wait(job, peer, value, seen, at);
  return false;
}

class TimedRegion {
public:
  __device__ TimedRegion(const DeviceJob& job, KernelControl* control)
      : job_(job), control_(control) {}

  /// Called by all threads of the grid; false if a PE timed out. The timer is read before the other
  /// blocks are released, so that the time covers all their work.
  __device__ bool begin() {
    if (!sync_grid())
      return false;
    if (blockIdx.x == 0) {
      const bool met = barrier_all<Block>(job_);
      if (threadIdx.x == 0) {
        control_->failed = met ? 0 : 1;
        control_->begin_ns = global_time_ns();
      }
    }
    return sync_grid() && *const_cast<volatile std::uint64_t*>(&control_->failed) == 0;
  }

  /// Called by all threads of the grid: completes all their puts.
  __device__ bool complete() {
    const bool ok = quiet<Block>(job_);
    return sync_grid() && ok;
  }

  /// complete(), then reads the timer.
  __device__ void end(bool ok = true) {
    const bool completed = complete(); // called by every thread, whatever failed before
    if (threadIdx.x == 0 && blockIdx.x == 0)
      control_->end_ns = global_time_ns();
    if (!ok || !completed)
      control_->failed = 1;
  }

  /// Barrier of the grid's blocks; false after a timeout.
  __device__ bool sync_grid() {
    if (gridDim.x > 1)
      return grid_sync(job_);
    Block::sync();
    return true;
  }

private:
  const DeviceJob& job_;
  KernelControl* control_;
};

} // namespace shmemctl::bench
