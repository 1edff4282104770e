// Launching the kernels of stream operations. All grids are bounded: a kernel that a peer waits for
// must find room on this device.
#pragma once

#include <cuda_runtime.h>

#include <utility>

#include "kernels/cuda_error.h"
#include "kernels/device_plan.h"
#include "kernels/kernel_arch.h"
#include "kernels/on_stream_kernels.h"
#include "src/base/error.h"

namespace shmemctl::on_stream {

inline constexpr int max_blocks = 64;

inline void require_success(cudaError_t result, const char* attempted) {
  if (result != cudaSuccess)
    throw Error(ExitCode::unavailable, "operation on a stream", attempted, cuda_error_text(result),
                fix_of_cuda_error(result, "look for an earlier kernel failure on this GPU, and "
                                          "check that the stream belongs to the GPU that holds the "
                                          "symmetric heap"));
}
inline cudaStream_t stream_of(Stream stream) {
  return static_cast<cudaStream_t>(stream);
}

/// One block per `each_bytes`, at least 1 and at most max_blocks.
inline int blocks_for(std::size_t size_bytes, std::size_t each_bytes) {
  const std::size_t blocks = (size_bytes + each_bytes - 1) / each_bytes;
  return blocks < 1 ? 1 : blocks > max_blocks ? max_blocks : static_cast<int>(blocks);
}

/// Only for kernels that start with wait_for_stream(), whose instruction exists only in code for
/// sm_90 or newer. With such code a grid of a single block may start early. Larger grids may not:
/// while they wait, they could take the room of a kernel on another stream for which a peer waits.
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), int blocks, int threads, Stream stream,
            const char* attempted, Arguments&&... arguments) {
  cudaLaunchAttribute ahead{};
  ahead.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  ahead.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.stream = stream_of(stream);
  config.attrs = &ahead;
  config.numAttrs =
      blocks == 1 && has_code_of_sm_90(reinterpret_cast<const void*>(kernel)).value_or(false) ? 1
                                                                                              : 0;
  require_success(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...),
                  attempted);
}

} // namespace shmemctl::on_stream
