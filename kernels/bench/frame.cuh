// What surrounds the timed part of a measuring kernel: all PEs start together, and one clock of the
// GPU is read before and behind.
#pragma once

#include <cuda_runtime.h>
#include <string>

#include "kernels/bench/kernel_launch.h"
#include "kernels/shmem_device.cuh"

namespace shmemctl::bench {

/// The scopes of the API with what a run-time choice among them needs.
struct OfThread : device::Thread {
  using Api = device::Thread;
  static __device__ std::uint64_t caller() {
    return blockIdx.x * static_cast<std::uint64_t>(blockDim.x) + threadIdx.x;
  }
  static __device__ std::uint64_t callers() {
    return gridDim.x * static_cast<std::uint64_t>(blockDim.x);
  }
};
struct OfWarp : device::Warp {
  using Api = device::Warp;
  static __device__ std::uint64_t caller() { return OfThread::caller() / 32; }
  static __device__ std::uint64_t callers() { return OfThread::callers() / 32; }
};
struct OfBlock : device::Block {
  using Api = device::Block;
  static __device__ std::uint64_t caller() { return blockIdx.x; }
  static __device__ std::uint64_t callers() { return gridDim.x; }
};

/// The kernel of that name for a scope: a kernel for each, because all of them together would not
/// fit into the registers of a full block.
#define SHMEMCTL_KERNEL_OF(kernel, scope)                                                          \
  ((scope) == KernelScope::thread ? kernel<OfThread>                                               \
   : (scope) == KernelScope::warp ? kernel<OfWarp>                                                 \
                                  : kernel<OfBlock>)

/// Waits, by the calling thread, until the bits of `mask` of a word of my own are `value`.
__device__ inline bool wait_masked(const DeviceJob& job, const std::uint64_t* at,
                                   std::uint64_t mask, std::uint64_t value, int peer) {
  device::Patience patience;
  std::uint64_t seen = 0;
  do {
    seen = device::load_acquire(at);
    if ((seen & mask) == value)
      return true;
  } while (!patience.over(job));
  device::report_wait(job, peer, value, seen, at);
  return false;
}

class Frame {
public:
  __device__ Frame(const DeviceJob& job, KernelControl* control) : job_(job), control_(control) {}

  /// By all threads of the grid; false if a PE did not come. The clock is read before the other
  /// blocks are let go, so that no time is too short for what was done in it.
  __device__ bool begin() {
    if (!meet())
      return false;
    if (blockIdx.x == 0) {
      const bool met = device::barrier_all<device::Block>(job_);
      if (threadIdx.x == 0) {
        control_->failed = met ? 0 : 1;
        control_->begin_ns = device::global_time_ns();
      }
    }
    return meet() && *const_cast<volatile std::uint64_t*>(&control_->failed) == 0;
  }

  /// By all threads of the grid. All that any of them has put is complete.
  __device__ bool complete() {
    const bool ok = device::quiet<device::Block>(job_);
    return meet() && ok;
  }

  /// As complete(), and the clock is read.
  __device__ void end(bool ok = true) {
    const bool completed = complete(); // by every thread, whatever went wrong before
    if (threadIdx.x == 0 && blockIdx.x == 0)
      control_->end_ns = device::global_time_ns();
    if (!ok || !completed)
      control_->failed = 1;
  }

  /// Barrier of the grid's blocks; false once a wait has given up.
  __device__ bool meet() {
    if (gridDim.x > 1)
      return device::grid_meet(job_);
    __syncthreads();
    return true;
  }

private:
  const DeviceJob& job_;
  KernelControl* control_;
};

/// Launches so that all blocks run at once. Returns "" or CUDA's reason.
template <class Kernel, class Arguments>
std::string launch_together(Kernel kernel, const KernelLaunch& how, const Arguments& arguments) {
  if (const cudaError_t error = cudaSetDevice(how.device); error != cudaSuccess)
    return std::string("cudaSetDevice: ") + cudaGetErrorString(error);
  DeviceJob job = how.job;
  KernelControl* control = how.control;
  KernelScope scope = how.scope;
  Arguments copy = arguments;
  void* parameters[] = {&job, &control, &scope, &copy};
  const cudaError_t error = cudaLaunchCooperativeKernel(
      reinterpret_cast<const void*>(kernel), dim3(static_cast<unsigned>(how.ctas)),
      dim3(static_cast<unsigned>(how.threads)), parameters, 0,
      static_cast<cudaStream_t>(how.stream));
  return error == cudaSuccess
             ? ""
             : std::string(cudaGetErrorName(error)) + ": " + cudaGetErrorString(error);
}

/// Blocks of this kernel that a device runs at once; 0 if that cannot be told.
template <class Kernel>
int most_blocks_of(Kernel kernel, int device, int threads) {
  int blocks = 0, multiprocessors = 0;
  if (cudaSetDevice(device) != cudaSuccess ||
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, 0) != cudaSuccess ||
      cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device) !=
          cudaSuccess)
    return 0;
  return blocks * multiprocessors;
}

} // namespace shmemctl::bench
