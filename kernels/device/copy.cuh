// Copies by loads and stores, as wide as the alignment allows, several in flight per thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/device/memory_order.cuh"
#include "kernels/device/scope.cuh"

namespace shmemctl::device {

namespace detail {

/// Loads in flight per thread in the bulk of a copy: hides the latency of NVLink. More of them slow
/// down gets of many blocks, and small copies of many threads (H200).
inline constexpr int copy_unroll = 4;

/// How a copy reads its source.
struct Local {
  template <class Word>
  static __device__ Word load(const Word* at) {
    return *at;
  }
};
/// Another GPU's memory. A plain load may hit a stale line in this SM's L1 cache.
struct Remote {
  static __device__ int4 load(const int4* at) { return load_relaxed(at); }
  template <class Word>
  static __device__ Word load(const Word* at) {
    return *const_cast<const volatile Word*>(at);
  }
};

/// Copies the next `many` words of a thread.
template <int many, class Source, class Word>
__device__ inline void copy_some(Word* to, const Word* from, std::size_t step) {
  Word words[many];
#pragma unroll
  for (int i = 0; i < many; ++i)
    words[i] = Source::load(from + i * step);
#pragma unroll
  for (int i = 0; i < many; ++i)
    to[i * step] = words[i];
}

/// Copies `count` words by all threads of the scope.
template <class Scope, class Source, class Word>
__device__ inline void copy_words(Word* to, const Word* from, std::size_t count) {
  const auto step = static_cast<std::size_t>(Scope::size());
  auto at = static_cast<std::size_t>(Scope::rank());
  for (; at + (copy_unroll - 1) * step < count; at += copy_unroll * step)
    copy_some<copy_unroll, Source>(to + at, from + at, step);
  if (at + step < count) {
    copy_some<2, Source>(to + at, from + at, step);
    at += 2 * step;
  }
  if (at < count)
    copy_some<1, Source>(to + at, from + at, step);
}
/// Copies single bytes: those before the first or after the last wide word of a copy.
template <class Scope, class Source>
__device__ inline void copy_bytes(std::byte* to, const std::byte* from, std::size_t count) {
#pragma unroll 1
  for (auto at = static_cast<std::size_t>(Scope::rank()); at < count;
       at += static_cast<std::size_t>(Scope::size()))
    to[at] = Source::load(from + at);
}

/// Copies whole words, and single bytes before and after them. Both addresses are at the same
/// offset from a word boundary.
template <class Scope, class Source, class Word>
__device__ inline void copy_as(std::byte* to, const std::byte* from, std::size_t size_bytes) {
  const std::size_t beyond = reinterpret_cast<std::uintptr_t>(to) % sizeof(Word);
  std::size_t head = beyond == 0 ? 0 : sizeof(Word) - beyond;
  head = head < size_bytes ? head : size_bytes;
  const std::size_t count = (size_bytes - head) / sizeof(Word);
  const std::size_t done = head + count * sizeof(Word);
  if (head > 0)
    copy_bytes<Scope, Source>(to, from, head);
  copy_words<Scope, Source>(reinterpret_cast<Word*>(to + head),
                            reinterpret_cast<const Word*>(from + head), count);
  if (done < size_bytes)
    copy_bytes<Scope, Source>(to + done, from + done, size_bytes - done);
}

/// Copies by the widest word whose boundaries are at the same offsets in both addresses. Not
/// inlined: it is long, and part of every put and get. Not `inline` either, so that it can be in a
/// library (device_library.cuh).
template <class Scope, class Source>
__device__ __noinline__ void copy_any(void* to, const void* from, std::size_t size_bytes) {
  auto* target = static_cast<std::byte*>(to);
  const auto* source = static_cast<const std::byte*>(from);
  const std::uintptr_t differ =
      reinterpret_cast<std::uintptr_t>(target) ^ reinterpret_cast<std::uintptr_t>(source);
  if (differ % 16 == 0)
    copy_as<Scope, Source, int4>(target, source, size_bytes);
  else if (differ % 8 == 0)
    copy_as<Scope, Source, std::uint64_t>(target, source, size_bytes);
  else if (differ % 4 == 0)
    copy_as<Scope, Source, std::uint32_t>(target, source, size_bytes);
  else
    copy_as<Scope, Source, std::byte>(target, source, size_bytes);
}

/// Copies `count` words of 16 bytes by all threads of the scope, as copy_any() does, but between
/// addresses that are aligned to them. Few registers, so that it saves none of the caller's: what
/// copy_any() saves, and its choice of a word, take 0.7 us in a block of 1024 threads (H200). Not
/// inlined: the calling kernel would need more registers, and each thread of such a block has 64 at
/// most.
template <class Scope, class Source>
__device__ __noinline__ void copy_wide(int4* to, const int4* from, unsigned count) {
  const auto step = static_cast<unsigned>(Scope::size());
#pragma unroll 1
  for (auto at = static_cast<unsigned>(Scope::rank()); at < count; at += copy_unroll * step) {
    int4 words[copy_unroll];
#pragma unroll
    for (unsigned i = 0; i < copy_unroll; ++i)
      if (at + i * step < count)
        words[i] = Source::load(from + (at + i * step));
#pragma unroll
    for (unsigned i = 0; i < copy_unroll; ++i)
      if (at + i * step < count)
        to[at + i * step] = words[i];
  }
}
/// Whether copy_wide() can do it, whose indices have 32 bits.
__device__ inline bool is_wide(const void* to, const void* from, std::size_t size_bytes) {
  return (reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from) |
          size_bytes) %
                 sizeof(int4) ==
             0 &&
         size_bytes / sizeof(int4) <= INT32_MAX;
}

/// Whether the calling warp has nothing to copy, and need not call a copy function. Most threads of
/// a block have no part of a small message, and the instructions that they would issue in
/// copy_any() bound the message rate: 64 KiB by 32 blocks of 1024 threads is 2 KiB per block, the
/// work of four warps out of 32. The same for all threads of a warp, so that it is not split at the
/// sync after the copy. (The first threads copy the unaligned head and tail.)
template <class Scope>
__device__ inline bool has_no_part(const void* to, const void* from, std::size_t size_bytes) {
  constexpr std::uintptr_t wide = sizeof(int4);
  const std::size_t first = static_cast<std::size_t>(Scope::rank()) / 32 * 32;
  return first >= 32 && first >= size_bytes / wide &&
         (reinterpret_cast<std::uintptr_t>(to) ^ reinterpret_cast<std::uintptr_t>(from)) % wide ==
             0;
}

} // namespace detail

using detail::Local;
using detail::Remote;

/// Copies by all threads of the scope, without a sync. On return each thread has loaded its part;
/// the stores are unordered.
template <class Scope, class Source>
__device__ inline void copy(void* to, const void* from, std::size_t size_bytes) {
  // A single word, where latency matters, is copied without a call; most callers know the size at
  // compile time.
  if (size_bytes == 8 &&
      (reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from)) % 8 == 0) {
    if (Scope::rank() == 0)
      *static_cast<std::uint64_t*>(to) = Source::load(static_cast<const std::uint64_t*>(from));
    Scope::converge();
    return;
  }
  if (detail::has_no_part<Scope>(to, from, size_bytes))
    return;
  if (detail::is_wide(to, from, size_bytes))
    detail::copy_wide<Scope, Source>(static_cast<int4*>(to), static_cast<const int4*>(from),
                                     static_cast<unsigned>(size_bytes / sizeof(int4)));
  else
    detail::copy_any<Scope, Source>(to, from, size_bytes);
}

} // namespace shmemctl::device
