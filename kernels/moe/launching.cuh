// How the kernels of dispatch and combine are launched.
#pragma once

#include <cuda_runtime.h>
#include <string>

#include "kernels/moe/high_throughput.h"

namespace shmemctl::moe {

inline std::string words_of(cudaError_t error) {
  return error == cudaSuccess
             ? ""
             : std::string(cudaGetErrorName(error)) + ": " + cudaGetErrorString(error);
}

/// "", or that the current device has no bulk copies.
inline std::string refuse_old_device() {
  int device = 0, major = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess)
    error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  if (error != cudaSuccess)
    return words_of(error);
  return major >= 9 ? ""
                    : "this GPU has no bulk copies: it has compute capability " +
                          std::to_string(major) + ".x, and 9.0 is needed";
}

/// "", or why kernels do not know such a shape.
inline std::string refuse_shape(const Shape& shape) {
  if (shape.n_ranks > max_ranks_of_kernels || shape.n_experts > 65536)
    return "kernels know " + std::to_string(max_ranks_of_kernels) +
           " ranks and 65536 experts at most";
  return refuse_old_device();
}

/// A block on each of `tuning.sms` multiprocessors.
template <class Arguments>
std::string launch(void (*kernel)(DeviceJob, Arguments), const DeviceJob& job,
                   const Arguments& arguments, const Tuning& tuning, std::size_t shared_bytes,
                   void* stream) {
  if (std::string refused = refuse_shape(arguments.shape); !refused.empty())
    return refused;
  if (shared_bytes > 48 << 10)
    if (const cudaError_t error = cudaFuncSetAttribute(
            kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes));
        error != cudaSuccess)
      return words_of(error);
  kernel<<<static_cast<unsigned>(tuning.sms), static_cast<unsigned>(tuning.warps) * 32,
           shared_bytes, static_cast<cudaStream_t>(stream)>>>(job, arguments);
  return words_of(cudaGetLastError());
}

} // namespace shmemctl::moe
