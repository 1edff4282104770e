#include "tests/gpu/device_kernels.h"

#include "tests/gpu/launch.cuh"

namespace shmemctl::test {

namespace {

using device::Block;
using device::Thread;
using device::Warp;

/// The piece of this block, in whole 16 bytes but for the last one.
struct Piece {
  std::size_t begin, size;
};
__device__ Piece piece_of_block(std::size_t size_bytes) {
  const std::size_t each = ((size_bytes + gridDim.x - 1) / gridDim.x + 15) / 16 * 16;
  const std::size_t begin = each * blockIdx.x < size_bytes ? each * blockIdx.x : size_bytes;
  return {begin, size_bytes - begin < each ? size_bytes - begin : each};
}

template <class Scope, bool is_put>
__global__ void __launch_bounds__(1024)
    transfer(const __grid_constant__ DeviceJob job, std::size_t to_offset, std::size_t from_offset,
             std::size_t size_bytes, int pe, int times) {
  if (Scope::size() == 1 && threadIdx.x > 0)
    return;
  if (Scope::size() == 32 && threadIdx.x >= 32)
    return;
  const Piece piece = piece_of_block(size_bytes);
  std::byte* const to = job.heap + to_offset + piece.begin;
  std::byte* const from = job.heap + from_offset + piece.begin;
  for (int i = 0; i < times; ++i) {
    if (is_put)
      device::put<Scope>(job, to, from, piece.size, pe);
    else
      device::get<Scope>(job, to, from, piece.size, pe);
  }
  device::quiet();
}

template <class Scope>
__global__ void __launch_bounds__(1024)
    ping_pong(const __grid_constant__ DeviceJob job, std::size_t data_offset,
              std::size_t signal_offset, std::size_t size_bytes, std::uint64_t first_round,
              std::uint64_t rounds, std::uint64_t* wrong, Order order) {
  if (is_outside<Scope>())
    return;
  const int peer = 1 - job.pe;
  // What is sent, and what has come, in turn with the peer.
  auto* const out = reinterpret_cast<std::uint64_t*>(job.heap + data_offset);
  auto* const in = reinterpret_cast<std::uint64_t*>(job.heap + data_offset + size_bytes);
  auto* const signal = reinterpret_cast<std::uint64_t*>(job.heap + signal_offset);
  const std::size_t words = size_bytes / 8;
  for (std::uint64_t i = 1; i <= rounds; ++i) {
    const std::uint64_t round = first_round + i;
    for (int turn = 0; turn < 2; ++turn) {
      if (turn == job.pe) {
        for (auto w = static_cast<std::size_t>(Scope::rank()); w < words; w += Scope::size())
          out[w] = round + w;
        Scope::sync();
        if (words == 0) {
          if (Scope::rank() == 0)
            device::signal_set(job, signal, round, peer);
        } else if (order == Order::put_signal) {
          device::put_signal<Scope>(job, in, out, size_bytes, signal, round, peer);
        } else {
          device::put_nbi<Scope>(job, in, out, size_bytes, peer);
          if (order == Order::fence)
            device::fence<Scope>(job);
          else
            device::quiet<Scope>(job);
          // Not the first thread: what it waited for has to cover the others' stores.
          if (Scope::rank() == Scope::size() - 1)
            device::signal_set(job, signal, round, peer);
          Scope::sync(); // `out` may be written again
        }
      } else {
        if (!device::signal_wait_until<Scope>(job, signal, device::Compare::greater_equal, round,
                                              peer))
          return;
        for (auto w = static_cast<std::size_t>(Scope::rank()); w < words; w += Scope::size())
          if (in[w] != round + w)
            atomicAdd(reinterpret_cast<unsigned long long*>(wrong), 1ull);
      }
    }
  }
}

template <class Scope>
__global__ void __launch_bounds__(1024)
    barriers(const __grid_constant__ DeviceJob job, std::size_t offset, std::uint64_t rounds,
             std::uint64_t* wrong) {
  if (is_outside<Scope>())
    return;
  auto* const words = reinterpret_cast<std::uint64_t*>(job.heap + offset);
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    for (int pe = Scope::rank(); pe < job.n_pes; pe += Scope::size())
      device::put_value(job, words + job.pe, round, pe);
    if (!device::barrier_all<Scope>(job))
      return;
    for (int pe = Scope::rank(); pe < job.n_pes; pe += Scope::size())
      if (device::get_value(job, words + pe, job.pe) != round)
        atomicAdd(reinterpret_cast<unsigned long long*>(wrong), 1ull);
    // no PE overwrites data that another one is still checking
    if (!device::barrier_all<Scope>(job))
      return;
  }
}

template <class Scope>
__global__ void __launch_bounds__(1024)
    bare_barriers(const __grid_constant__ DeviceJob job, std::uint64_t rounds) {
  if (is_outside<Scope>())
    return;
  for (std::uint64_t round = 0; round < rounds; ++round)
    if (!device::barrier_all<Scope>(job))
      return;
}

__global__ void put_latency(const __grid_constant__ DeviceJob job, std::size_t offset, int pe,
                            std::uint64_t times) {
  auto* const word = reinterpret_cast<std::uint64_t*>(job.heap + offset);
  for (std::uint64_t i = 0; i < times; ++i) {
    device::put<Warp>(job, word, word + 1, 8, pe);
    device::quiet();
  }
}

} // namespace

void launch_put(const DeviceJob& job, Who who, Shape shape, std::size_t to_offset,
                std::size_t from_offset, std::size_t size_bytes, int pe, int times) {
  for_scope(who, [&](auto scope) {
    transfer<decltype(scope), true>
        <<<shape.blocks, shape.threads>>>(job, to_offset, from_offset, size_bytes, pe, times);
  });
}

void launch_get(const DeviceJob& job, Who who, Shape shape, std::size_t to_offset,
                std::size_t from_offset, std::size_t size_bytes, int pe, int times) {
  for_scope(who, [&](auto scope) {
    transfer<decltype(scope), false>
        <<<shape.blocks, shape.threads>>>(job, to_offset, from_offset, size_bytes, pe, times);
  });
}

void launch_ping_pong(const DeviceJob& job, Who who, int threads, std::size_t data_offset,
                      std::size_t signal_offset, std::size_t size_bytes, std::uint64_t first_round,
                      std::uint64_t rounds, std::uint64_t* wrong, Order order) {
  for_scope(who, [&](auto scope) {
    ping_pong<decltype(scope)><<<1, threads>>>(job, data_offset, signal_offset, size_bytes,
                                               first_round, rounds, wrong, order);
  });
}

void launch_barriers(const DeviceJob& job, Who who, int threads, std::size_t offset,
                     std::uint64_t rounds, std::uint64_t* wrong) {
  for_scope(who, [&](auto scope) {
    barriers<decltype(scope)><<<1, threads>>>(job, offset, rounds, wrong);
  });
}

void launch_bare_barriers(const DeviceJob& job, Who who, int threads, std::uint64_t rounds) {
  for_scope(who, [&](auto scope) { bare_barriers<decltype(scope)><<<1, threads>>>(job, rounds); });
}

void launch_put_latency(const DeviceJob& job, std::size_t offset, int pe, std::uint64_t times) {
  put_latency<<<1, 32>>>(job, offset, pe, times);
}

} // namespace shmemctl::test
