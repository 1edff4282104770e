// Loads, stores and atomics of kernels as the templates of queues and rings take them: by a struct.
// What they are, and their orders, is in memory_order.cuh. The words that producers share stand in
// the GPU's memory; entries, completions and records wherever the device and the GPU reach them.
#pragma once

#include "kernels/device/memory_order.cuh"

namespace shmemctl::device {

/// Of a send queue (transports/mlx5/send_queue.h).
struct GpuMemory {
  static __device__ std::uint64_t load(const std::uint64_t* word) { return load_relaxed(word); }
  static __device__ std::uint64_t load_acquire(const std::uint64_t* word) {
#ifdef SHMEMCTL_MUTATE_NETWORK_ACQUIRE
    return load(word);
#endif
    return device::load_acquire(word);
  }
  static __device__ void store(std::uint64_t* word, std::uint64_t value) {
    store_relaxed(word, value);
  }
  static __device__ void store_release(std::uint64_t* word, std::uint64_t value) {
#ifdef SHMEMCTL_MUTATE_NETWORK_RELEASE
    return store(word, value);
#endif
    device::store_release(word, value);
  }
  static __device__ std::uint64_t fetch_add(std::uint64_t* word, std::uint64_t value) {
    return atomic_word_add(word, value);
  }
  static __device__ std::uint64_t exchange_acquire(std::uint64_t* word, std::uint64_t value) {
    return swap_acquire(word, value);
  }
  static __device__ bool compare_exchange_acquire(std::uint64_t* word, std::uint64_t expected,
                                                  std::uint64_t desired) {
    return compare_swap_acquire(word, expected, desired) == expected;
  }
  static __device__ void fetch_max_release(std::uint64_t* word, std::uint64_t value) {
    max_release(word, value);
  }
  static __device__ void store_plain(std::uint64_t* word, std::uint64_t value) {
    *word = value;
  }
  /// Behind everything before it, for devices too.
  static __device__ void store_record(std::uint32_t* record, std::uint32_t value) {
#ifdef SHMEMCTL_MUTATE_NETWORK_DOORBELL
    return store_relaxed(record, value);
#endif
    device::store_release(record, value);
  }
  /// GPUs do not gather stores to a register's page: nothing has to be pushed.
  static __device__ void store_doorbell(std::uint64_t* doorbell, std::uint64_t value,
                                        std::uint32_t) {
#ifdef SHMEMCTL_MUTATE_NETWORK_DOORBELL
    return store(doorbell, value);
#endif
    device::store_release(doorbell, value);
  }
};

/// Of the proxy's ring (src/runtime/proxy/proxy_ring.h).
struct DeviceAtomics {
  /// A release orders all that the thread did before it, over PCIe and NVLink too: a microsecond
  /// where much is on its way.
  static constexpr bool release_is_free = false;

  static __device__ std::uint64_t load_relaxed(const std::uint64_t* word) {
    return device::load_relaxed(word);
  }
  static __device__ std::uint64_t load_acquire(const std::uint64_t* word) {
    return device::load_acquire(word);
  }
  static __device__ void store_relaxed(std::uint64_t* word, std::uint64_t value) {
    device::store_relaxed(word, value);
  }
  static __device__ void store_release(std::uint64_t* word, std::uint64_t value) {
    device::store_release(word, value);
  }
  static __device__ std::uint64_t fetch_add_relaxed(std::uint64_t* word, std::uint64_t value) {
    return atomic_word_add(word, value);
  }
  static __device__ bool compare_exchange_acquire(std::uint64_t* word, std::uint64_t expected,
                                                  std::uint64_t desired) {
    return compare_swap_acquire(word, expected, desired) == expected;
  }
};

} // namespace shmemctl::device
