// Stands in for kernels/device/memory_order.cuh: the same functions by the compiler's atomics,
// which ThreadSanitizer understands.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <thread>

#include "kernels/device/scope.cuh"

namespace shmemctl::device {

/// The thread that is waited for may need this core.
inline void host_before_load() {
  host_yield_polling();
  thread_local unsigned loads = 0;
  if (++loads % 32 == 0)
    std::this_thread::yield();
}

/// Counts the loads of a word by the threads of one block, so that a test knows when that block
/// waits for it. Relaxed: it must not order what ThreadSanitizer is to find unordered.
struct HostPollCount {
  const std::uint64_t* word = nullptr;
  unsigned block = 0;
  HostPollCount* next = nullptr;
  std::atomic<std::uint64_t> polls{0};
};
/// A list, changed only while no kernel runs.
inline HostPollCount* host_poll_counts = nullptr;
inline void host_count_poll(const std::uint64_t* word) {
  for (HostPollCount* count = host_poll_counts; count != nullptr; count = count->next)
    if (count->word == word && count->block == blockIdx.x)
      count->polls.fetch_add(1, std::memory_order_relaxed);
}

/// A fence of this thread orders what came before it ahead of its relaxed stores behind it: here
/// they release, because ThreadSanitizer knows no fences. Stronger than a fence in that they cover
/// what lies between, too; a thread without one has only relaxed stores.
inline thread_local bool host_fenced = false;
inline int order_of_store() {
  return host_fenced ? __ATOMIC_RELEASE : __ATOMIC_RELAXED;
}

template <class Word>
Word load_acquire(const Word* at) {
  host_before_load();
  return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}
inline std::uint64_t load_relaxed(const std::uint64_t* at) {
  if (host_deliver != nullptr) // some loops look with nothing else
    host_deliver();
  thread_local unsigned looks = 0;
  if (++looks % 64 == 0)
    std::this_thread::yield();
  host_count_poll(at);
  return __atomic_load_n(at, __ATOMIC_RELAXED);
}
inline std::uint32_t load_relaxed(const std::uint32_t* at) {
  return __atomic_load_n(at, __ATOMIC_RELAXED);
}
inline int4 load_relaxed(const int4* at) {
  return *at;
}
template <class Word>
void store_release(Word* at, Word value) {
  __atomic_store_n(at, value, __ATOMIC_RELEASE);
}
inline void store_release(std::uint64_t* at, std::uint64_t value) {
  __atomic_store_n(at, value, __ATOMIC_RELEASE);
}
inline void store_relaxed(std::uint64_t* at, std::uint64_t value) {
  __atomic_store_n(at, value, order_of_store());
}
inline void store_relaxed(std::uint32_t* at, std::uint32_t value) {
  __atomic_store_n(at, value, order_of_store());
}
inline void add_release(std::uint64_t* at, std::uint64_t value) {
  __atomic_fetch_add(at, value, __ATOMIC_RELEASE);
}
inline void add_relaxed(std::uint64_t* at, std::uint64_t value) {
  __atomic_fetch_add(at, value, order_of_store());
}

struct WordPair {
  std::uint64_t first, second;
};
inline WordPair load_pair_relaxed(const std::uint64_t* at) {
  host_before_load();
  return {load_relaxed(at), load_relaxed(at + 1)};
}
inline void store_pair_relaxed(std::uint64_t* at, WordPair pair) {
  store_relaxed(at + 1, pair.second); // no order is promised
  store_relaxed(at, pair.first);
}
/// Two stores can only be in one order here: the second half is the signal in the tests.
inline void store_whole_relaxed(std::uint64_t* at, WordPair pair) {
  at[0] = pair.first;
  store_release(at + 1, pair.second);
}

template <class Word>
Word atomic_word_add(Word* at, Word value) {
  return __atomic_fetch_add(at, value, order_of_store());
}
inline std::uint64_t atomic_word_add_ordered(std::uint64_t* at, std::uint64_t value) {
  return __atomic_fetch_add(at, value, __ATOMIC_ACQ_REL);
}
inline std::uint32_t atomic_word_add_ordered(std::uint32_t* at, std::uint32_t value) {
  return __atomic_fetch_add(at, value, __ATOMIC_ACQ_REL);
}
template <class Word>
Word atomic_word_swap(Word* at, Word value) {
  return __atomic_exchange_n(at, value, order_of_store());
}
template <class Word>
Word atomic_word_compare_swap(Word* at, Word expected, Word desired) {
  __atomic_compare_exchange_n(at, &expected, desired, false, order_of_store(), __ATOMIC_RELAXED);
  return expected;
}
template <class Word>
Word atomic_word_and(Word* at, Word value) {
  return __atomic_fetch_and(at, value, order_of_store());
}
template <class Word>
Word atomic_word_or(Word* at, Word value) {
  return __atomic_fetch_or(at, value, order_of_store());
}
template <class Word>
Word atomic_word_xor(Word* at, Word value) {
  return __atomic_fetch_xor(at, value, order_of_store());
}

/// A fence that ThreadSanitizer sees: stronger than one, since all of them meet at a word.
inline void fence_system() {
  host_fenced = true;
  static std::uint64_t all = 0;
  __atomic_fetch_add(&all, 1, __ATOMIC_ACQ_REL);
}

/// A release for each word: a fence here would order the thread's later relaxed stores, too, and so
/// hide other fences that are missing. Stronger than the device's in that each word covers what the
/// thread did between the words.
class SharedRelease {
public:
  void add(std::uint64_t* at, std::uint64_t value) { add_release(at, value); }
  void store(std::uint64_t* at, std::uint64_t value) { store_release(at, value); }
};

inline void store_release_device(std::uint64_t* at, std::uint64_t value) {
  store_release(at, value);
}

/// What tests have let pass at once, in addition to the clock: a test that waits for a delay or a
/// timeout does not depend on how fast the machine is.
inline std::atomic<std::uint64_t> host_skipped_ns{0};
inline std::uint64_t global_time_ns() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()) +
         host_skipped_ns.load(std::memory_order_relaxed);
}

} // namespace shmemctl::device

inline long long __ldg(const long long* at) {
  return *at;
}
