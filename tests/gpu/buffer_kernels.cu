#include "tests/gpu/buffer_kernels.h"

#include <stdexcept>
#include <string>

#include "kernels/shmem_device.cuh"

namespace shmemctl::test {

namespace {

void require(cudaError_t result, const char* step) {
  if (result != cudaSuccess)
    throw std::runtime_error(std::string(step) + ": " + cudaGetErrorString(result));
}

__global__ void byte_copy(std::byte* to, const std::byte* from, std::size_t size_bytes) {
  const std::size_t thread = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x;
  const std::size_t threads = std::size_t{gridDim.x} * blockDim.x;
  std::size_t done = 0;
  if ((reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from)) % 16 == 0) {
    const std::size_t wide = size_bytes / 16;
    for (std::size_t at = thread; at < wide; at += threads)
      reinterpret_cast<uint4*>(to)[at] = reinterpret_cast<const uint4*>(from)[at];
    done = wide * 16;
  }
  for (std::size_t at = done + thread; at < size_bytes; at += threads)
    to[at] = from[at];
}

__global__ void count_up(unsigned long long* word, unsigned count) {
  for (unsigned i = 0; i < count; ++i)
    atomicAdd_system(word, 1ull);
}

__device__ std::uint64_t word_of(unsigned round, int pe, std::size_t at) {
  return (std::uint64_t{round} << 32) + (static_cast<std::uint64_t>(pe) << 24) + at;
}

__global__ void __launch_bounds__(256)
    store_and_signal(const __grid_constant__ DeviceJob job, std::uint64_t* theirs,
                     const std::uint64_t* mine, std::size_t words, std::uint64_t* signals,
                     unsigned long long* wrong, unsigned rounds) {
  using device::Block;
  const int peer = 1 - job.pe;
  for (unsigned round = 1; round <= rounds; ++round) {
    for (std::size_t at = threadIdx.x; at < words; at += blockDim.x)
      theirs[at] = word_of(round, job.pe, at);
    device::fence<Block>(job);
    if (threadIdx.x == 0)
      device::signal_set(job, signals, round, peer);
    if (!device::signal_wait_until<Block>(job, signals, device::Compare::greater_equal, round,
                                          peer))
      return;
    for (std::size_t at = threadIdx.x; at < words; at += blockDim.x)
      if (mine[at] != word_of(round, peer, at))
        atomicAdd(wrong, 1ull);
    // The other PE writes its next round when this one has been checked.
    device::fence<Block>(job);
    if (threadIdx.x == 0)
      device::signal_set(job, signals + 1, round, peer);
    if (!device::signal_wait_until<Block>(job, signals + 1, device::Compare::greater_equal, round,
                                          peer))
      return;
  }
}

} // namespace

void launch_store_and_signal(cudaStream_t stream, const DeviceJob& job, std::uint64_t* theirs,
                             const std::uint64_t* mine, std::size_t words, std::uint64_t* signals,
                             unsigned long long* wrong, unsigned rounds) {
  store_and_signal<<<1, 256, 0, stream>>>(job, theirs, mine, words, signals, wrong, rounds);
  require(cudaGetLastError(), "launch");
}

void launch_byte_copy(cudaStream_t stream, std::byte* to, const std::byte* from,
                      std::size_t size_bytes) {
  byte_copy<<<64, 256, 0, stream>>>(to, from, size_bytes);
  require(cudaGetLastError(), "launch");
}

void launch_count(cudaStream_t stream, unsigned long long* word, unsigned count) {
  count_up<<<4, 32, 0, stream>>>(word, count);
  require(cudaGetLastError(), "launch");
}

void launch_as_graph(cudaStream_t stream, const std::function<void()>& enqueue, int launches) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), "begin of a capture");
  enqueue();
  require(cudaStreamEndCapture(stream, &graph), "end of a capture");
  require(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
  for (int i = 0; i < launches; ++i)
    require(cudaGraphLaunch(executable, stream), "cudaGraphLaunch");
  require(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  require(cudaGraphExecDestroy(executable), "cudaGraphExecDestroy");
  require(cudaGraphDestroy(graph), "cudaGraphDestroy");
}

void* pool_allocate(std::size_t size_bytes) {
  void* memory = nullptr;
  require(cudaMallocAsync(&memory, size_bytes, nullptr), "cudaMallocAsync");
  require(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
  return memory;
}
void pool_free(void* memory) {
  require(cudaFreeAsync(memory, nullptr), "cudaFreeAsync");
  require(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
}
void* managed_allocate(std::size_t size_bytes) {
  void* memory = nullptr;
  require(cudaMallocManaged(&memory, size_bytes), "cudaMallocManaged");
  return memory;
}
void managed_free(void* memory) {
  require(cudaFree(memory), "cudaFree");
}

} // namespace shmemctl::test
