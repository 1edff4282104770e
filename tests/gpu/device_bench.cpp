// Figures of the device API between two GPUs: one line each, median of several launches.
#include <algorithm>
#include <cstdio>

#include "tests/gpu/device_kernels.h"
#include "tests/gpu/device_world.h"

namespace {

using namespace shmemctl;
using namespace shmemctl::test;

constexpr int launches = 15;

/// Median time of a launch.
template <class Launch>
double milliseconds(GpuPe& me, const Launch& launch) {
  cudaEvent_t begin, end;
  require_cuda(cudaEventCreate(&begin), "event");
  require_cuda(cudaEventCreate(&end), "event");
  std::vector<float> times;
  for (int i = 0; i < launches; ++i) {
    me.barrier();
    require_cuda(cudaEventRecord(begin), "record");
    launch();
    require_cuda(cudaEventRecord(end), "record");
    me.synchronize();
    float time = 0;
    require_cuda(cudaEventElapsedTime(&time, begin, end), "time");
    times.push_back(time);
  }
  std::nth_element(times.begin(), times.begin() + launches / 2, times.end());
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return times[launches / 2];
}

void bandwidths(GpuPe& me, std::size_t half) {
  for (const bool is_put : {true, false})
    for (const int blocks : {32, 132})
      for (const int threads : {512, 1024})
        for (const std::size_t size : {std::size_t{64} << 10, std::size_t{1} << 20,
                                       std::size_t{16} << 20, std::size_t{64} << 20}) {
          const int times =
              static_cast<int>(std::max<std::size_t>(8, (std::size_t{512} << 20) / size));
          const double ms = milliseconds(me, [&] {
            if (me.job.pe != 0)
              return;
            if (is_put)
              launch_put(me.job, Who::block, {blocks, threads}, half, 0, size, 1, times);
            else
              launch_get(me.job, Who::block, {blocks, threads}, half, 0, size, 1, times);
          });
          if (me.job.pe == 0)
            std::printf("%s %d x %d, %zu KiB: %.1f GB/s\n", is_put ? "put" : "get", blocks, threads,
                        size >> 10, static_cast<double>(size) * times / ms / 1e6);
        }
}

void latencies(GpuPe& me, std::size_t half) {
  DeviceArray<std::uint64_t> wrong(1);
  std::uint64_t first = 0;
  constexpr std::uint64_t rounds = 2000;
  for (const auto& [name, who, threads, size] :
       {std::tuple{"signal, thread", Who::thread, 1, 0},
        std::tuple{"put_signal 8 B, thread", Who::thread, 1, 8},
        std::tuple{"put_signal 8 B, warp", Who::warp, 32, 8},
        std::tuple{"put_signal 1 KiB, warp", Who::warp, 32, 1024}}) {
    const double ms = milliseconds(me, [&] {
      launch_ping_pong(me.job, who, threads, 0, half, static_cast<std::size_t>(size), first, rounds,
                       wrong.data());
      first += rounds;
    });
    if (me.job.pe == 0)
      std::printf("%s, full round trip: %.3f us\n", name, ms * 1000 / rounds);
  }
  const double put_ms = milliseconds(me, [&] {
    if (me.job.pe == 0)
      launch_put_latency(me.job, 0, 1, rounds);
  });
  if (me.job.pe == 0)
    std::printf("put 8 B and quiet, warp: %.3f us\n", put_ms * 1000 / rounds);
  for (const auto& [name, who, threads] :
       {std::tuple{"thread", Who::thread, 1}, std::tuple{"warp", Who::warp, 32},
        std::tuple{"block of 128", Who::block, 128}}) {
    const double ms = milliseconds(me, [&] { launch_bare_barriers(me.job, who, threads, rounds); });
    if (me.job.pe == 0)
      std::printf("barrier of %d, %s: %.3f us\n", me.job.n_pes, name, ms * 1000 / rounds);
  }
}

} // namespace

int main(int count, char** words) {
  const int n_pes = count > 1 ? std::atoi(words[1]) : 2;
  constexpr std::size_t heap_bytes = std::size_t{256} << 20;
  const std::string problem = run_gpu_pes(n_pes, heap_bytes, [](GpuPe& me) {
    bandwidths(me, heap_bytes / 2);
    latencies(me, heap_bytes / 2);
    std::fflush(stdout);
  });
  std::fputs(problem.c_str(), stderr);
  return problem.empty() ? 0 : 1;
}
