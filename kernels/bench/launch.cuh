// How measuring kernels are launched.
#pragma once

#include <cuda_runtime.h>
#include <string>

#include "kernels/bench/timed_region.cuh"
#include "kernels/build_variants.h"
#include "kernels/cuda_error.h"

namespace shmemctl::bench::SHMEMCTL_BUILD_VARIANT {

/// Every measuring kernel. Its work is Body::run(), which tests call on threads of the host.
template <class Body, class Arguments>
__global__ void __launch_bounds__(1024)
    measuring(const __grid_constant__ DeviceJob job, KernelControl* control,
              const __grid_constant__ Arguments arguments) {
  Body::run(job, control, arguments);
}

/// Launches so that all blocks run at once (a cooperative launch). Returns "" or CUDA's error.
template <class Body, class Arguments>
std::string launch_together(const KernelLaunch& how, const Arguments& arguments) {
  if (const cudaError_t error = cudaSetDevice(how.device); error != cudaSuccess)
    return "cudaSetDevice: " + cuda_error_text(error);
  DeviceJob job = how.job;
  KernelControl* control = how.control;
  Arguments copy = arguments;
  void* parameters[] = {&job, &control, &copy};
  return named_cuda_error(cudaLaunchCooperativeKernel(
      reinterpret_cast<const void*>(measuring<Body, Arguments>),
      dim3(static_cast<unsigned>(how.ctas)), dim3(static_cast<unsigned>(how.threads)), parameters,
      0, static_cast<cudaStream_t>(how.stream)));
}

/// The same with the body for the launch's scope. Each scope has its own kernel, because one for
/// all of them would need more registers than a block of 1024 threads has.
template <template <class> class Body, class Arguments>
std::string launch_by_scope(const KernelLaunch& how, const Arguments& arguments) {
  switch (how.scope) {
  case KernelScope::thread:
    return launch_together<Body<OfThread>>(how, arguments);
  case KernelScope::warp:
    return launch_together<Body<OfWarp>>(how, arguments);
  default:
    return launch_together<Body<OfBlock>>(how, arguments);
  }
}

/// Blocks of this kernel that a device can hold at once; 0 if unknown.
template <class Body, class Arguments>
int max_blocks_of(int device, int threads) {
  int blocks = 0, multiprocessors = 0;
  if (cudaSetDevice(device) != cudaSuccess ||
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, measuring<Body, Arguments>, threads,
                                                    0) != cudaSuccess ||
      cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device) !=
          cudaSuccess)
    return 0;
  return blocks * multiprocessors;
}
template <template <class> class Body, class Arguments>
int max_blocks_by_scope(KernelScope scope, int device, int threads) {
  switch (scope) {
  case KernelScope::thread:
    return max_blocks_of<Body<OfThread>, Arguments>(device, threads);
  case KernelScope::warp:
    return max_blocks_of<Body<OfWarp>, Arguments>(device, threads);
  default:
    return max_blocks_of<Body<OfBlock>, Arguments>(device, threads);
  }
}

} // namespace shmemctl::bench::SHMEMCTL_BUILD_VARIANT
