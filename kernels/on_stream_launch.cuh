// How the operations on streams start their kernels. All grids are bounded: what a peer's kernel
// waits for must find room on this device.
#pragma once

#include <cuda_runtime.h>

#include "kernels/on_stream.h"
#include "kernels/shmem_device.cuh"
#include "src/base/error.h"

namespace shmemctl::on_stream {

inline constexpr int block_threads = 512;
inline constexpr int most_blocks = 64;

inline void require_success(cudaError_t result, const char* attempted) {
  if (result != cudaSuccess)
    throw Error(
        ExitCode::unavailable, "operation on a stream", attempted, cudaGetErrorString(result),
        "look for an earlier failure of a kernel on this GPU, and see that the stream is of "
        "the GPU that the job's heap is on");
}
inline void require_launched(const char* attempted) {
  require_success(cudaGetLastError(), attempted);
}

inline cudaStream_t stream_of(Stream stream) {
  return static_cast<cudaStream_t>(stream);
}

/// A block for each `each_bytes`, within bounds.
inline int blocks_for(std::size_t size_bytes, std::size_t each_bytes) {
  const std::size_t blocks = (size_bytes + each_bytes - 1) / each_bytes;
  return blocks < 1 ? 1 : blocks > most_blocks ? most_blocks : static_cast<int>(blocks);
}

} // namespace shmemctl::on_stream
