// Loads, stores and atomics on memory that another process of this node shares. They are inline,
// since each takes a few nanoseconds only.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>

#include "transports/transport.h"

#if defined(__SANITIZE_THREAD__)
#define SHMEMCTL_THREAD_SANITIZER
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SHMEMCTL_THREAD_SANITIZER
#endif
#endif

namespace shmemctl {

/// All memory accesses before the fence are complete, and visible to all threads and processes,
/// before any access after it begins.
inline void full_fence() {
#if defined(SHMEMCTL_THREAD_SANITIZER)
  // ThreadSanitizer does not support fences; on x86-64, a read-modify-write orders as much as one.
  thread_local std::atomic<unsigned> cell{0};
  cell.fetch_add(1, std::memory_order_seq_cst);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

/// Orders earlier loads and stores before later stores, and earlier loads before later loads. Does
/// not order stores before later loads; AtomicOp::fetch does that itself. No instruction on x86-64.
inline void order_fence() {
#if !defined(SHMEMCTL_THREAD_SANITIZER)
  std::atomic_thread_fence(std::memory_order_acq_rel);
#endif
}

namespace detail {

/// If the size is that of a word and the address is aligned to it, calls `use` with a zero of the
/// unsigned type of that size and returns true.
template <class Use>
[[gnu::always_inline]] inline bool as_word(const void* address, std::size_t size_bytes, Use&& use) {
  const auto place = reinterpret_cast<std::uintptr_t>(address);
  if (size_bytes == 8 && place % 8 == 0)
    use(std::uint64_t{});
  else if (size_bytes == 4 && place % 4 == 0)
    use(std::uint32_t{});
  else if (size_bytes == 2 && place % 2 == 0)
    use(std::uint16_t{});
  else if (size_bytes == 1)
    use(std::uint8_t{});
  else
    return false;
  return true;
}

template <class Word>
[[gnu::always_inline]] inline std::uint64_t execute(Word* target, const AtomicRequest& request) {
  std::atomic_ref<Word> word(*target);
  const auto operand = static_cast<Word>(request.operand);
  constexpr auto order = std::memory_order_seq_cst;
  switch (request.op) {
  case AtomicOp::fetch:
    // After a put and a fence, the word must not be read before the put is visible.
    full_fence();
    return word.load(order);
  case AtomicOp::set:
    word.store(operand, order);
    return 0;
  case AtomicOp::swap:
    return word.exchange(operand, order);
  case AtomicOp::add:
    return word.fetch_add(operand, order);
  case AtomicOp::bit_and:
    return word.fetch_and(operand, order);
  case AtomicOp::bit_or:
    return word.fetch_or(operand, order);
  case AtomicOp::bit_xor:
    return word.fetch_xor(operand, order);
  case AtomicOp::compare_swap: {
    auto expected = static_cast<Word>(request.compare);
    word.compare_exchange_strong(expected, operand, order);
    return expected;
  }
  }
  return 0;
}

} // namespace detail

/// The part of copy_to_shared() for data that is not an aligned word.
void copy_block_to_shared(void* target, const void* source, std::size_t size_bytes);

/// memcpy for the heap. Uses one atomic store (release) for an aligned word of 1, 2, 4 or 8 bytes,
/// plain stores below half of the L3 cache's size (at least 1, at most 32 MiB), and from there, on
/// x86-64, non-temporal stores, which keep the target's lines out of this core's cache and are
/// followed by a store fence. The ranges must be equal or must not overlap.
[[gnu::always_inline]] inline void copy_to_shared(void* target, const void* source,
                                                  std::size_t size_bytes) {
  // A flag that another PE waits for must be written exactly once, as a whole. memcpy may write a
  // word twice, and the second write would overwrite the value that the waiting PE stored after it
  // saw the first write. A release costs nothing on x86-64.
  const bool stored = detail::as_word(target, size_bytes, [&](auto value) {
    std::memcpy(&value, source, sizeof value);
    std::atomic_ref(*static_cast<decltype(value)*>(target)).store(value, std::memory_order_release);
  });
  if (!stored && size_bytes != 0)
    copy_block_to_shared(target, source, size_bytes);
}

/// The other direction: one atomic load (acquire) for an aligned word, else memcpy().
inline void copy_from_shared(void* target, void* source, std::size_t size_bytes) {
  const bool loaded = detail::as_word(source, size_bytes, [&](auto value) {
    value = std::atomic_ref(*static_cast<decltype(value)*>(source)).load(std::memory_order_acquire);
    std::memcpy(target, &value, sizeof value);
  });
  if (!loaded && size_bytes != 0 && target != source)
    std::memcpy(target, source, size_bytes);
}

/// Executes `request` with CPU atomics on memory that is mapped here, and returns the old value (0
/// for set). The address must be aligned to the word.
[[gnu::always_inline]] inline std::uint64_t execute_atomic(void* target,
                                                           const AtomicRequest& request) {
  if (request.size_bytes == 4)
    return detail::execute(static_cast<std::uint32_t*>(target), request);
  return detail::execute(static_cast<std::uint64_t*>(target), request);
}

/// Updates a signal, ordered after earlier stores (release; a set is a plain store on x86-64).
inline void signal_shared(void* signal, std::uint64_t value, SignalOp op) {
  std::atomic_ref word(*static_cast<std::uint64_t*>(signal));
  if (op == SignalOp::set)
    word.store(value, std::memory_order_release);
  else
    word.fetch_add(value, std::memory_order_seq_cst);
}

} // namespace shmemctl
