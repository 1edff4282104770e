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

__device__ inline void store_relaxed(std::uint32_t* at, std::uint32_t value) {
  asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}

__device__ inline void store_release(std::uint32_t* at, std::uint32_t value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}

/// Two words of 8 bytes, each whole; the model gives them no order. `at` is aligned to 16 bytes.
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

/// Sixteen bytes in one access: whoever sees a part of them sees all (.b128, PTX 8.3). `at` is
/// aligned to 16 bytes.
__device__ inline void store_whole_relaxed(std::uint64_t* at, WordPair pair) {
#ifdef SHMEMCTL_MUTATE_ONE_ACCESS
  store_relaxed(at, pair.first);
  store_relaxed(at + 1, pair.second);
#else
  asm volatile("{\n\t.reg .b128 both;\n\t"
               "mov.b128 both, {%1, %2};\n\t"
               "st.relaxed.sys.global.b128 [%0], both;\n\t}" ::"l"(at),
               "l"(pair.first), "l"(pair.second)
               : "memory");
#endif
}

/// What rings take their turns by. Sixty-four bits.
__device__ inline std::uint64_t compare_swap_acquire(std::uint64_t* at, std::uint64_t expected,
                                                     std::uint64_t desired) {
  std::uint64_t old;
  asm volatile("atom.acquire.sys.global.cas.b64 %0, [%1], %2, %3;"
               : "=l"(old)
               : "l"(at), "l"(expected), "l"(desired)
               : "memory");
  return old;
}

/// Read-modify-writes of 4 or 8 bytes, without an order.
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
/// The same with an order among threads of this GPU: a release of what came before, an acquire of
/// what others released at this word before.
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

/// Sixteen bytes that another GPU may have written: never out of this multiprocessor's own cache,
/// where an older copy may lie.
__device__ inline int4 load_relaxed(const int4* at) {
#ifdef SHMEMCTL_MUTATE_GET_FRESH
  return *at;
#else
  int4 value;
  asm volatile("ld.relaxed.sys.global.v4.s32 {%0, %1, %2, %3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "l"(at)
               : "memory");
  return value;
#endif
}

/// Orders all before it ahead of all behind it, for every observer.
__device__ inline void fence_system() {
  asm volatile("fence.acq_rel.sys;" ::: "memory");
}

/// A release for threads of this GPU.
__device__ inline void store_release_device(std::uint64_t* at, std::uint64_t value) {
  asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}

/// Nanoseconds of a clock that all of a GPU's multiprocessors share.
__device__ inline std::uint64_t global_time_ns() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

} // namespace shmemctl::device
