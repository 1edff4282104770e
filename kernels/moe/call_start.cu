#include "kernels/moe/call_start.h"

#include "kernels/device/memory_order.cuh"
#include "kernels/moe/launch.cuh"

namespace shmemctl::moe {

namespace {

constexpr int flush_threads = 512;
constexpr unsigned flush_blocks = 1024;

__global__ void __launch_bounds__(flush_threads) flush(uint4* scratch, std::size_t count) {
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * flush_threads;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * flush_threads + threadIdx.x;
       i < count; i += step)
    scratch[i] = uint4{};
}

__global__ void delay(std::uint64_t delay_ns) {
  const std::uint64_t begin = device::global_time_ns();
  while (device::global_time_ns() - begin < delay_ns) {
  }
}

} // namespace

std::string launch_flush(void* scratch, std::size_t size_bytes, void* stream) {
  flush<<<flush_blocks, flush_threads, 0, static_cast<cudaStream_t>(stream)>>>(
      static_cast<uint4*>(scratch), size_bytes / sizeof(uint4));
  return error_text(cudaGetLastError());
}

std::string launch_delay(std::uint64_t delay_ns, void* stream) {
  delay<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(delay_ns);
  return error_text(cudaGetLastError());
}

} // namespace shmemctl::moe
