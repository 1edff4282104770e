// Loads and stores of the proxy's ring by GPU threads, for RingProducer.
#pragma once

#include "transports/mlx5/gpu_memory.h"

namespace shmemctl::device {

struct DeviceAtomics {
  /// A release orders all that the thread did before it, over PCIe and NVLink too: a microsecond
  /// where much is on its way.
  static constexpr bool release_is_free = false;

  static __device__ std::uint64_t load_relaxed(const std::uint64_t* word) {
    return mlx5::GpuMemory::load(word);
  }
  static __device__ std::uint64_t load_acquire(const std::uint64_t* word) {
    return mlx5::GpuMemory::load_acquire(word);
  }
  static __device__ void store_relaxed(std::uint64_t* word, std::uint64_t value) {
    mlx5::GpuMemory::store(word, value);
  }
  static __device__ void store_release(std::uint64_t* word, std::uint64_t value) {
    mlx5::GpuMemory::store_release(word, value);
  }
  static __device__ std::uint64_t fetch_add_relaxed(std::uint64_t* word, std::uint64_t value) {
    return mlx5::GpuMemory::fetch_add(word, value);
  }
  static __device__ bool compare_exchange_acquire(std::uint64_t* word, std::uint64_t expected,
                                                  std::uint64_t desired) {
    return mlx5::GpuMemory::compare_exchange_acquire(word, expected, desired);
  }
};

} // namespace shmemctl::device
