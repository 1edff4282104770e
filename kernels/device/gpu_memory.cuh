// Loads, stores and atomics of kernels in the form that the templates SendQueue and the proxy FIFO
// take: static members of a struct. Their instructions and orders are in memory_order.cuh and
// gpu_scope_order.cuh. State shared by producers is in GPU memory; WQEs, CQEs and doorbell records
// are in any memory that both the HCA and the GPU can access.
#pragma once

#include "kernels/device/gpu_scope_order.cuh"
#include "kernels/device/warp_group.cuh"

namespace shmemctl::device {

/// For SendQueue. State shared by producers is accessed by threads of this GPU only (scope .gpu).
struct GpuMemory {
  /// Polling a CQE is a PCIe round trip, so only one thread polls.
  static constexpr bool one_polls = true;
  using Group = WarpGroup;
  /// Threads of the caller's warp that are converged here with the same key.
  static __device__ Group group(std::uint64_t key) { return WarpGroup::of(key); }

  static __device__ std::uint64_t load(const std::uint64_t* word) {
    return load_relaxed_device(word);
  }
  static __device__ std::uint64_t load_acquire(const std::uint64_t* word) {
    return load_acquire_device(word);
  }
  static __device__ void store(std::uint64_t* word, std::uint64_t value) {
    store_relaxed_device(word, value);
  }
  static __device__ void store_release(std::uint64_t* word, std::uint64_t value) {
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

  // The turn is passed by relaxed read-modify-writes, which form a release sequence: the thread
  // that reads the last one and fences sees all WQEs. The fences of threads that wait for their
  // turn overlap.

  static __device__ void wqes_written() { fence_device(); }
  static __device__ std::uint64_t load_turn(const std::uint64_t* word) { return load(word); }
  static __device__ void pass_turn(std::uint64_t* word, std::uint64_t from, std::uint64_t to) {
    add_relaxed_device(word, to - from);
  }

  // Words that the HCA writes or reads.

  /// Acquire: everything that the HCA wrote before the CQE is visible.
  static __device__ std::uint64_t load_completion(const std::uint64_t* word) {
    return device::load_acquire(word);
  }
  static __device__ void store_plain(std::uint64_t* word, std::uint64_t value) { *word = value; }
  /// Release at system scope: after everything that this thread has done or seen, for devices too.
  static __device__ void store_record(std::uint32_t* record, std::uint32_t value) {
    fence_system(); // also makes the relaxed load of load_turn() an acquire
    store_relaxed(record, value);
  }
  /// GPUs do not write-combine stores to the UAR page: no flush is needed.
  static __device__ void store_doorbell(std::uint64_t* doorbell, std::uint64_t value,
                                        std::uint32_t) {
    device::store_release(doorbell, value);
  }
};

/// For the proxy's FIFO (src/abi/proxy_fifo.h).
struct DeviceAtomics {
  /// A release waits for all earlier stores of the thread, also for those over PCIe and NVLink,
  /// which takes a microsecond when many are in flight.
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
