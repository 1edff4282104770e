// Common code of the litmus kernels: a block's places, what it sends and checks.
#pragma once

#include "tests/gpu/launch.cuh"
#include "tests/gpu/litmus.h"

namespace shmemctl::test {

namespace {

using device::Block;
using device::Thread;
using device::Warp;

/// The places of one block.
struct Agent {
  __device__ Agent(std::byte* memory, unsigned block)
      : out(memory + LitmusPlaces::out + block * LitmusPlaces::max_bytes),
        in(memory + LitmusPlaces::in + 2 * block * LitmusPlaces::max_bytes),
        signal(reinterpret_cast<std::uint64_t*>(memory + LitmusPlaces::signals +
                                                block * LitmusPlaces::signal_stride)),
        count(reinterpret_cast<LitmusCount*>(memory + LitmusPlaces::count)) {}
  __device__ std::byte* in_of(std::uint64_t round) const {
    return in + round % 2 * LitmusPlaces::max_bytes;
  }
  __device__ void found(unsigned long long wrong) const {
    if (wrong != 0)
      atomicAdd(&count->wrong, wrong);
  }
  __device__ void checked(unsigned long long messages) const {
    atomicAdd(&count->checked, messages);
  }
  __device__ void gave_up() const { atomicAdd(&count->gave_up, 1ull); }

  std::byte *out, *in;
  std::uint64_t* signal; ///< 16 bytes behind it belong to it
  LitmusCount* count;
};

/// What is at word or byte `i` of a message: another value in each round.
__device__ std::uint64_t word_of(std::uint64_t round, int pe, std::size_t i) {
  return round * 0x9e3779b97f4a7c15u + i * 2 + static_cast<std::uint64_t>(pe);
}
__device__ std::byte byte_of(std::uint64_t round, int pe, std::size_t i) {
  return static_cast<std::byte>(round * 31 + i * 7 + static_cast<std::uint64_t>(pe));
}

__device__ void stay(unsigned cycles) {
  const long long begin = clock64();
  while (clock64() - begin < cycles) {
  }
}
/// Threads of a block do not come at the same time: now and then the second of its warps is later
/// than a signal takes over a busy link.
template <class Scope>
__device__ void second_warp_stays(std::uint64_t round) {
  if (Scope::size() > 32 && Scope::rank() / 32 == 1 && round % 8 == 1)
    stay(60000);
}
/// Nor do blocks of a grid: the last block, which has nothing to send, is the last to arrive now
/// and then, when the others' stores may still be on their way.
__device__ void last_block_stays(std::uint64_t round) {
  if (blockIdx.x == gridDim.x - 1)
    stay(static_cast<unsigned>(round * 2654435761u >> 16 & 31u) * 800u);
}

template <class Scope>
__device__ void fill(std::byte* at, std::size_t size_bytes, std::uint64_t round, int pe) {
  const auto first = static_cast<std::size_t>(Scope::rank());
  if (size_bytes % 8 == 0)
    for (std::size_t i = first; i < size_bytes / 8; i += Scope::size())
      reinterpret_cast<std::uint64_t*>(at)[i] = word_of(round, pe, i);
  else
    for (std::size_t i = first; i < size_bytes; i += Scope::size())
      at[i] = byte_of(round, pe, i);
}
/// How many words or bytes are not those of the round. By plain loads, as a program's.
template <class Scope>
__device__ unsigned long long wrong_in(const std::byte* at, std::size_t size_bytes,
                                       std::uint64_t round, int pe) {
  unsigned long long wrong = 0;
  const auto first = static_cast<std::size_t>(Scope::rank());
  if (size_bytes % 8 == 0)
    for (std::size_t i = first; i < size_bytes / 8; i += Scope::size())
      wrong += reinterpret_cast<const std::uint64_t*>(at)[i] != word_of(round, pe, i);
  else
    for (std::size_t i = first; i < size_bytes; i += Scope::size())
      wrong += at[i] != byte_of(round, pe, i);
  return wrong;
}

} // namespace

} // namespace shmemctl::test
