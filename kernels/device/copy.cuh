// Copies by loads and stores, as wide as the addresses allow, several in flight per thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/device/memory_order.cuh"
#include "kernels/device/scope.cuh"

namespace shmemctl::device {

namespace detail {

/// Loads in flight per thread in the bulk of a copy: what hides the latency of NVLink (a get needs
/// more than a put, but no less does harm).
inline constexpr int copy_unroll = 8;

/// How a copy reads its source.
struct Local {
  template <class Word>
  static __device__ Word load(const Word* at) {
    return *at;
  }
};
/// Another GPU's memory. A plain load may be answered by a line that an earlier one has left in
/// this multiprocessor's cache.
struct Remote {
  static __device__ int4 load(const int4* at) { return load_relaxed(at); }
  template <class Word>
  static __device__ Word load(const Word* at) {
    return *const_cast<const volatile Word*>(at);
  }
};

/// `count` words by all threads of the scope.
template <class Scope, class Source, class Word>
__device__ inline void copy_words(Word* to, const Word* from, std::size_t count) {
  const auto step = static_cast<std::size_t>(Scope::size());
  auto at = static_cast<std::size_t>(Scope::rank());
  for (; at + (copy_unroll - 1) * step < count; at += copy_unroll * step) {
    Word words[copy_unroll];
#pragma unroll
    for (int i = 0; i < copy_unroll; ++i)
      words[i] = Source::load(from + at + i * step);
#pragma unroll
    for (int i = 0; i < copy_unroll; ++i)
      to[at + i * step] = words[i];
  }
  for (; at < count; at += step)
    to[at] = Source::load(from + at);
}

/// The widest word that fits both addresses, bytes before and behind.
template <class Scope, class Source, class Word>
__device__ inline void copy_as(std::byte* to, const std::byte* from, std::size_t size_bytes) {
  const std::size_t beyond = reinterpret_cast<std::uintptr_t>(to) % sizeof(Word);
  std::size_t head = beyond == 0 ? 0 : sizeof(Word) - beyond;
  head = head < size_bytes ? head : size_bytes;
  const std::size_t count = (size_bytes - head) / sizeof(Word);
  const std::size_t done = head + count * sizeof(Word);
  copy_words<Scope, Source>(to, from, head);
  copy_words<Scope, Source>(reinterpret_cast<Word*>(to + head),
                            reinterpret_cast<const Word*>(from + head), count);
  copy_words<Scope, Source>(to + done, from + done, size_bytes - done);
}

} // namespace detail

using detail::Local;
using detail::Remote;

/// Copies by all threads of the scope; no thread waits for another one. Each thread's part is
/// loaded when the call returns; stores have no order. Not inlined: it is long, and in every put
/// and get.
template <class Scope, class Source>
inline __device__ __noinline__ void copy(void* to, const void* from, std::size_t size_bytes) {
  auto* target = static_cast<std::byte*>(to);
  const auto* source = static_cast<const std::byte*>(from);
  const std::uintptr_t differ =
      reinterpret_cast<std::uintptr_t>(target) ^ reinterpret_cast<std::uintptr_t>(source);
  if (differ % 16 == 0)
    detail::copy_as<Scope, Source, int4>(target, source, size_bytes);
  else if (differ % 8 == 0)
    detail::copy_as<Scope, Source, std::uint64_t>(target, source, size_bytes);
  else if (differ % 4 == 0)
    detail::copy_as<Scope, Source, std::uint32_t>(target, source, size_bytes);
  else
    detail::copy_as<Scope, Source, std::byte>(target, source, size_bytes);
}

} // namespace shmemctl::device
