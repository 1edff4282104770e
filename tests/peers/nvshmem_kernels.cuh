// What nvshmem_gpu.cu measures, inside of kernels.
#pragma once

#include <cstdint>

#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

namespace {

constexpr int threads = 1024;      ///< of a block's bandwidths
constexpr int block_threads = 128; ///< of a block's latencies, as in bench
constexpr int collective_threads = 512;
constexpr std::size_t largest = std::size_t{64} << 20;
/// Bytes of memory over which the messages of one measurement are spread: a get that is repeated
/// from the same place would be answered by the L1 cache.
constexpr std::size_t walk = std::size_t{16} << 20;

__device__ std::uint64_t now_ns() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__global__ void __launch_bounds__(threads)
    move(char* target, const char* source, std::size_t size, int peer, int times, bool gets) {
  // Whole lines: where a piece is not aligned, its copy goes byte by byte.
  const std::size_t whole = (size + gridDim.x - 1) / gridDim.x, each = (whole + 127) / 128 * 128;
  const std::size_t begin = each * blockIdx.x < size ? each * blockIdx.x : size;
  const std::size_t mine = size - begin < each ? size - begin : each;
  const std::size_t places = size < walk ? walk / size : 1;
  for (int i = 0; i < times && mine > 0; ++i) {
    const std::size_t there = i % places * size + begin;
    if (gets)
      nvshmemx_getmem_nbi_block(target + there, source + there, mine, peer);
    else
      nvshmemx_putmem_nbi_block(target + there, source + begin, mine, peer);
  }
  __syncthreads();
  if (threadIdx.x == 0)
    nvshmem_quiet();
}

enum class Call : int {
  put,
  get,
  p,
  g,
  fetch_add,
  add,
  signal,
  put_signal,
  barrier,
  fcollect,
  alltoall
};
/// As bench's scopes.
enum class Scope : int { thread, warp, block };

struct Calls {
  Call call;
  Scope scope;
  char *target, *source;
  std::uint64_t* flag;
  std::size_t size;
  int peer;
  bool asks;           ///< of a ping-pong: it begins
  bool takes_part;     ///< or looks on: calls of one pair
  std::uint64_t first; ///< number in a flag
  int times;
  std::uint64_t* ns;
};

template <Scope scope>
__device__ void sync_scope() {
  if (scope == Scope::block)
    __syncthreads();
  else if (scope == Scope::warp)
    __syncwarp();
}

/// Each complete before the next.
template <Scope scope>
__device__ void transfer(const Calls& a, int number) {
  if (a.call == Call::p) {
    nvshmem_uint64_p(reinterpret_cast<std::uint64_t*>(a.target), a.first, a.peer);
  } else if (a.call == Call::g) {
    *reinterpret_cast<std::uint64_t*>(a.target) =
        nvshmem_uint64_g(reinterpret_cast<const std::uint64_t*>(a.source) + number * 16, a.peer);
    return;
  } else if (a.call == Call::fetch_add) {
    *reinterpret_cast<std::uint64_t*>(a.target) =
        nvshmem_uint64_atomic_fetch_add(a.flag + 1, 1, a.peer);
    return;
  } else if (a.call == Call::add) {
    nvshmem_uint64_atomic_add(a.flag + 1, 1, a.peer);
  } else if (a.call == Call::put) {
    if (scope == Scope::thread)
      nvshmem_putmem_nbi(a.target, a.source, a.size, a.peer);
    else if (scope == Scope::warp)
      nvshmemx_putmem_nbi_warp(a.target, a.source, a.size, a.peer);
    else
      nvshmemx_putmem_nbi_block(a.target, a.source, a.size, a.peer);
  } else {
    if (scope == Scope::thread)
      nvshmem_getmem_nbi(a.target, a.source, a.size, a.peer);
    else if (scope == Scope::warp)
      nvshmemx_getmem_nbi_warp(a.target, a.source, a.size, a.peer);
    else
      nvshmemx_getmem_nbi_block(a.target, a.source, a.size, a.peer);
  }
  sync_scope<scope>();
  if (threadIdx.x == 0)
    nvshmem_quiet();
  sync_scope<scope>();
}

template <Scope scope>
__device__ void answer(const Calls& a, std::uint64_t number) {
  const auto wait = [&] {
    if (threadIdx.x == 0)
      nvshmem_signal_wait_until(a.flag, NVSHMEM_CMP_EQ, number);
    sync_scope<scope>();
  };
  if (!a.asks)
    wait();
  if (a.call == Call::signal)
    nvshmemx_signal_op(a.flag, number, NVSHMEM_SIGNAL_SET, a.peer);
  else if (scope == Scope::thread)
    nvshmem_putmem_signal_nbi(a.target, a.source, a.size, a.flag, number, NVSHMEM_SIGNAL_SET,
                              a.peer);
  else if (scope == Scope::warp)
    nvshmemx_putmem_signal_nbi_warp(a.target, a.source, a.size, a.flag, number, NVSHMEM_SIGNAL_SET,
                                    a.peer);
  else
    nvshmemx_putmem_signal_nbi_block(a.target, a.source, a.size, a.flag, number, NVSHMEM_SIGNAL_SET,
                                     a.peer);
  if (a.asks)
    wait();
}

template <Scope scope>
__device__ void meet(const Calls& a) {
  if (a.call == Call::fcollect)
    nvshmemx_float_fcollect_block(NVSHMEM_TEAM_WORLD, reinterpret_cast<float*>(a.target),
                                  reinterpret_cast<const float*>(a.source), a.size / sizeof(float));
  else if (a.call == Call::alltoall)
    nvshmemx_float_alltoall_block(NVSHMEM_TEAM_WORLD, reinterpret_cast<float*>(a.target),
                                  reinterpret_cast<const float*>(a.source), a.size / sizeof(float));
  else if (scope == Scope::thread)
    nvshmem_barrier_all();
  else if (scope == Scope::warp)
    nvshmemx_barrier_all_warp();
  else
    nvshmemx_barrier_all_block();
}

/// `times` calls, whose time goes to *ns.
template <Scope scope>
__global__ void __launch_bounds__(collective_threads) calls(Calls a) {
  if (threadIdx.x == 0)
    nvshmem_barrier_all();
  sync_scope<scope>();
  const std::uint64_t begin = now_ns();
  for (int i = 0; i < a.times && a.takes_part; ++i)
    if (a.call >= Call::barrier)
      meet<scope>(a);
    else if (a.call >= Call::signal)
      answer<scope>(a, a.first + i);
    else if (a.asks)
      transfer<scope>(a, i);
  sync_scope<scope>();
  if (threadIdx.x == 0)
    *a.ns = now_ns() - begin;
}

} // namespace
