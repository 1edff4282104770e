// The loads and stores of a send queue by GPU threads: for CUDA's compiler only. The words that
// producers share stand in the GPU's memory; entries, completions and records wherever the device
// and the GPU reach them. PTX by hand: <cuda/atomic> says the same, and takes three seconds more
// to compile.
//
// System scope (.sys): a completion is written by a device, and what is published by one thread is
// told to the device by another.
#pragma once

#include <cstdint>

namespace shmemctl::mlx5 {

struct GpuMemory {
  static __device__ std::uint64_t load(const std::uint64_t* word) {
    std::uint64_t value;
    asm volatile("ld.relaxed.sys.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    return value;
  }
  static __device__ std::uint64_t load_acquire(const std::uint64_t* word) {
#ifdef SHMEMCTL_MUTATE_NETWORK_ACQUIRE
    return load(word);
#endif
    std::uint64_t value;
    asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    return value;
  }
  static __device__ void store(std::uint64_t* word, std::uint64_t value) {
    asm volatile("st.relaxed.sys.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
  }
  static __device__ void store_release(std::uint64_t* word, std::uint64_t value) {
#ifdef SHMEMCTL_MUTATE_NETWORK_RELEASE
    return store(word, value);
#endif
    asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
  }
  static __device__ std::uint64_t fetch_add(std::uint64_t* word, std::uint64_t value) {
    std::uint64_t old;
    asm volatile("atom.relaxed.sys.add.u64 %0, [%1], %2;"
                 : "=l"(old)
                 : "l"(word), "l"(value)
                 : "memory");
    return old;
  }
  static __device__ std::uint64_t exchange_acquire(std::uint64_t* word, std::uint64_t value) {
    std::uint64_t old;
    asm volatile("atom.acquire.sys.exch.b64 %0, [%1], %2;"
                 : "=l"(old)
                 : "l"(word), "l"(value)
                 : "memory");
    return old;
  }
  static __device__ bool compare_exchange_acquire(std::uint64_t* word, std::uint64_t expected,
                                                  std::uint64_t desired) {
    std::uint64_t old;
    asm volatile("atom.acquire.sys.cas.b64 %0, [%1], %2, %3;"
                 : "=l"(old)
                 : "l"(word), "l"(expected), "l"(desired)
                 : "memory");
    return old == expected;
  }
  static __device__ void fetch_max_release(std::uint64_t* word, std::uint64_t value) {
    asm volatile("red.release.sys.max.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
  }
  static __device__ void store_plain(std::uint64_t* word, std::uint64_t value) { *word = value; }
  /// Behind everything before it, for devices too.
  static __device__ void store_record(std::uint32_t* record, std::uint32_t value) {
#ifdef SHMEMCTL_MUTATE_NETWORK_DOORBELL
    asm volatile("st.relaxed.sys.u32 [%0], %1;" ::"l"(record), "r"(value) : "memory");
    return;
#endif
    asm volatile("st.release.sys.u32 [%0], %1;" ::"l"(record), "r"(value) : "memory");
  }
  /// GPUs do not gather stores to a register's page: nothing has to be pushed.
  static __device__ void store_doorbell(std::uint64_t* doorbell, std::uint64_t value,
                                        std::uint32_t) {
#ifdef SHMEMCTL_MUTATE_NETWORK_DOORBELL
    return store(doorbell, value);
#endif
    asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(doorbell), "l"(value) : "memory");
  }
};

} // namespace shmemctl::mlx5
