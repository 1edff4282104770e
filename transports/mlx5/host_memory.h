// The loads and stores with which host threads access a send queue.
#pragma once

#include <atomic>
#include <cstdint>

#include "src/abi/post_wqe.h"
#include "src/base/host_atomics.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace shmemctl::mlx5 {

struct HostMemory : HostAtomics {
  /// Any number of threads may poll the collapsed CQE.
  static constexpr bool one_polls = false;
  using Group = Alone;
  static Group group(std::uint64_t) { return {}; }

  static std::uint64_t load(const std::uint64_t* word) { return load_relaxed(word); }
  static void store(std::uint64_t* word, std::uint64_t value) { store_relaxed(word, value); }
  static std::uint64_t fetch_add(std::uint64_t* word, std::uint64_t value) {
    return fetch_add_relaxed(word, value);
  }
  static std::uint64_t exchange_acquire(std::uint64_t* word, std::uint64_t value) {
    return reference(word).exchange(value, std::memory_order_acquire);
  }
  static void fetch_max_release(std::uint64_t* word, std::uint64_t value) {
    std::uint64_t seen = reference(word).load(std::memory_order_relaxed);
    while (seen < value && !reference(word).compare_exchange_weak(
                               seen, value, std::memory_order_release, std::memory_order_relaxed)) {
    }
  }

  /// Acquire and release of the turn to publish WQEs.
  static std::uint64_t load_turn(const std::uint64_t* word) { return load_acquire(word); }
  static void wqes_written() {}
  static void pass_turn(std::uint64_t* word, std::uint64_t, std::uint64_t to) {
    store_release(word, to);
  }

  /// Loads a word that the device writes; acquires all that the device wrote before.
  static std::uint64_t load_completion(const std::uint64_t* word) { return load_acquire(word); }
  /// Stores a word of a WQE. A plain store, so that ThreadSanitizer detects missing ordering.
  static void store_plain(std::uint64_t* word, std::uint64_t value) { *word = value; }

  /// Stores a doorbell record, which the HCA reads from memory: a release.
  static void store_record(std::uint32_t* record, std::uint32_t value) {
    fence_to_device();
    std::atomic_ref<std::uint32_t>(*record).store(value, std::memory_order_release);
  }
  /// Writes the doorbell register, ordered after all earlier stores. The write is flushed when this
  /// returns, even if the register's page is write-combining (`write_combining` nonzero).
  static void store_doorbell(std::uint64_t* doorbell, std::uint64_t value,
                             std::uint32_t write_combining) {
    fence_to_device();
    flush_writes(write_combining);
    reference(doorbell).store(value, std::memory_order_release);
    flush_writes(write_combining);
  }

private:
  /// Orders stores for a device. On x86-64 nothing is needed: a device sees stores to ordinary
  /// memory in order. Elsewhere, a release orders stores for CPUs only.
  static void fence_to_device() {
#if defined(__aarch64__)
    asm volatile("dmb oshst" ::: "memory");
#elif defined(__powerpc64__)
    asm volatile("sync" ::: "memory");
#endif
  }
  static void flush_writes(std::uint32_t write_combining) {
#if defined(__x86_64__)
    if (write_combining != 0)
      _mm_sfence();
#else
    if (write_combining != 0)
      fence_to_device();
#endif
  }
};

} // namespace shmemctl::mlx5
