// Collective launch. It is part of the device library, because only the CUDA runtime of the
// program's module knows its kernels, and also of the static host library, for programs that link
// only that.
#include <cuda_runtime.h>

#include "kernels/cuda_error.h"
#include "src/runtime/nvshmem/hooks.h"
#include "src/runtime/nvshmem/include/nvshmem_compat/host.h"

namespace {

/// Number of blocks that can run at the same time; 0, and an error status, if CUDA does not say.
int resident_blocks(const void* func, dim3 block, size_t shared_bytes, int& status) {
  int device = 0, multiprocessors = 0, each = 0;
  const auto threads = static_cast<int>(block.x * block.y * block.z);
  const bool known = cudaGetDevice(&device) == cudaSuccess &&
                     cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount,
                                            device) == cudaSuccess &&
                     cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, func, threads,
                                                                   shared_bytes) == cudaSuccess;
  status = known ? NVSHMEMX_SUCCESS : NVSHMEMX_ERROR_INTERNAL;
  return known ? each * multiprocessors : 0;
}

} // namespace

extern "C" {

int nvshmemx_collective_launch_query_gridsize(const void* func, dim3 blockDims, void**,
                                              size_t sharedMem, int* gridsize) {
  int status = NVSHMEMX_SUCCESS;
  *gridsize = resident_blocks(func, blockDims, sharedMem, status);
  return status;
}

int nvshmemx_collective_launch(const void* func, dim3 gridDims, dim3 blockDims, void** args,
                               size_t sharedMem, cudaStream_t stream) {
  nvshmemi_check_kernels();
  dim3 grid = gridDims;
  if (grid.x == 0 && grid.y == 0 && grid.z == 0) {
    int status = NVSHMEMX_SUCCESS;
    grid = dim3(static_cast<unsigned>(resident_blocks(func, blockDims, sharedMem, status)), 1, 1);
    if (status != NVSHMEMX_SUCCESS)
      return status;
  }
  const cudaError_t result =
      cudaLaunchCooperativeKernel(func, grid, blockDims, args, sharedMem, stream);
  if (result == cudaSuccess)
    return NVSHMEMX_SUCCESS;
  nvshmemi_launch_refused(shmemctl::cuda_error_text(result).c_str());
  return NVSHMEMX_ERROR_COLLECTIVE_LAUNCH_FAILED;
}

} // extern "C"
