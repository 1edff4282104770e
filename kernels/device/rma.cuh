// Put and get. A blocking call begins and ends with a sync of its scope. A call with _nbi does not
// sync if the PE is mapped: if other threads of the scope have stored to `source`, the caller has
// to sync before the call. After quiet<Scope>(), `source` may be overwritten, and `target` of a get
// may be read.
//
// For a PE that is not mapped, the scope's first thread posts the operation to the network; of an
// iput or iget, each thread posts its own elements.
#pragma once

#include <cstddef>
#include <type_traits>

#include "kernels/device/copy.cuh"
#include "kernels/device/symmetric_address.cuh"

namespace shmemctl::device {

namespace detail {

/// Not inlined: long, and rarely taken.
inline __device__ __noinline__ void put_over_network(const DeviceJob& job, const void* target,
                                                     const void* source, std::size_t size_bytes,
                                                     int pe, bool blocking) {
  network_put(job, network_address_of(job, target), source, size_bytes, pe, blocking);
}
inline __device__ __noinline__ void get_over_network(const DeviceJob& job, void* target,
                                                     const void* source, std::size_t size_bytes,
                                                     int pe, bool blocking) {
  network_get(job, target, network_address_of(job, source), size_bytes, pe, blocking);
}
inline __device__ __noinline__ void put_value_over_network(const DeviceJob& job, const void* target,
                                                           std::uint64_t value, unsigned size_bytes,
                                                           int pe) {
  network_put_value(job, network_address_of(job, target), value, size_bytes, pe);
}
inline __device__ __noinline__ std::uint64_t
get_value_over_network(const DeviceJob& job, const void* source, unsigned size_bytes, int pe) {
  std::uint64_t value = 0;
  network_get_value(job, network_address_of(job, source), size_bytes, pe, value);
  return value;
}

/// A value of 1, 2, 4 or 8 bytes as an integer, and back.
template <class T>
__device__ inline std::uint64_t to_bits(T value) {
  static_assert(std::is_trivially_copyable<T>::value &&
                    (sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8),
                "values of 1, 2, 4 or 8 bytes");
  std::uint64_t bits = 0;
  memcpy(&bits, &value, sizeof value);
  return bits;
}
template <class T>
__device__ inline T from_bits(std::uint64_t bits) {
  T value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/// Single-copy atomic, and not cached in L1: another thread may poll the value.
template <class T>
__device__ inline void store_value(T* at, T value) {
  if constexpr (sizeof(T) == 4)
    store_relaxed(reinterpret_cast<std::uint32_t*>(at), static_cast<std::uint32_t>(to_bits(value)));
  else if constexpr (sizeof(T) == 8)
    store_relaxed(reinterpret_cast<std::uint64_t*>(at), to_bits(value));
  else
    *const_cast<volatile T*>(at) = value;
}
template <class T>
__device__ inline T load_value(const T* at) {
  if constexpr (sizeof(T) == 4)
    return from_bits<T>(load_relaxed(reinterpret_cast<const std::uint32_t*>(at)));
  else if constexpr (sizeof(T) == 8)
    return from_bits<T>(load_relaxed(reinterpret_cast<const std::uint64_t*>(at)));
  else
    return *const_cast<const volatile T*>(at);
}

} // namespace detail

/// Non-blocking put; complete at the target after quiet<Scope>().
template <class Scope>
__device__ inline void put_nbi(const DeviceJob& job, void* target, const void* source,
                               std::size_t size_bytes, int pe) {
  if (std::byte* const there = pointer_to(job, static_cast<std::byte*>(target), pe)) {
    copy<Scope, Local>(there, source, size_bytes);
    return;
  }
  Scope::sync(); // orders the other threads' stores to `source`
  if (Scope::rank() == 0)
    detail::put_over_network(job, target, source, size_bytes, pe, false);
}

/// Blocking put: `source` may be overwritten on return.
template <class Scope>
__device__ inline void put(const DeviceJob& job, void* target, const void* source,
                           std::size_t size_bytes, int pe) {
  Scope::sync();
  if (std::byte* const there = pointer_to(job, static_cast<std::byte*>(target), pe))
    copy<Scope, Local>(there, source, size_bytes);
  else if (Scope::rank() == 0)
    detail::put_over_network(job, target, source, size_bytes, pe, true);
  Scope::sync();
}

/// Non-blocking get: `target` holds the data after quiet<Scope>(). If the PE is mapped, each thread
/// has fetched its own part on return.
template <class Scope>
__device__ inline void get_nbi(const DeviceJob& job, void* target, const void* source,
                               std::size_t size_bytes, int pe) {
  if (const std::byte* const there = pointer_to(job, static_cast<const std::byte*>(source), pe)) {
    copy<Scope, Remote>(target, there, size_bytes);
    return;
  }
  Scope::sync(); // no thread of the scope still uses `target`
  if (Scope::rank() == 0)
    detail::get_over_network(job, target, source, size_bytes, pe, false);
}

/// Blocking get: all threads of the scope see the data on return.
template <class Scope>
__device__ inline void get(const DeviceJob& job, void* target, const void* source,
                           std::size_t size_bytes, int pe) {
  Scope::sync();
  if (const std::byte* const there = pointer_to(job, static_cast<const std::byte*>(source), pe))
    copy<Scope, Remote>(target, there, size_bytes);
  else if (Scope::rank() == 0)
    detail::get_over_network(job, target, source, size_bytes, pe, true);
  Scope::sync();
}

/// One value of 1, 2, 4 or 8 bytes, by the calling thread alone (OpenSHMEM's p and g).
template <class T>
__device__ inline void put_value(const DeviceJob& job, T* target, T value, int pe) {
  if (T* const there = pointer_to(job, target, pe))
    detail::store_value(there, value);
  else
    detail::put_value_over_network(job, target, detail::to_bits(value), sizeof(T), pe);
}
template <class T>
__device__ inline T get_value(const DeviceJob& job, const T* source, int pe) {
  if (const T* const there = pointer_to(job, source, pe))
    return detail::load_value(there);
  return detail::from_bits<T>(detail::get_value_over_network(job, source, sizeof(T), pe));
}

namespace detail {

/// load_value() that also supports 16 bytes.
template <class T>
__device__ inline T load_one(const T* at) {
  if constexpr (sizeof(T) != 16) {
    return load_value(at);
  } else {
    static_assert(alignof(T) % 8 == 0, "values of 16 bytes are aligned to 8 at least");
    const auto* const words = reinterpret_cast<const std::uint64_t*>(at);
    const std::uint64_t halves[2] = {load_relaxed(words), load_relaxed(words + 1)};
    T value;
    memcpy(&value, halves, sizeof value);
    return value;
  }
}
/// One element of an iput to, or an iget from, a PE that is not mapped.
template <class T>
__device__ inline void put_one_over_network(const DeviceJob& job, T* target, const T* source,
                                            int pe) {
  if constexpr (sizeof(T) == 16)
    put_over_network(job, target, source, sizeof(T), pe, false);
  else
    put_value(job, target, *source, pe);
}
template <class T>
__device__ inline void get_one_over_network(const DeviceJob& job, T* target, const T* source,
                                            int pe) {
  if constexpr (sizeof(T) == 16)
    get_over_network(job, target, source, sizeof(T), pe, true);
  else
    *target = get_value(job, source, pe);
}

} // namespace detail

/// `count` values of 1, 2, 4, 8 or 16 bytes: target[i * target_stride] = source[i * source_stride],
/// where the target of an iput, and the source of an iget, are at that PE. An iput syncs the scope
/// and becomes complete as a put_nbi() does. An iget does not sync: on return each thread has
/// fetched its own part, whether the PE is mapped or not.
template <class Scope, class T>
__device__ inline void iput(const DeviceJob& job, T* target, const T* source,
                            std::ptrdiff_t target_stride, std::ptrdiff_t source_stride,
                            std::size_t count, int pe) {
  T* const there = pointer_to(job, target, pe);
  if (there == nullptr)
    Scope::sync();
  const std::size_t first = static_cast<std::size_t>(Scope::rank());
  for (std::size_t i = first; i < count; i += static_cast<std::size_t>(Scope::size())) {
    const auto at = static_cast<std::ptrdiff_t>(i);
    const T* const from = source + at * source_stride;
    if (there != nullptr)
      there[at * target_stride] = *from;
    else
      detail::put_one_over_network(job, target + at * target_stride, from, pe);
  }
}
template <class Scope, class T>
__device__ inline void iget(const DeviceJob& job, T* target, const T* source,
                            std::ptrdiff_t target_stride, std::ptrdiff_t source_stride,
                            std::size_t count, int pe) {
  const T* const there = pointer_to(job, source, pe);
  const std::size_t first = static_cast<std::size_t>(Scope::rank());
  for (std::size_t i = first; i < count; i += static_cast<std::size_t>(Scope::size())) {
    const auto at = static_cast<std::ptrdiff_t>(i);
    T* const to = target + at * target_stride;
    if (there != nullptr)
      *to = detail::load_one(there + at * source_stride);
    else
      detail::get_one_over_network(job, to, source + at * source_stride, pe);
  }
}

} // namespace shmemctl::device
