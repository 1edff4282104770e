// How the kernels of dispatch and combine are launched.
#pragma once

#include <cuda_runtime.h>
#include <string>

#include "kernels/cuda_error.h"
#include "kernels/kernel_arch.h"
#include "kernels/moe/high_throughput.h"
#include "kernels/moe/launch_config.h"
#include "kernels/moe/low_latency_calls.h"

namespace shmemctl::moe {

inline std::string error_text(cudaError_t error) {
  return named_cuda_error(error);
}

/// "", or that the current device has no bulk copies.
inline std::string refuse_old_device() {
  int device = 0, major = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess)
    error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  if (error != cudaSuccess)
    return error_text(error);
  return major >= 9 ? ""
                    : "this GPU has no bulk copies: it has compute capability " +
                          std::to_string(major) + ".x, and 9.0 is needed";
}

/// "", or why kernels for this many ranks do not support the shape.
inline std::string refuse_numbers(const Shape& shape, int ranks_limit) {
  return shape.n_ranks > ranks_limit || shape.n_experts > 65536
             ? "kernels know " + std::to_string(ranks_limit) + " ranks and 65536 experts at most"
             : "";
}
/// The same for kernels within one NVLink domain, which use bulk copies: also refuses a GPU that is
/// too old for them.
inline std::string refuse_shape(const Shape& shape) {
  const std::string refused = refuse_numbers(shape, max_ranks_of_kernels);
  return refused.empty() ? refuse_old_device() : refused;
}

/// "", or that the kernel's code was compiled for older GPUs: even on a newer GPU, it has a trap
/// where a bulk copy would be.
template <class... Parameters>
std::string refuse_old_code(void (*kernel)(Parameters...)) {
  return has_code_of_sm_90(reinterpret_cast<const void*>(kernel)).value_or(true)
             ? ""
             : "this binary's kernels have no bulk copies: they were not compiled for compute "
               "capability 9.0 (CMAKE_CUDA_ARCHITECTURES)";
}

/// Allows `kernel` that much dynamic shared memory per block. @return "" or why not
template <class... Arguments>
std::string allow_shared(void (*kernel)(Arguments...), std::size_t shared_bytes) {
  if (shared_bytes <= 48 << 10)
    return "";
  if (shared_bytes > max_shared_bytes)
    return "a block would need " + std::to_string(shared_bytes) +
           " bytes of shared memory, more "
           "than the " +
           std::to_string(max_shared_bytes) +
           " that it can have: choose fewer warps "
           "or stages, or smaller chunks";
  return error_text(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                         static_cast<int>(shared_bytes)));
}

/// When a kernel may begin: when the stream's previous kernel has ended, or already when all blocks
/// of that kernel have called let_next_come(). The second is for kernels that call
/// wait_for_stream().
enum class Begin { after_last, with_last };

/// Launches `blocks` blocks. Does not check the shape: the caller has refused unsupported ones.
template <class Arguments>
std::string launch_blocks(void (*kernel)(DeviceJob, Arguments), const DeviceJob& job,
                          const Arguments& arguments, int blocks, int threads,
                          std::size_t shared_bytes, void* stream, Begin begin = Begin::after_last) {
  if (std::string refused = allow_shared(kernel, shared_bytes); !refused.empty())
    return refused;
  cudaLaunchAttribute with_last{};
  with_last.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  with_last.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = shared_bytes;
  config.stream = static_cast<cudaStream_t>(stream);
  config.attrs = &with_last;
  config.numAttrs = begin == Begin::with_last ? 1 : 0;
  return error_text(cudaLaunchKernelEx(&config, kernel, job, arguments));
}

/// "", or why a kernel whose blocks wait for each other, across ranks, is not launched: not all of
/// them would be resident at a time. Only queries attributes, so it may be called during a graph
/// capture.
template <class... Parameters>
std::string refuse_waiting_blocks(void (*kernel)(Parameters...), int blocks, int threads,
                                  std::size_t shared_bytes) {
  int device = 0, multiprocessors = 0, of_multiprocessor = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess)
    error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  if (error == cudaSuccess)
    error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&of_multiprocessor, kernel, threads,
                                                          shared_bytes);
  return error == cudaSuccess
             ? refuse_nonresident_blocks(blocks, of_multiprocessor, multiprocessors)
             : error_text(error);
}

/// Calls `launch`, which launches a low-latency call, if the order of calls allows it, and then
/// `count` if the launch succeeded.
/// @param refused "", or why LowLatencyCalls refuses the call
template <class Launch, class Count>
std::string launch_in_order(const std::string& refused, const Launch& launch, const Count& count) {
  if (!refused.empty())
    return refused;
  std::string failure = launch();
  if (failure.empty())
    count();
  return failure;
}

/// Launches a kernel that moves rows in bulk: a block on each of `tuning.sms` multiprocessors.
template <class Arguments>
std::string launch(void (*kernel)(DeviceJob, Arguments), const DeviceJob& job,
                   const Arguments& arguments, const Tuning& tuning, std::size_t shared_bytes,
                   void* stream, Begin begin = Begin::after_last) {
  if (std::string refused = refuse_shape(arguments.shape); !refused.empty())
    return refused;
  if (std::string refused = refuse_old_code(kernel); !refused.empty())
    return refused;
  return launch_blocks(kernel, job, arguments, tuning.sms, tuning.warps * 32, shared_bytes, stream,
                       begin);
}

} // namespace shmemctl::moe
