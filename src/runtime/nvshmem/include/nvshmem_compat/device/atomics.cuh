/* Atomics, executed by the calling thread. */
#ifndef NVSHMEM_COMPAT_DEVICE_ATOMICS_CUH
#define NVSHMEM_COMPAT_DEVICE_ATOMICS_CUH

#include "nvshmem_compat/device/job.cuh"

#ifdef NVSHMEM_COMPAT_DEFINES
namespace shmemctl::nvshmem {

/// Returns the result of `operation(job, word)`, with the word as an unsigned integer of its size.
/// If a check fails, returns T() instead.
template <class T, class Operation>
__device__ inline T atomically(const T* dest, int pe, const Operation& operation) {
  using Word = Bits<T>;
  const DeviceJob& job = this_job();
  if (job.checked != 0 &&
      !device::check_word(job, DeviceCall::atomic, DeviceArgument::dest, dest, sizeof(T), pe))
    return T();
  const T old =
      device::detail::from_bits<T>(operation(job, reinterpret_cast<Word*>(const_cast<T*>(dest))));
  if (job.checked != 0)
    device::count_completion(job);
  return old;
}
template <class T>
__device__ inline Bits<T> word_of(T value) {
  return static_cast<Bits<T>>(device::detail::to_bits(value));
}

template <class T>
__device__ inline T atomic_fetch(const T* source, int pe) {
  return atomically(source, pe, [&](const DeviceJob& job, Bits<T>* word) {
    return device::atomic_fetch(job, static_cast<const Bits<T>*>(word), pe);
  });
}
template <class T>
__device__ inline T atomic_compare_swap(T* dest, T cond, T value, int pe) {
  return atomically(dest, pe, [&](const DeviceJob& job, Bits<T>* word) {
    return device::atomic_compare_swap(job, word, word_of(cond), word_of(value), pe);
  });
}

/// Atomics with an operand: T or void NAME(T* dest, T value, int pe).
#define NVSHMEM_COMPAT_FETCHING(NAME)                                                              \
  template <class T>                                                                               \
  __device__ inline T NAME(T* dest, T value, int pe) {                                             \
    return atomically(dest, pe, [&](const DeviceJob& job, Bits<T>* word) {                         \
      return device::NAME(job, word, word_of(value), pe);                                          \
    });                                                                                            \
  }
#define NVSHMEM_COMPAT_NOT_FETCHING(NAME)                                                          \
  template <class T>                                                                               \
  __device__ inline void NAME(T* dest, T value, int pe) {                                          \
    atomically(dest, pe, [&](const DeviceJob& job, Bits<T>* word) {                                \
      device::NAME(job, word, word_of(value), pe);                                                 \
      return Bits<T>(0);                                                                           \
    });                                                                                            \
  }
NVSHMEM_COMPAT_FETCHING(atomic_swap)
NVSHMEM_COMPAT_FETCHING(atomic_fetch_add)
NVSHMEM_COMPAT_FETCHING(atomic_fetch_and)
NVSHMEM_COMPAT_FETCHING(atomic_fetch_or)
NVSHMEM_COMPAT_FETCHING(atomic_fetch_xor)
NVSHMEM_COMPAT_NOT_FETCHING(atomic_set)
NVSHMEM_COMPAT_NOT_FETCHING(atomic_add)
NVSHMEM_COMPAT_NOT_FETCHING(atomic_and)
NVSHMEM_COMPAT_NOT_FETCHING(atomic_or)
NVSHMEM_COMPAT_NOT_FETCHING(atomic_xor)
#undef NVSHMEM_COMPAT_FETCHING
#undef NVSHMEM_COMPAT_NOT_FETCHING

} // namespace shmemctl::nvshmem
#endif

#define NVSHMEM_COMPAT_FETCHING(T, N, OP)                                                          \
  NVSHMEM_COMPAT_SHARED T nvshmem_##N##_##OP(T* dest, T value, int pe)                             \
      NVSHMEM_COMPAT_BODY(return shmemctl::nvshmem::OP<T>(dest, value, pe););
#define NVSHMEM_COMPAT_NOT_FETCHING(T, N, OP)                                                      \
  NVSHMEM_COMPAT_SHARED void nvshmem_##N##_##OP(T* dest, T value, int pe)                          \
      NVSHMEM_COMPAT_BODY(shmemctl::nvshmem::OP<T>(dest, value, pe););

#define NVSHMEM_COMPAT_X(T, N)                                                                     \
  NVSHMEM_COMPAT_SHARED T nvshmem_##N##_atomic_fetch(const T* source, int pe)                      \
      NVSHMEM_COMPAT_BODY(return shmemctl::nvshmem::atomic_fetch<T>(source, pe););                 \
  NVSHMEM_COMPAT_NOT_FETCHING(T, N, atomic_set) NVSHMEM_COMPAT_FETCHING(T, N, atomic_swap)
NVSHMEM_COMPAT_AMO_EXTENDED_TYPES(NVSHMEM_COMPAT_X)
#undef NVSHMEM_COMPAT_X

#define NVSHMEM_COMPAT_X(T, N)                                                                     \
  NVSHMEM_COMPAT_SHARED T nvshmem_##N##_atomic_compare_swap(T* dest, T cond, T value, int pe)      \
      NVSHMEM_COMPAT_BODY(                                                                         \
          return shmemctl::nvshmem::atomic_compare_swap<T>(dest, cond, value, pe););               \
  NVSHMEM_COMPAT_SHARED T nvshmem_##N##_atomic_fetch_inc(T* dest, int pe)                          \
      NVSHMEM_COMPAT_BODY(return shmemctl::nvshmem::atomic_fetch_add<T>(dest, 1, pe););            \
  NVSHMEM_COMPAT_SHARED void nvshmem_##N##_atomic_inc(T* dest, int pe)                             \
      NVSHMEM_COMPAT_BODY(shmemctl::nvshmem::atomic_add<T>(dest, 1, pe););                         \
  NVSHMEM_COMPAT_FETCHING(T, N, atomic_fetch_add)                                                  \
  NVSHMEM_COMPAT_NOT_FETCHING(T, N, atomic_add)
NVSHMEM_COMPAT_AMO_TYPES(NVSHMEM_COMPAT_X)
#undef NVSHMEM_COMPAT_X

#define NVSHMEM_COMPAT_X(T, N)                                                                     \
  NVSHMEM_COMPAT_FETCHING(T, N, atomic_fetch_and)                                                  \
  NVSHMEM_COMPAT_FETCHING(T, N, atomic_fetch_or)                                                   \
  NVSHMEM_COMPAT_FETCHING(T, N, atomic_fetch_xor)                                                  \
  NVSHMEM_COMPAT_NOT_FETCHING(T, N, atomic_and)                                                    \
  NVSHMEM_COMPAT_NOT_FETCHING(T, N, atomic_or)                                                     \
  NVSHMEM_COMPAT_NOT_FETCHING(T, N, atomic_xor)
NVSHMEM_COMPAT_AMO_BITWISE_TYPES(NVSHMEM_COMPAT_X)
#undef NVSHMEM_COMPAT_X

#undef NVSHMEM_COMPAT_FETCHING
#undef NVSHMEM_COMPAT_NOT_FETCHING
#endif
