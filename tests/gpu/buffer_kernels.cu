#include "tests/gpu/buffer_kernels.h"

#include <stdexcept>
#include <string>

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

} // namespace

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
