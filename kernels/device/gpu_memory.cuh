// Loads, stores and atomics of kernels as the templates of queues and rings take them: by a struct.
// What they are, and their orders, is in memory_order.cuh and device_order.cuh. The words that
// producers share stand in the GPU's memory; entries, completions and records wherever the device
// and the GPU reach them.
#pragma once

#include "kernels/device/device_order.cuh"
#include "kernels/device/warp_group.cuh"

namespace shmemctl::device {

/// Of a send queue (transports/mlx5/send_queue.h). What producers share is for threads of this GPU.
struct GpuMemory {
  /// A look at the device's completion is a round trip over PCIe.
  static constexpr bool one_polls = true;
  using Group = WarpGroup;
  /// Threads of the caller's warp that are here at the same time with the same key.
  static __device__ Group group(std::uint64_t key) { return WarpGroup::of(key); }

  static __device__ std::uint64_t load(const std::uint64_t* word) {
    return load_relaxed_device(word);
  }
  static __device__ std::uint64_t load_acquire(const std::uint64_t* word) {
#ifdef SHMEMCTL_MUTATE_NETWORK_ACQUIRE
    return load(word);
#endif
    return load_acquire_device(word);
  }
  static __device__ void store(std::uint64_t* word, std::uint64_t value) {
    store_relaxed_device(word, value);
  }
  static __device__ void store_release(std::uint64_t* word, std::uint64_t value) {
#ifdef SHMEMCTL_MUTATE_NETWORK_RELEASE
    return store(word, value);
#endif
    store_release_device(word, value);
  }
  static __device__ std::uint64_t fetch_add(std::uint64_t* word, std::uint64_t value) {
    return fetch_add_relaxed_device(word, value);
  }
  static __device__ std::uint64_t exchange_acquire(std::uint64_t* word, std::uint64_t value) {
    return swap_acquire_device(word, value);
  }
  static __device__ bool compare_exchange_acquire(std::uint64_t* word, std::uint64_t expected,
                                                  std::uint64_t desired) {
    return compare_swap_acquire_device(word, expected, desired) == expected;
  }
  static __device__ void fetch_max_release(std::uint64_t* word, std::uint64_t value) {
    max_release_device(word, value);
  }

  // The turn is handed on by relaxed read-modify-writes: each continues what the one before it has
  // begun, so who reads the last one and fences sees all entries. The fences of those who wait for
  // their turn go on at the same time.

  static __device__ void entries_written() {
#ifndef SHMEMCTL_MUTATE_NETWORK_RELEASE
    fence_device();
#endif
  }
  static __device__ std::uint64_t load_turn(const std::uint64_t* word) {
    return load(word);
  }
  static __device__ void pass_turn(std::uint64_t* word, std::uint64_t from, std::uint64_t to) {
    add_relaxed_device(word, to - from);
  }

  // The device's.

  /// And all that it wrote before.
  static __device__ std::uint64_t load_completion(const std::uint64_t* word) {
#ifdef SHMEMCTL_MUTATE_NETWORK_ACQUIRE
    return load_relaxed(word);
#endif
    return device::load_acquire(word);
  }
  static __device__ void store_plain(std::uint64_t* word, std::uint64_t value) {
    *word = value;
  }
  /// Behind everything before it that this thread knows of, for devices too.
  static __device__ void store_record(std::uint32_t* record, std::uint32_t value) {
#ifndef SHMEMCTL_MUTATE_NETWORK_DOORBELL
    fence_system(); // an acquire, too: of the turns that load_turn() has seen
#endif
    store_relaxed(record, value);
  }
  /// GPUs do not gather stores to a register's page: nothing has to be pushed.
  static __device__ void store_doorbell(std::uint64_t* doorbell, std::uint64_t value,
                                        std::uint32_t) {
#ifdef SHMEMCTL_MUTATE_NETWORK_DOORBELL
    return store_relaxed(doorbell, value);
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
