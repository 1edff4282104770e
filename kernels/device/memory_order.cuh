// Loads, stores and atomics with a memory order, at PTX scope .sys except where stated.
//
// Everything here is built on these guarantees of the PTX memory model: a release store comes after
// all that its thread has done or seen before, including what it has seen through a barrier of its
// block, and a thread whose acquire load reads that store sees all of that. Weak (plain) stores are
// unordered.
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

__device__ inline std::uint32_t load_relaxed(const std::uint32_t* at) {
  std::uint32_t value;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
  return value;
}

__device__ inline std::uint32_t load_acquire(const std::uint32_t* at) {
  std::uint32_t value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
  return value;
}

__device__ inline std::uint16_t load_acquire(const std::uint16_t* at) {
  std::uint16_t value;
  asm volatile("ld.acquire.sys.global.u16 %0, [%1];" : "=h"(value) : "l"(at) : "memory");
  return value;
}

__device__ inline void store_relaxed(std::uint32_t* at, std::uint32_t value) {
  asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}

__device__ inline void store_release(std::uint32_t* at, std::uint32_t value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}

/// Two 8-byte words, each single-copy atomic; unordered. `at` is aligned to 16 bytes.
struct WordPair {
  std::uint64_t first, second;
};
__device__ inline WordPair load_pair_relaxed(const std::uint64_t* at) {
  WordPair pair;
  asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(pair.first), "=l"(pair.second)
               : "l"(at)
               : "memory");
  return pair;
}
__device__ inline void store_pair_relaxed(std::uint64_t* at, WordPair pair) {
  asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(at), "l"(pair.first),
               "l"(pair.second)
               : "memory");
}

/// Sixteen bytes in one single-copy atomic access (.b128, PTX 8.3). `at` is aligned to 16 bytes.
__device__ inline void store_whole_relaxed(std::uint64_t* at, WordPair pair) {
  asm volatile("{\n\t.reg .b128 both;\n\t"
               "mov.b128 both, {%1, %2};\n\t"
               "st.relaxed.sys.global.b128 [%0], both;\n\t}" ::"l"(at),
               "l"(pair.first), "l"(pair.second)
               : "memory");
}

/// Compare-and-swap with acquire semantics, for FIFOs and queues. Returns the old value.
__device__ inline std::uint64_t compare_swap_acquire(std::uint64_t* at, std::uint64_t expected,
                                                     std::uint64_t desired) {
  std::uint64_t old;
  asm volatile("atom.acquire.sys.global.cas.b64 %0, [%1], %2, %3;"
               : "=l"(old)
               : "l"(at), "l"(expected), "l"(desired)
               : "memory");
  return old;
}

/// Relaxed read-modify-writes of 4 or 8 bytes.
template <class Word>
struct WordOf;
template <>
struct WordOf<std::uint32_t> {
  using Type = unsigned;
};
template <>
struct WordOf<std::uint64_t> {
  using Type = unsigned long long;
};
template <class Word>
__device__ inline Word atomic_word_add(Word* at, Word value) {
  using Type = typename WordOf<Word>::Type;
  return static_cast<Word>(atomicAdd_system(reinterpret_cast<Type*>(at), static_cast<Type>(value)));
}
/// Acquire-release at GPU scope.
__device__ inline std::uint64_t atomic_word_add_ordered(std::uint64_t* at, std::uint64_t value) {
  std::uint64_t old;
  asm volatile("atom.acq_rel.gpu.global.add.u64 %0, [%1], %2;"
               : "=l"(old)
               : "l"(at), "l"(value)
               : "memory");
  return old;
}
__device__ inline std::uint32_t atomic_word_add_ordered(std::uint32_t* at, std::uint32_t value) {
  std::uint32_t old;
  asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;"
               : "=r"(old)
               : "l"(at), "r"(value)
               : "memory");
  return old;
}
template <class Word>
__device__ inline Word atomic_word_swap(Word* at, Word value) {
  using Type = typename WordOf<Word>::Type;
  return static_cast<Word>(
      atomicExch_system(reinterpret_cast<Type*>(at), static_cast<Type>(value)));
}
template <class Word>
__device__ inline Word atomic_word_compare_swap(Word* at, Word expected, Word desired) {
  using Type = typename WordOf<Word>::Type;
  return static_cast<Word>(atomicCAS_system(
      reinterpret_cast<Type*>(at), static_cast<Type>(expected), static_cast<Type>(desired)));
}
template <class Word>
__device__ inline Word atomic_word_and(Word* at, Word value) {
  using Type = typename WordOf<Word>::Type;
  return static_cast<Word>(atomicAnd_system(reinterpret_cast<Type*>(at), static_cast<Type>(value)));
}
template <class Word>
__device__ inline Word atomic_word_or(Word* at, Word value) {
  using Type = typename WordOf<Word>::Type;
  return static_cast<Word>(atomicOr_system(reinterpret_cast<Type*>(at), static_cast<Type>(value)));
}
template <class Word>
__device__ inline Word atomic_word_xor(Word* at, Word value) {
  using Type = typename WordOf<Word>::Type;
  return static_cast<Word>(atomicXor_system(reinterpret_cast<Type*>(at), static_cast<Type>(value)));
}

/// Sixteen bytes that another GPU may have written: bypasses this SM's L1 cache, where a stale copy
/// may be.
__device__ inline int4 load_relaxed(const int4* at) {
  int4 value;
  asm volatile("ld.relaxed.sys.global.v4.s32 {%0, %1, %2, %3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "l"(at)
               : "memory");
  return value;
}

/// Acquire-release fence at system scope.
__device__ inline void fence_system() {
  asm volatile("fence.acq_rel.sys;" ::: "memory");
}

/// Releases of several words by one thread: one fence and then relaxed accesses, which is a release
/// pattern of PTX for each of the words. If each word had its own release, every release from the
/// second on would wait until the previous word has been acknowledged: 1.9 us over NVLink (H100).
/// Covers what the thread has done or seen before the first of the words, not what it does between
/// them.
class SharedRelease {
public:
  __device__ void add(std::uint64_t* at, std::uint64_t value) {
    fence();
    add_relaxed(at, value);
  }
  __device__ void store(std::uint64_t* at, std::uint64_t value) {
    fence();
    store_relaxed(at, value);
  }

private:
  __device__ void fence() {
    if (!fenced_)
      fence_system();
    fenced_ = true;
  }

  bool fenced_ = false;
};

/// A release store at GPU scope.
__device__ inline void store_release_device(std::uint64_t* at, std::uint64_t value) {
  asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}

/// %globaltimer: nanoseconds, the same clock on all SMs of the GPU.
__device__ inline std::uint64_t global_time_ns() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

} // namespace shmemctl::device
