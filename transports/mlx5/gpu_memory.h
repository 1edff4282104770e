// The loads and stores of a send queue by GPU threads: for CUDA's compiler only. The words that
// producers share stand in the GPU's memory; entries, completions and records wherever the device
// and the GPU reach them. Never run: only compiled so far.
#pragma once

#include <cstdint>
#include <cuda/atomic>

namespace shmemctl::mlx5 {

struct GpuMemory {
  static __device__ std::uint64_t load(const std::uint64_t* word) {
    return reference(word).load(cuda::memory_order_relaxed);
  }
  static __device__ std::uint64_t load_acquire(const std::uint64_t* word) {
    return reference(word).load(cuda::memory_order_acquire);
  }
  static __device__ void store(std::uint64_t* word, std::uint64_t value) {
    reference(word).store(value, cuda::memory_order_relaxed);
  }
  static __device__ void store_release(std::uint64_t* word, std::uint64_t value) {
    reference(word).store(value, cuda::memory_order_release);
  }
  static __device__ std::uint64_t fetch_add(std::uint64_t* word, std::uint64_t value) {
    return reference(word).fetch_add(value, cuda::memory_order_relaxed);
  }
  static __device__ std::uint64_t exchange_acquire(std::uint64_t* word, std::uint64_t value) {
    return reference(word).exchange(value, cuda::memory_order_acquire);
  }
  static __device__ bool compare_exchange_acquire(std::uint64_t* word, std::uint64_t expected,
                                                  std::uint64_t desired) {
    return reference(word).compare_exchange_strong(expected, desired, cuda::memory_order_acquire,
                                                   cuda::memory_order_relaxed);
  }
  static __device__ void fetch_max_release(std::uint64_t* word, std::uint64_t value) {
    reference(word).fetch_max(value, cuda::memory_order_release);
  }
  static __device__ void store_plain(std::uint64_t* word, std::uint64_t value) { *word = value; }
  /// Behind everything before it, for devices too: a release of system scope.
  static __device__ void store_record(std::uint32_t* record, std::uint32_t value) {
    cuda::atomic_ref<std::uint32_t, cuda::thread_scope_system>(*record).store(
        value, cuda::memory_order_release);
  }
  /// GPUs do not gather stores to a register's page: nothing has to be pushed.
  static __device__ void store_doorbell(std::uint64_t* doorbell, std::uint64_t value,
                                        std::uint32_t) {
    reference(doorbell).store(value, cuda::memory_order_release);
  }

private:
  /// System scope: a completion is written by a device, and what is published by one thread is told
  /// to the device by another.
  static __device__ cuda::atomic_ref<std::uint64_t, cuda::thread_scope_system>
  reference(const std::uint64_t* word) {
    return cuda::atomic_ref<std::uint64_t, cuda::thread_scope_system>(
        *const_cast<std::uint64_t*>(word));
  }
};

} // namespace shmemctl::mlx5
