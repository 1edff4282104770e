#include "tests/gpu/moe_watch.h"

#include <cuda_runtime.h>

#include "kernels/device/memory_order.cuh"
#include "src/model/moe/payload.h"
#include "src/model/moe/plan.h"

namespace shmemctl::test {

namespace {

__device__ std::uint64_t now_ns() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__device__ void note(moe::Mismatch* wrong, std::int64_t row, std::int32_t word,
                     std::uint32_t expected, std::uint32_t found) {
  atomicAdd(reinterpret_cast<unsigned long long*>(&wrong->rows), 1ull);
  wrong->row_and_word = static_cast<std::uint64_t>(row) << 32 | (static_cast<unsigned>(word) + 1);
  wrong->expected = expected;
  wrong->found = found;
}

/// Whether it released true in time.
template <class Ready>
__device__ bool wait_until(const WatchedCalls& calls, const Ready& ready) {
  const std::uint64_t begin = now_ns();
  while (!ready())
    if (now_ns() - begin > calls.timeout_ns) {
      note(calls.wrong, -1, -1, 0, 0);
      return false;
    }
  return true;
}

/// A word of a row, as the ordinary load of a consumer has it.
__device__ void look(const WatchedCalls& calls, int source, std::int32_t row, std::int32_t word) {
  const WatchedSource& from = calls.sources[source];
  const std::int64_t at = static_cast<std::int64_t>(row) * (calls.shape.hidden / 2) + word;
  const std::uint32_t found =
      device::load_relaxed(reinterpret_cast<const std::uint32_t*>(from.rows) + at);
  const std::uint32_t expected = moe::payload_word(
      moe::row_key(calls.seed, source, from.tokens[row]), static_cast<std::uint32_t>(word));
  if (found != expected)
    note(calls.wrong, row, word, expected, found);
}

__global__ void watch_dispatch(const __grid_constant__ WatchedCalls calls,
                               const moe::CallFlags* flags, std::uint64_t epoch) {
  const int source = static_cast<int>(blockIdx.x);
  const bool released =
      wait_until(calls, [&] { return device::load_acquire(&flags->finished[source]) >= epoch; });
  if (!released)
    return;
  const std::int32_t count = calls.sources[source].count;
  for (auto i = static_cast<std::int32_t>(threadIdx.x); i < count;
       i += static_cast<std::int32_t>(blockDim.x))
    look(calls, source, count - 1 - i, calls.shape.hidden / 2 - 1);
}

__global__ void watch_low_latency(const __grid_constant__ WatchedCalls calls,
                                  const moe::LowLatencyFlags* flags, std::uint64_t epoch) {
  const auto warp = static_cast<std::int32_t>((blockIdx.x * blockDim.x + threadIdx.x) / 32);
  const auto lane = static_cast<std::int32_t>(threadIdx.x % 32);
  const int source = warp % calls.shape.n_ranks;
  const std::int32_t row = warp / calls.shape.n_ranks;
  if (row >= calls.sources[source].count)
    return;
  // A block for each token: its number is the token's.
  const std::uint64_t* const word =
      &flags->block_counts[moe::buffer_of_epoch(epoch)][source][calls.sources[source].tokens[row]];
  if (!wait_until(calls, [&] { return moe::has_come(device::load_acquire(word), epoch); }))
    return;
  for (std::int32_t back = lane; back < calls.shape.hidden / 2; back += 32)
    look(calls, source, row, calls.shape.hidden / 2 - 1 - back);
}

__global__ void hold(const std::uint32_t* go, std::uint32_t* ended, std::uint64_t timeout_ns) {
  const std::uint64_t begin = now_ns();
  bool released = false;
  while (!released && now_ns() - begin < timeout_ns)
    released = device::load_relaxed(go) != 0;
  device::store_relaxed(ended, released ? 1u : 2u);
}

std::string error_text(cudaError_t error) {
  return error == cudaSuccess ? "" : cudaGetErrorString(error);
}

} // namespace

std::string launch_watch_dispatch(const WatchedCalls& calls, const moe::CallFlags* flags,
                                  std::uint64_t epoch, void* stream) {
  watch_dispatch<<<static_cast<unsigned>(calls.shape.n_ranks), 1024, 0,
                   static_cast<cudaStream_t>(stream)>>>(calls, flags, epoch);
  return error_text(cudaGetLastError());
}
std::string launch_watch_low_latency(const WatchedCalls& calls, const moe::LowLatencyFlags* flags,
                                     std::uint64_t epoch, void* stream) {
  constexpr int threads = 256;
  const int warps = calls.shape.n_ranks * calls.shape.max_tokens;
  watch_low_latency<<<static_cast<unsigned>((warps * 32 + threads - 1) / threads), threads, 0,
                      static_cast<cudaStream_t>(stream)>>>(calls, flags, epoch);
  return error_text(cudaGetLastError());
}

std::string launch_hold(const std::uint32_t* go, std::uint32_t* ended, std::uint64_t timeout_ns,
                        void* stream) {
  hold<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(go, ended, timeout_ns);
  return error_text(cudaGetLastError());
}

} // namespace shmemctl::test
