// Loads and stores of 64-bit words by CPU atomics, for protocols that host and device share.
#pragma once

#include <atomic>
#include <cstdint>

namespace shmemctl {

struct HostAtomics {
  /// A release store is a plain store on x86-64, and cheap elsewhere. So every request of the host
  /// is ordered after everything that its thread did before.
  static constexpr bool release_is_free = true;

  static std::uint64_t load_relaxed(const std::uint64_t* word) {
    return reference(word).load(std::memory_order_relaxed);
  }
  static std::uint64_t load_acquire(const std::uint64_t* word) {
    return reference(word).load(std::memory_order_acquire);
  }
  static void store_relaxed(std::uint64_t* word, std::uint64_t value) {
    reference(word).store(value, std::memory_order_relaxed);
  }
  static void store_release(std::uint64_t* word, std::uint64_t value) {
    reference(word).store(value, std::memory_order_release);
  }
  static std::uint64_t fetch_add_relaxed(std::uint64_t* word, std::uint64_t value) {
    return reference(word).fetch_add(value, std::memory_order_relaxed);
  }
  static std::uint64_t fetch_or_relaxed(std::uint64_t* word, std::uint64_t bits) {
    return reference(word).fetch_or(bits, std::memory_order_relaxed);
  }
  static bool compare_exchange_acquire(std::uint64_t* word, std::uint64_t expected,
                                       std::uint64_t desired) {
    return reference(word).compare_exchange_strong(expected, desired, std::memory_order_acquire,
                                                   std::memory_order_relaxed);
  }

protected:
  /// atomic_ref requires a mutable object, although loads do not change it.
  static std::atomic_ref<std::uint64_t> reference(const std::uint64_t* word) {
    return std::atomic_ref<std::uint64_t>(*const_cast<std::uint64_t*>(word));
  }
};

} // namespace shmemctl
