// Signals: 8-byte words that tell a PE that its data has arrived.
#pragma once

#include "kernels/device/atomics.cuh"
#include "src/abi/op_types.h"

namespace shmemctl::device {

/// Sets a signal of that PE, by the calling thread alone. Relaxed: use fence() to order it after
/// earlier operations.
__device__ inline void signal_set(const DeviceJob& job, std::uint64_t* signal, std::uint64_t value,
                                  int pe) {
  atomic_set(job, signal, value, pe);
}
__device__ inline void signal_add(const DeviceJob& job, std::uint64_t* signal, std::uint64_t value,
                                  int pe) {
  atomic_add(job, signal, value, pe);
}
/// Sets a signal or adds to it. For every observer, all that this thread has done or seen in mapped
/// memory comes before the signal.
__device__ inline void fenced_signal(const DeviceJob& job, std::uint64_t* signal,
                                     std::uint64_t value, SignalOp op, int pe) {
  fence_system(); // the signal itself is relaxed
  if (op == SignalOp::set)
    signal_set(job, signal, value, pe);
  else
    signal_add(job, signal, value, pe);
}
/// This PE's own signal, with acquire semantics.
__device__ inline std::uint64_t signal_fetch(const std::uint64_t* signal) {
  return load_acquire(signal);
}

namespace detail {

inline __device__ __noinline__ void
put_signal_over_network(const DeviceJob& job, const void* target, const void* source,
                        std::size_t size_bytes, const std::uint64_t* signal, std::uint64_t value,
                        bool add, int pe, bool blocking) {
  network_put_signal(job, network_address_of(job, target), source, size_bytes,
                     network_address_of(job, signal), value, add, pe, blocking);
}

/// Whether data and signal are the two halves of 16 aligned bytes.
__device__ inline bool is_adjacent_signal(const void* target, const std::uint64_t* signal,
                                          std::size_t size_bytes) {
  return size_bytes == 8 && reinterpret_cast<std::uintptr_t>(target) % 8 == 0 &&
         (reinterpret_cast<std::uintptr_t>(target) ^ reinterpret_cast<std::uintptr_t>(signal)) == 8;
}

/// One 16-byte store of data and signal: no wait, whereas a release waits until the data has been
/// acknowledged. A reader that sees the signal sees the data, since the store is single-copy atomic
/// (store_whole_relaxed()).
__device__ inline void put_signal_16_bytes(const DeviceJob& job, std::uint64_t* target,
                                           const void* source, std::uint64_t* signal,
                                           std::uint64_t value, int pe) {
  std::uint64_t data = 0;
  if (reinterpret_cast<std::uintptr_t>(source) % 8 == 0)
    data = *static_cast<const std::uint64_t*>(source);
  else
    memcpy(&data, source, sizeof data);
  const bool data_first = target < signal;
  std::uint64_t* const there = pointer_to(job, data_first ? target : signal, pe);
  store_whole_relaxed(there, data_first ? WordPair{data, value} : WordPair{value, data});
}

/// @param blocking sends what the scope's other threads have stored to `source` before, and
///                 `source` may be overwritten on return
template <class Scope>
__device__ inline void put_signal(const DeviceJob& job, void* target, const void* source,
                                  std::size_t size_bytes, std::uint64_t* signal,
                                  std::uint64_t value, SignalOp op, int pe, bool blocking) {
  if (blocking)
    Scope::sync();
  std::byte* const there = pointer_to(job, static_cast<std::byte*>(target), pe);
  if (there == nullptr) {
    if (!blocking)
      Scope::sync(); // orders the other threads' writes to `source`
    if (Scope::rank() == 0)
      put_signal_over_network(job, target, source, size_bytes, signal, value, op == SignalOp::add,
                              pe, blocking);
  } else if (op == SignalOp::set && is_adjacent_signal(target, signal, size_bytes)) {
    if (Scope::rank() == 0)
      put_signal_16_bytes(job, static_cast<std::uint64_t*>(target), source, signal, value, pe);
  } else {
    copy<Scope, Local>(there, source, size_bytes);
    // The release below also covers the other threads' stores, because this sync makes them visible
    // to the thread that signals.
    Scope::sync();
    if (Scope::rank() == 0) {
      std::uint64_t* const word = pointer_to(job, signal, pe);
      // Release: plain stores are unordered.
      if (op == SignalOp::set)
        store_release(word, value);
      else
        add_release(word, value);
    }
    return; // the sync came after all loads of `source`
  }
  if (blocking)
    Scope::sync();
}

} // namespace detail

/// Put with signal: the payload is visible at the target before the signal is set (or added to).
/// Says nothing about earlier puts. `source` may be overwritten on return. If data (8 bytes) and
/// signal (set) are the two halves of 16 aligned bytes, one store sends both to a mapped PE.
template <class Scope>
__device__ inline void put_signal(const DeviceJob& job, void* target, const void* source,
                                  std::size_t size_bytes, std::uint64_t* signal,
                                  std::uint64_t value, int pe, SignalOp op = SignalOp::set) {
  detail::put_signal<Scope>(job, target, source, size_bytes, signal, value, op, pe, true);
}
/// Non-blocking: `source` may be overwritten after quiet<Scope>(); other threads' stores to
/// `source` need a sync by the caller before.
template <class Scope>
__device__ inline void put_signal_nbi(const DeviceJob& job, void* target, const void* source,
                                      std::size_t size_bytes, std::uint64_t* signal,
                                      std::uint64_t value, int pe, SignalOp op = SignalOp::set) {
  detail::put_signal<Scope>(job, target, source, size_bytes, signal, value, op, pe, false);
}

} // namespace shmemctl::device
