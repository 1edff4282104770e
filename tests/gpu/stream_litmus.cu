#include "tests/gpu/stream_litmus.h"

namespace shmemctl::test {

namespace {

constexpr int threads = 1024;
constexpr std::uint64_t each_byte = 0x0101010101010101;

__device__ std::uint64_t now_ns() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}
__device__ std::uint64_t acquire(const std::uint64_t* word) {
  std::uint64_t value;
  asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
  return value;
}
/// Not from the first cache: what a copy engine wrote is not in it.
__device__ std::uint64_t load(const std::uint64_t* word) {
  std::uint64_t value;
  asm volatile("ld.relaxed.sys.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
  return value;
}
__device__ void release(std::uint64_t* word, std::uint64_t value) {
  asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}

__global__ void __launch_bounds__(threads) watch_stream(StreamWatch watch, StreamFindings* found) {
  __shared__ bool came;
  for (std::uint64_t round = 1; round <= watch.rounds; ++round) {
    if (threadIdx.x == 0) {
      const std::uint64_t begin = now_ns();
      while (!(came = acquire(watch.signal) == round) && now_ns() - begin < watch.timeout_ns) {
      }
    }
    __syncthreads();
    if (!came)
      return;
    const std::uint64_t expected = (round & 0xff) * each_byte;
    unsigned long long late = 0;
    for (std::size_t i = threadIdx.x; i < watch.words; i += threads)
      late += load(watch.data + i) != expected ? 1 : 0;
    if (late > 0)
      atomicAdd(&found->late, late);
    __syncthreads();
    if (threadIdx.x == 0) {
      ++found->looked;
      release(watch.answer, round);
    }
  }
}

} // namespace

cudaError_t launch_watch_stream(cudaStream_t stream, const StreamWatch& watch,
                                StreamFindings* findings) {
  watch_stream<<<1, threads, 0, stream>>>(watch, findings);
  return cudaGetLastError();
}

} // namespace shmemctl::test
