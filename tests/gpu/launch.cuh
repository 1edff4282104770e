// How the tests' kernels are started.
#pragma once

#include <stdexcept>
#include <string>

#include "kernels/shmem_device.cuh"
#include "tests/gpu/device_kernels.h"

namespace shmemctl::test {

/// Calls `call(Scope{})` for the scope, and throws if the launch failed.
template <class Call>
void for_scope(Who who, const Call& call) {
  if (who == Who::thread)
    call(device::Thread{});
  else if (who == Who::warp)
    call(device::Warp{});
  else
    call(device::Block{});
  const cudaError_t result = cudaGetLastError();
  if (result != cudaSuccess)
    throw std::runtime_error(std::string("launch: ") + cudaGetErrorString(result));
}

/// Whether this thread is not of the block's one scope.
template <class Scope>
__device__ inline bool is_outside() {
  return Scope::size() < static_cast<int>(blockDim.x) &&
         threadIdx.x >= static_cast<unsigned>(Scope::size());
}

} // namespace shmemctl::test
