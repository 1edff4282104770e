// Atomics on symmetric words of 4 or 8 bytes, by the calling thread alone. They have no order: as
// in OpenSHMEM, fence() and quiet() give one. Those without an old value are complete after
// quiet().
//
// The words lie in GPU memory: atomics of GPUs on each other's memory go over NVLink and PCIe. What
// the network does with a PE that is not mapped is its own; do not mix both ways on one word.
#pragma once

#include "kernels/device/rma.cuh"

namespace shmemctl::device {

namespace detail {

template <class T>
using AtomicWord = typename std::conditional<
    sizeof(T) == 4, std::uint32_t,
    typename std::conditional<sizeof(T) == 8, std::uint64_t, void>::type>::type;

inline __device__ __noinline__ std::uint64_t
atomic_far(const DeviceJob& job, const void* target, NetworkAtomic op, unsigned size_bytes,
           std::uint64_t operand, std::uint64_t compare, int pe, bool wants_old) {
  std::uint64_t old = 0;
  network_atomic(job, place_of(job, target), op, size_bytes, operand, compare, pe,
                 wants_old ? &old : nullptr);
  return old;
}

/// One operation, mapped or not. `op` is a constant at each call.
template <bool wants_old, class T>
__device__ inline T atomic(const DeviceJob& job, T* target, NetworkAtomic op, T operand, T compare,
                           int pe) {
  using Word = AtomicWord<T>;
  auto* const there = reinterpret_cast<Word*>(pointer_to(job, target, pe));
  const auto bits = static_cast<Word>(to_bits(operand));
  if (there == nullptr)
    return from_bits<T>(
        atomic_far(job, target, op, sizeof(T), bits, to_bits(compare), pe, wants_old));
  Word old = 0;
  switch (op) {
  case NetworkAtomic::fetch:
    old = load_relaxed(there);
    break;
  case NetworkAtomic::set:
    store_relaxed(there, bits);
    break;
  case NetworkAtomic::swap:
    old = atomic_word_swap(there, bits);
    break;
  case NetworkAtomic::compare_swap:
    old = atomic_word_compare_swap(there, static_cast<Word>(to_bits(compare)), bits);
    break;
  case NetworkAtomic::add:
    old = atomic_word_add(there, bits);
    break;
  case NetworkAtomic::bit_and:
    old = atomic_word_and(there, bits);
    break;
  case NetworkAtomic::bit_or:
    old = atomic_word_or(there, bits);
    break;
  case NetworkAtomic::bit_xor:
    old = atomic_word_xor(there, bits);
    break;
  }
  return from_bits<T>(old);
}

template <class T>
__device__ constexpr void require_whole() {
  static_assert(std::is_integral<T>::value, "arithmetic and bits are for whole numbers");
}

} // namespace detail

/// Any type of 4 or 8 bytes, numbers with a point too. compare_swap compares bits.
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

/// Whole numbers; they wrap around.
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

} // namespace shmemctl::device
