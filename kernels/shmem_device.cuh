// One-sided operations of kernels on the symmetric heap.
//
// Each call takes the threads that make it as its first template argument: Thread, Warp or Block
// (scope.cuh); all of them call it with the same arguments. Addresses are this PE's own addresses
// of symmetric objects, as in OpenSHMEM: they name the same object on the peer.
#pragma once

#include "kernels/device/copy.cuh"
#include "kernels/device/memory_order.cuh"
#include "kernels/device/scope.cuh"
#include "kernels/device_job.h"

namespace shmemctl::device {

/// Where `local`, a symmetric address of mine, is on that PE; nullptr if kernels cannot reach it by
/// loads and stores.
template <class T>
__device__ inline T* pointer_to(const DeviceJob& job, T* local, int pe) {
  const std::int64_t delta = job.heap_delta_bytes[pe];
  if (delta == DeviceJob::unreachable)
    return nullptr;
  return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(local) +
                              static_cast<std::uintptr_t>(delta));
}

/// Writes; complete at the target after quiet(). `source` is free when all threads have returned.
template <class Scope>
__device__ inline void put(const DeviceJob& job, void* target, const void* source,
                           std::size_t size_bytes, int pe) {
  copy<Scope, Local>(pointer_to(job, static_cast<std::byte*>(target), pe), source, size_bytes);
}

/// Reads. What this thread has copied is there when it returns, everything after Scope::sync().
template <class Scope>
__device__ inline void get(const DeviceJob& job, void* target, const void* source,
                           std::size_t size_bytes, int pe) {
  copy<Scope, Remote>(target, pointer_to(job, static_cast<const std::byte*>(source), pe),
                      size_bytes);
}

/// One value, by the calling thread alone.
template <class T>
__device__ inline void put_value(const DeviceJob& job, T* target, T value, int pe) {
  *const_cast<volatile T*>(pointer_to(job, target, pe)) = value;
}
template <class T>
__device__ inline T get_value(const DeviceJob& job, const T* source, int pe) {
  return *const_cast<const volatile T*>(pointer_to(job, source, pe));
}

/// All that this thread has done before comes before all that it does later, towards each PE.
__device__ inline void fence() {
  fence_system();
}

/// All that this thread has done before is complete at its target. Stores over NVLink and PCIe are
/// performed in the sense of the memory model when a fence of the system's scope has returned.
__device__ inline void quiet() {
  fence_system();
}

/// Sets a signal of that PE. Not ordered behind what was done before: fence() does that.
__device__ inline void signal_set(const DeviceJob& job, std::uint64_t* signal, std::uint64_t value,
                                  int pe) {
  store_relaxed(pointer_to(job, signal, pe), value);
}
__device__ inline void signal_add(const DeviceJob& job, std::uint64_t* signal, std::uint64_t value,
                                  int pe) {
  add_relaxed(pointer_to(job, signal, pe), value);
}

/// The payload is visible at the target before the signal is. The release covers the whole scope's
/// stores: its barrier comes between (cumulativity of release patterns, PTX memory model).
template <class Scope>
__device__ inline void put_signal(const DeviceJob& job, void* target, const void* source,
                                  std::size_t size_bytes, std::uint64_t* signal,
                                  std::uint64_t value, int pe) {
  put<Scope>(job, target, source, size_bytes, pe);
  Scope::sync();
  if (Scope::rank() == 0)
    store_release(pointer_to(job, signal, pe), value);
}

/// Fills the report, once for all threads of the job on this PE.
__device__ inline void report_wait(const DeviceJob& job, int peer, std::uint64_t expected,
                                   std::uint64_t seen, const std::uint64_t* at) {
  WaitReport* const report = job.report;
  if (atomicCAS_system(reinterpret_cast<unsigned long long*>(&report->state), WaitReport::none,
                       WaitReport::being_written) != WaitReport::none)
    return;
  report->peer = peer;
  report->block = static_cast<std::int32_t>(blockIdx.x);
  report->expected = expected;
  report->seen = seen;
  report->offset_bytes =
      static_cast<std::uint64_t>(reinterpret_cast<const std::byte*>(at) - job.heap);
  store_release(&report->state, WaitReport::written);
}

/// Waits, by the calling thread, until the word at `at` (my own memory) is at least `value`; then
/// everything before the store of it is visible. Returns what it was; false in `ok` after
/// job.timeout_ns, and then the host is told whom it waited for.
/// @param peer who is expected to write it; -1 if anybody
__device__ inline std::uint64_t wait_at_least(const DeviceJob& job, const std::uint64_t* at,
                                              std::uint64_t value, int peer, bool& ok) {
  constexpr int looks_per_clock = 256; // reading the clock takes longer than a look
  std::uint64_t seen = 0;
  ok = true;
  const std::uint64_t begin_ns = global_time_ns();
  for (;;) {
    // An acquiring load at each look: a fence behind the last one takes 0.6 us (H200).
    for (int look = 0; look < looks_per_clock; ++look) {
      seen = load_acquire(at);
      if (seen >= value)
        return seen;
    }
    // Once somebody has given up, nobody goes on waiting.
    if (global_time_ns() - begin_ns > job.timeout_ns ||
        load_relaxed(&job.report->state) != WaitReport::none)
      break;
  }
  ok = false;
  report_wait(job, peer, value, seen, at);
  return seen;
}

/// All PEs have come here, and what any of their threads of this scope did before is complete and
/// visible. Called by one scope of each PE at a time. Returns false if a PE did not come in time.
///
/// Each PE tells each other one its epoch by a store of its own word there: one hop, no master.
template <class Scope>
__device__ inline bool barrier_all(const DeviceJob& job) {
  // What other threads of the scope did is covered by the release of each signalling thread.
  Scope::sync();
  const std::uint64_t epoch = job.cells->epoch + 1;
  bool ok = true;
  for (int peer = Scope::rank(); peer < job.n_pes; peer += Scope::size()) {
    std::uint64_t* const mine = &job.cells->arrived[job.pe];
    store_release(reinterpret_cast<std::uint64_t*>(reinterpret_cast<std::uintptr_t>(mine) +
                                                   job.cells_delta_bytes[peer]),
                  epoch);
  }
  for (int peer = Scope::rank(); peer < job.n_pes; peer += Scope::size()) {
    bool in_time = true;
    wait_at_least(job, &job.cells->arrived[peer], epoch, peer, in_time);
    ok = ok && in_time;
  }
  Scope::sync();
  if (Scope::rank() == 0)
    job.cells->epoch = epoch;
  Scope::sync();
  return ok;
}

} // namespace shmemctl::device
