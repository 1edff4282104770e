#include "tests/gpu/fault_kernels.h"

#include "tests/gpu/launch.cuh"

namespace shmemctl::test {

namespace {

__global__ void trap() {
  __trap();
}

__global__ void wild_load(const volatile std::uint64_t* nowhere, std::uint64_t* to) {
  *to = *nowhere;
}

__global__ void shared_race(unsigned* to) {
  __shared__ unsigned word;
  word = threadIdx.x / 32;
  __syncthreads();
  if (to != nullptr)
    *to = word;
}

__global__ void wrong_mask() {
  __syncwarp(0xffffu);
}

/// The base is a word that is waited for, and data behind it.
__global__ void __launch_bounds__(256)
    put_and_wait(const __grid_constant__ DeviceJob job, std::byte* base, int peer) {
  constexpr std::size_t data = 4096, size_bytes = 65536;
  std::byte* const mine = base + data + blockIdx.x * size_bytes;
  if (blockIdx.x == 0) {
    device::signal_wait_until<device::Block>(job, reinterpret_cast<std::uint64_t*>(base),
                                             device::Compare::equal, 1, peer);
    return;
  }
  while (device::load_relaxed(&job.report->state) == WaitReport::none) {
    device::put_nbi<device::Block>(job, mine, mine, size_bytes, peer);
    device::quiet<device::Block>(job);
  }
}

void require_launched() {
  if (const cudaError_t result = cudaGetLastError(); result != cudaSuccess)
    throw std::runtime_error(std::string("launch: ") + cudaGetErrorString(result));
}

} // namespace

void launch_trap(cudaStream_t stream) {
  trap<<<1, 32, 0, stream>>>();
  require_launched();
}

void launch_wild_load(cudaStream_t stream) {
  auto* const nowhere = reinterpret_cast<std::uint64_t*>(std::uintptr_t{4096});
  wild_load<<<1, 1, 0, stream>>>(nowhere, nowhere + 1);
  require_launched();
}

void launch_shared_race(cudaStream_t stream) {
  shared_race<<<1, 64, 0, stream>>>(nullptr);
  require_launched();
}

void launch_wrong_mask(cudaStream_t stream) {
  wrong_mask<<<1, 32, 0, stream>>>();
  require_launched();
}

void launch_put_and_wait(cudaStream_t stream, const DeviceJob& job, std::byte* base, int peer) {
  put_and_wait<<<8, 256, 0, stream>>>(job, base, peer);
  require_launched();
}

} // namespace shmemctl::test
