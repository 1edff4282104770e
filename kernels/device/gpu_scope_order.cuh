// Loads, stores and atomics ordered among threads of this GPU (PTX scope .gpu): for words that
// neither another GPU nor the host accesses. A release does not wait for stores over PCIe or
// NVLink, as one of scope .sys (memory_order.cuh) does: 600 instead of 2800 cycles on an H200.
#pragma once

#include <cstdint>

#include "kernels/device/memory_order.cuh"

namespace shmemctl::device {

__device__ inline std::uint64_t load_relaxed_device(const std::uint64_t* at) {
  std::uint64_t value;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
  return value;
}
__device__ inline std::uint64_t load_acquire_device(const std::uint64_t* at) {
  std::uint64_t value;
  asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
  return value;
}
__device__ inline void store_relaxed_device(std::uint64_t* at, std::uint64_t value) {
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}
__device__ inline std::uint64_t fetch_add_relaxed_device(std::uint64_t* at, std::uint64_t value) {
  std::uint64_t old;
  asm volatile("atom.relaxed.gpu.global.add.u64 %0, [%1], %2;"
               : "=l"(old)
               : "l"(at), "l"(value)
               : "memory");
  return old;
}
__device__ inline void add_relaxed_device(std::uint64_t* at, std::uint64_t value) {
  asm volatile("red.relaxed.gpu.global.add.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}
__device__ inline std::uint64_t swap_acquire_device(std::uint64_t* at, std::uint64_t value) {
  std::uint64_t old;
  asm volatile("atom.acquire.gpu.global.exch.b64 %0, [%1], %2;"
               : "=l"(old)
               : "l"(at), "l"(value)
               : "memory");
  return old;
}
__device__ inline std::uint64_t
compare_swap_acquire_device(std::uint64_t* at, std::uint64_t expected, std::uint64_t desired) {
  std::uint64_t old;
  asm volatile("atom.acquire.gpu.global.cas.b64 %0, [%1], %2, %3;"
               : "=l"(old)
               : "l"(at), "l"(expected), "l"(desired)
               : "memory");
  return old;
}
__device__ inline void max_release_device(std::uint64_t* at, std::uint64_t value) {
  asm volatile("red.release.gpu.global.max.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}
__device__ inline void fence_device() {
  asm volatile("fence.acq_rel.gpu;" ::: "memory");
}

} // namespace shmemctl::device
