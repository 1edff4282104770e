#include <stdexcept>

#include "kernels/shmem_device.cuh"
#include "tests/gpu/litmus.h"

namespace shmemctl::test {

namespace {

__global__ void __launch_bounds__(512) fill_link(const __grid_constant__ DeviceJob job,
                                                 std::byte* base, int peer, const unsigned* stop) {
  const std::size_t each = LitmusPlaces::load_bytes / gridDim.x / 4096 * 4096;
  std::byte* const from = base + LitmusPlaces::load + blockIdx.x * each;
  while (*static_cast<const volatile unsigned*>(stop) == 0) {
    device::put_nbi<device::Block>(job, from + LitmusPlaces::load_bytes, from, each, peer);
    __syncthreads();
  }
}

} // namespace

void launch_load(cudaStream_t stream, const DeviceJob& job, std::byte* base, int peer, int blocks,
                 const unsigned* stop) {
  fill_link<<<blocks, 512, 0, stream>>>(job, base, peer, stop);
  if (const cudaError_t result = cudaGetLastError(); result != cudaSuccess)
    throw std::runtime_error(std::string("launch of the load: ") + cudaGetErrorString(result));
}

} // namespace shmemctl::test
