// Loads, stores and atomics with an order, visible to all GPUs and the host (PTX scope .sys).
//
// What the memory model of PTX says of them, and what is built on it: a release orders all that its
// thread did or has seen before it (by a barrier of its block, too) ahead of the store; an acquire
// that reads that store sees it. Weak stores (plain ones) have no order among each other.
#pragma once

#include <cstdint>

namespace shmemctl::device {

__device__ inline std::uint64_t load_acquire(const std::uint64_t* at) {
  std::uint64_t value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
  return value;
}

__device__ inline std::uint64_t load_relaxed(const std::uint64_t* at) {
  std::uint64_t value;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
  return value;
}

__device__ inline void store_release(std::uint64_t* at, std::uint64_t value) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}

__device__ inline void store_relaxed(std::uint64_t* at, std::uint64_t value) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}

__device__ inline void add_release(std::uint64_t* at, std::uint64_t value) {
  asm volatile("red.release.sys.global.add.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}

__device__ inline void add_relaxed(std::uint64_t* at, std::uint64_t value) {
  asm volatile("red.relaxed.sys.global.add.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}

/// Sixteen bytes that another GPU may have written: never out of this multiprocessor's own cache,
/// where an older copy may lie.
__device__ inline int4 load_relaxed(const int4* at) {
  int4 value;
  asm volatile("ld.relaxed.sys.global.v4.s32 {%0, %1, %2, %3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "l"(at)
               : "memory");
  return value;
}

/// Orders all before it ahead of all behind it, for every observer.
__device__ inline void fence_system() {
  asm volatile("fence.acq_rel.sys;" ::: "memory");
}

/// Nanoseconds of a clock that all of a GPU's multiprocessors share.
__device__ inline std::uint64_t global_time_ns() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

} // namespace shmemctl::device
