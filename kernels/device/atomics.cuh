// Atomics on symmetric 32- or 64-bit words, by the calling thread alone. They are relaxed: as in
// OpenSHMEM, fence() and quiet() give an order. Non-fetching atomics are complete after quiet().
//
// The words are in GPU memory: atomics of GPUs on each other's memory go over NVLink and PCIe. They
// are not atomic with those that the network makes for a PE that is not mapped; do not mix both on
// one word.
#pragma once

#include "kernels/device/rma.cuh"

namespace shmemctl::device {

namespace detail {

template <class T>
using AtomicWord = typename std::conditional<
    sizeof(T) == 4, std::uint32_t,
    typename std::conditional<sizeof(T) == 8, std::uint64_t, void>::type>::type;

inline __device__ __noinline__ std::uint64_t
atomic_over_network(const DeviceJob& job, const void* target, NetworkAtomic op, unsigned size_bytes,
                    std::uint64_t operand, std::uint64_t compare, int pe, bool wants_old) {
  std::uint64_t old = 0;
  network_atomic(job, network_address_of(job, target), op, size_bytes, operand, compare, pe,
                 wants_old ? &old : nullptr);
  return old;
}

/// An atomic on a word that is mapped for this GPU. Returns the old value; 0 if `op` is `set`.
template <class Word>
__device__ inline Word apply_atomic(Word* word, NetworkAtomic op, Word operand, Word compare) {
  switch (op) {
  case NetworkAtomic::fetch:
    return load_relaxed(word);
  case NetworkAtomic::set:
    store_relaxed(word, operand);
    return 0;
  case NetworkAtomic::swap:
    return atomic_word_swap(word, operand);
  case NetworkAtomic::compare_swap:
    return atomic_word_compare_swap(word, compare, operand);
  case NetworkAtomic::add:
    return atomic_word_add(word, operand);
  case NetworkAtomic::bit_and:
    return atomic_word_and(word, operand);
  case NetworkAtomic::bit_or:
    return atomic_word_or(word, operand);
  case NetworkAtomic::bit_xor:
    return atomic_word_xor(word, operand);
  }
  return 0;
}

/// One operation on a PE, mapped or not. `op` is a compile-time constant in each caller.
template <bool wants_old, class T>
__device__ inline T atomic(const DeviceJob& job, T* target, NetworkAtomic op, T operand, T compare,
                           int pe) {
  using Word = AtomicWord<T>;
  auto* const there = reinterpret_cast<Word*>(pointer_to(job, target, pe));
  const auto bits = static_cast<Word>(to_bits(operand));
  if (there == nullptr)
    return from_bits<T>(
        atomic_over_network(job, target, op, sizeof(T), bits, to_bits(compare), pe, wants_old));
  return from_bits<T>(apply_atomic(there, op, bits, static_cast<Word>(to_bits(compare))));
}

template <class T>
__device__ constexpr void require_whole() {
  static_assert(std::is_integral<T>::value, "arithmetic and bits are for whole numbers");
}

} // namespace detail

/// For any type of 4 or 8 bytes, floating point included. compare_swap compares bits.
template <class T>
__device__ inline T atomic_fetch(const DeviceJob& job, const T* source, int pe) {
  return detail::atomic<true>(job, const_cast<T*>(source), NetworkAtomic::fetch, T(), T(), pe);
}
template <class T>
__device__ inline void atomic_set(const DeviceJob& job, T* target, T value, int pe) {
  detail::atomic<false>(job, target, NetworkAtomic::set, value, T(), pe);
}
template <class T>
__device__ inline T atomic_swap(const DeviceJob& job, T* target, T value, int pe) {
  return detail::atomic<true>(job, target, NetworkAtomic::swap, value, T(), pe);
}
template <class T>
__device__ inline T atomic_compare_swap(const DeviceJob& job, T* target, T expected, T desired,
                                        int pe) {
  return detail::atomic<true>(job, target, NetworkAtomic::compare_swap, desired, expected, pe);
}

/// For integers, which wrap around.
template <class T>
__device__ inline T atomic_fetch_add(const DeviceJob& job, T* target, T value, int pe) {
  detail::require_whole<T>();
  return detail::atomic<true>(job, target, NetworkAtomic::add, value, T(), pe);
}
template <class T>
__device__ inline void atomic_add(const DeviceJob& job, T* target, T value, int pe) {
  detail::require_whole<T>();
  detail::atomic<false>(job, target, NetworkAtomic::add, value, T(), pe);
}
template <class T>
__device__ inline T atomic_fetch_inc(const DeviceJob& job, T* target, int pe) {
  return atomic_fetch_add(job, target, T(1), pe);
}
template <class T>
__device__ inline void atomic_inc(const DeviceJob& job, T* target, int pe) {
  atomic_add(job, target, T(1), pe);
}
template <class T>
__device__ inline T atomic_fetch_and(const DeviceJob& job, T* target, T value, int pe) {
  detail::require_whole<T>();
  return detail::atomic<true>(job, target, NetworkAtomic::bit_and, value, T(), pe);
}
template <class T>
__device__ inline void atomic_and(const DeviceJob& job, T* target, T value, int pe) {
  detail::require_whole<T>();
  detail::atomic<false>(job, target, NetworkAtomic::bit_and, value, T(), pe);
}
template <class T>
__device__ inline T atomic_fetch_or(const DeviceJob& job, T* target, T value, int pe) {
  detail::require_whole<T>();
  return detail::atomic<true>(job, target, NetworkAtomic::bit_or, value, T(), pe);
}
template <class T>
__device__ inline void atomic_or(const DeviceJob& job, T* target, T value, int pe) {
  detail::require_whole<T>();
  detail::atomic<false>(job, target, NetworkAtomic::bit_or, value, T(), pe);
}
template <class T>
__device__ inline T atomic_fetch_xor(const DeviceJob& job, T* target, T value, int pe) {
  detail::require_whole<T>();
  return detail::atomic<true>(job, target, NetworkAtomic::bit_xor, value, T(), pe);
}
template <class T>
__device__ inline void atomic_xor(const DeviceJob& job, T* target, T value, int pe) {
  detail::require_whole<T>();
  detail::atomic<false>(job, target, NetworkAtomic::bit_xor, value, T(), pe);
}

// Non-blocking, as in OpenSHMEM: `*fetch`, in this thread's own memory, holds the old value after
// quiet(). Here it already does on return.

template <class T>
__device__ inline void atomic_fetch_nbi(const DeviceJob& job, T* fetch, const T* source, int pe) {
  *fetch = atomic_fetch(job, source, pe);
}
template <class T>
__device__ inline void atomic_swap_nbi(const DeviceJob& job, T* fetch, T* target, T value, int pe) {
  *fetch = atomic_swap(job, target, value, pe);
}
template <class T>
__device__ inline void atomic_compare_swap_nbi(const DeviceJob& job, T* fetch, T* target,
                                               T expected, T desired, int pe) {
  *fetch = atomic_compare_swap(job, target, expected, desired, pe);
}
template <class T>
__device__ inline void atomic_fetch_add_nbi(const DeviceJob& job, T* fetch, T* target, T value,
                                            int pe) {
  *fetch = atomic_fetch_add(job, target, value, pe);
}
template <class T>
__device__ inline void atomic_fetch_inc_nbi(const DeviceJob& job, T* fetch, T* target, int pe) {
  *fetch = atomic_fetch_inc(job, target, pe);
}
template <class T>
__device__ inline void atomic_fetch_and_nbi(const DeviceJob& job, T* fetch, T* target, T value,
                                            int pe) {
  *fetch = atomic_fetch_and(job, target, value, pe);
}
template <class T>
__device__ inline void atomic_fetch_or_nbi(const DeviceJob& job, T* fetch, T* target, T value,
                                           int pe) {
  *fetch = atomic_fetch_or(job, target, value, pe);
}
template <class T>
__device__ inline void atomic_fetch_xor_nbi(const DeviceJob& job, T* fetch, T* target, T value,
                                            int pe) {
  *fetch = atomic_fetch_xor(job, target, value, pe);
}

} // namespace shmemctl::device
