#include "kernels/device_probe.h"

#include <cstdint>
#include <cuda_runtime.h>
#include <memory>

#include "kernels/cuda_error.h"

namespace shmemctl {

namespace {

/// splitmix64's finaliser: every bit of the word depends on every bit of index and seed.
__host__ __device__ inline std::uint64_t probe_word(std::uint64_t index, std::uint64_t seed) {
  std::uint64_t z = index * 0x9e3779b97f4a7c15ULL + seed;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

__global__ void write_probe(std::uint64_t* words, std::size_t count, std::uint64_t seed) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x; i < count;
       i += stride)
    words[i] = probe_word(i, seed);
}

struct CudaFree {
  void operator()(std::uint64_t* words) const { cudaFree(words); }
};

std::string failure(const char* call, cudaError_t error) {
  return call + (": " + cuda_error_text(error));
}

/// Writes and checks `count` words on a device. Returns "", or the failed call or the first wrong
/// word.
std::string run_probe(int device, std::size_t count) {
  if (const cudaError_t error = cudaSetDevice(device); error != cudaSuccess)
    return failure("cudaSetDevice", error);
  std::uint64_t* raw = nullptr;
  if (const cudaError_t error = cudaMalloc(&raw, count * sizeof *raw); error != cudaSuccess)
    return failure("cudaMalloc", error);
  const std::unique_ptr<std::uint64_t, CudaFree> on_device(raw);
  const std::uint64_t seed = 0x5eed + static_cast<std::uint64_t>(device);
  write_probe<<<256, 256>>>(on_device.get(), count, seed);
  if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess)
    return failure("kernel launch", error);
  std::vector<std::uint64_t> words(count);
  if (const cudaError_t error =
          cudaMemcpy(words.data(), on_device.get(), count * sizeof *raw, cudaMemcpyDeviceToHost);
      error != cudaSuccess)
    return failure("cudaMemcpy", error);
  for (std::size_t i = 0; i < count; ++i)
    if (words[i] != probe_word(i, seed))
      return "word " + std::to_string(i) + " came back wrong";
  return "";
}

} // namespace

std::vector<DeviceProbe> probe_devices(std::string& why, std::size_t words) {
  std::vector<DeviceProbe> probes;
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess || count == 0) {
    why = error != cudaSuccess ? failure("cudaGetDeviceCount", error) : "CUDA sees no device";
    return probes;
  }
  for (int device = 0; device < count; ++device) {
    DeviceProbe probe;
    probe.device = device;
    cudaDeviceProp properties{};
    if (cudaGetDeviceProperties(&properties, device) == cudaSuccess)
      probe.name = properties.name;
    probe.error = run_probe(device, words);
    probe.passed = probe.error.empty();
    probes.push_back(probe);
  }
  return probes;
}

} // namespace shmemctl
