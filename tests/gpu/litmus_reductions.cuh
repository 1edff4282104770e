// Reductions of numbers that are others in each round.
#pragma once

#include "tests/gpu/litmus_agent.cuh"

namespace shmemctl::test {

namespace {

/// How many of the sums of what both PEs had from number `first` on are not the round's: a number
/// of a round before is wrong. Not by the thread that has stored them.
template <class Scope>
__device__ unsigned long long wrong_sums_in(const std::byte* at, std::size_t size_bytes,
                                            std::uint64_t round, std::size_t first) {
  const auto* const sums = reinterpret_cast<const std::uint64_t*>(at);
  unsigned long long wrong = 0;
  const int other = (Scope::rank() + Scope::size() / 2) % Scope::size();
  for (auto i = static_cast<std::size_t>(other); i < size_bytes / 8; i += Scope::size())
    wrong += sums[i] != word_of(round, 0, first + i) + word_of(round, 1, first + i);
  return wrong;
}

/// What one PE brings, and where its result comes to lie.
struct Reduction {
  bool scatter;
  std::uint64_t *source, *dest;
  std::size_t count;        ///< elements of the result
  std::size_t source_bytes; ///< size of the source
  std::size_t first;        ///< the numbers that the result is made of

  __device__ Reduction(std::uint64_t round, int pe, std::byte* out, std::byte* in,
                       std::size_t size_bytes)
      : scatter(round % 2 == 1), source(reinterpret_cast<std::uint64_t*>(out)),
        dest(reinterpret_cast<std::uint64_t*>(!scatter && round % 4 == 2 ? out : in)),
        count(size_bytes / 8), source_bytes(scatter ? 2 * size_bytes : size_bytes),
        first(scatter ? static_cast<std::size_t>(pe) * count : 0) {}
};

/// Plain stores of all threads into the source, and no order but the collective's own; the source
/// is written again on return.
template <class Scope>
__global__ void __launch_bounds__(256)
    reductions(const __grid_constant__ DeviceJob job, std::byte* base, Litmus litmus) {
  if (is_outside<Scope>())
    return;
  const Agent agent(base, blockIdx.x);
  const auto team = static_cast<int>(blockIdx.x);
  for (std::uint64_t round = 1; round <= litmus.rounds; ++round) {
    const Reduction now(round, job.pe, agent.out, agent.in, litmus.size_bytes);
    second_warp_stays<Scope>(round); // the second warp fills its part later than the others
    fill<Scope>(agent.out, now.source_bytes, round, job.pe);
    const bool ok = now.scatter ? device::reducescatter<Scope>(job, team, now.dest, now.source,
                                                               now.count, device::ReduceOp::sum)
                                : device::reduce<Scope>(job, team, now.dest, now.source, now.count,
                                                        device::ReduceOp::sum);
    if (!ok) {
      if (Scope::rank() == 0)
        agent.gave_up();
      return;
    }
    agent.found(wrong_sums_in<Scope>(reinterpret_cast<const std::byte*>(now.dest),
                                     litmus.size_bytes, round, now.first));
    if (now.dest == now.source)
      Scope::sync(); // all threads have checked it before it is the source again
  }
  if (Scope::rank() == 0)
    agent.checked(litmus.rounds);
}

#ifdef SHMEMCTL_DEVICE_WITHOUT_NETWORK

/// One message of litmus.size_bytes for each block's part.
__global__ void __launch_bounds__(256)
    reductions_of_grid(const __grid_constant__ DeviceJob job, std::byte* base, Litmus litmus) {
  const Agent agent(base, 0);
  const std::size_t all_bytes = litmus.size_bytes * gridDim.x;
  const std::size_t mine = blockIdx.x * litmus.size_bytes;
  bool ok = true;
  for (std::uint64_t round = 1; ok && round <= litmus.rounds; ++round) {
    const Reduction now(round, job.pe, base + LitmusPlaces::out, base + LitmusPlaces::in,
                        all_bytes);
    auto* const source = reinterpret_cast<std::byte*>(now.source);
    for (std::size_t i = threadIdx.x; i < litmus.size_bytes / 8; i += blockDim.x)
      for (std::size_t half = 0; half * all_bytes < now.source_bytes; ++half) {
        const std::size_t at = (half * all_bytes + mine) / 8 + i;
        reinterpret_cast<std::uint64_t*>(source)[at] = word_of(round, job.pe, at);
      }
    ok = device::grid_sync(job, 1);
    last_block_stays(round);
    ok = ok &&
         (now.scatter ? device::reducescatter_grid(job, 0, now.dest, now.source, now.count,
                                                   device::ReduceOp::sum)
                      : device::reduce_grid(job, 0, now.dest, now.source, now.count,
                                            device::ReduceOp::sum)) &&
         device::grid_sync(job, 1);
    const unsigned other = (blockIdx.x + 1 + static_cast<unsigned>(round) % 5) % gridDim.x;
    if (ok)
      agent.found(wrong_sums_in<Block>(
          reinterpret_cast<const std::byte*>(now.dest) + other * litmus.size_bytes,
          litmus.size_bytes, round, now.first + other * litmus.size_bytes / 8));
    ok = ok && device::grid_sync(job, 1); // all have looked
  }
  if (threadIdx.x == 0) {
    if (ok)
      agent.checked(litmus.rounds);
    else
      agent.gave_up();
  }
}

#endif

} // namespace

} // namespace shmemctl::test
