// Figures of sync, collectives and copies between PEs that are threads of this process.
#include <benchmark/benchmark.h>
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "src/instruments/bench/cases/host_case.h"

#include "tests/support/team_world.h"
#include "transports/shm/shm.h"

using namespace shmemctl;
using namespace shmemctl::test;

namespace {

/// Runs `call` often enough on all PEs, each time on the same team; time of PE 0 per call.
template <class Call>
void on_all_pes(benchmark::State& state, int n_pes, std::size_t heap_bytes, const Call& call) {
  TeamWorldOptions options;
  options.heap_bytes = heap_bytes;
  for (auto _ : state) {
    double seconds = 0;
    constexpr int turns = 200;
    run_team_world(
        n_pes,
        [&](TeamPe& me) {
          for (int i = 0; i < 5; ++i)
            call(me);
          const auto begin = std::chrono::steady_clock::now();
          for (int i = 0; i < turns; ++i)
            call(me);
          if (me.pe == 0)
            seconds =
                std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        },
        options);
    state.SetIterationTime(seconds / turns);
  }
}

void sync_of(benchmark::State& state) {
  on_all_pes(state, static_cast<int>(state.range(0)), 4096,
             [](TeamPe& me) { me.teams->sync(team_world); });
}

void reduce_of(benchmark::State& state) {
  const auto size_bytes = static_cast<std::size_t>(state.range(1));
  on_all_pes(state, static_cast<int>(state.range(0)), 2 * size_bytes, [&](TeamPe& me) {
    me.collectives->reduce(team_world, me.at<float>(size_bytes), me.at<float>(0), size_bytes / 4,
                           ElementType::float32, ReduceOp::sum);
  });
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * size_bytes));
}

void broadcast_of(benchmark::State& state) {
  const auto size_bytes = static_cast<std::size_t>(state.range(1));
  on_all_pes(state, static_cast<int>(state.range(0)), 2 * size_bytes, [&](TeamPe& me) {
    me.collectives->broadcast(team_world, me.heap + size_bytes, me.heap, size_bytes, 0);
  });
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * size_bytes));
}

/// The choice that copy_to_shared() makes, beside the C library's.
template <bool by_library>
void copy_of(benchmark::State& state) {
  const auto size_bytes = static_cast<std::size_t>(state.range(0));
  std::vector<std::byte> source(size_bytes, std::byte{1}), target(size_bytes);
  for (auto _ : state) {
    if (by_library)
      std::memcpy(target.data(), source.data(), size_bytes);
    else
      copy_to_shared(target.data(), source.data(), size_bytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * size_bytes));
}

void split_of(benchmark::State& state) {
  const int n_pes = static_cast<int>(state.range(0));
  on_all_pes(state, n_pes, 4096, [&](TeamPe& me) {
    me.teams->destroy(*me.teams->split_strided(team_world, 0, 1, n_pes));
  });
}

void pin_to(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(cpu) % std::thread::hardware_concurrency(), &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

/// A case of `bench` on two pinned PEs. The fastest of many batches, each much shorter than a time
/// slice, so that the figure holds on a busy machine too; the median is beside it.
void case_of(benchmark::State& state, const std::string& name, std::size_t size_bytes) {
  bench::Point point;
  const bench::BenchCase bench_case = bench::choose_cases(bench::host_cases(), {name}).at(0);
  point.size_bytes = size_bytes;
  point.traffic = bench_case.info.traffics.at(0);
  point.window = bench_case.info.metric == bench::Metric::latency ? 1 : 64;
  const std::uint64_t batch = size_bytes > 4096 ? 64 : 500;
  for (auto _ : state) {
    std::vector<double> ns;
    TeamWorldOptions options;
    const auto probe = bench_case.make(point);
    options.heap_bytes = (dynamic_cast<bench::HostCase&>(*probe).bytes_for(2) + 4095) / 4096 * 4096;
    run_team_world(
        2,
        [&](TeamPe& me) {
          pin_to(me.pe);
          const auto made = bench_case.make(point);
          auto& host_case = dynamic_cast<bench::HostCase&>(*made);
          host_case.begin({*me.rma, *me.teams, *me.collectives, me.pe, me.n_pes, me.heap, 1});
          std::uint64_t first = 0;
          for (int turn = 0; turn < 400; ++turn, first += batch) {
            me.teams->sync(team_world);
            const auto begin = std::chrono::steady_clock::now();
            host_case.iterate(first, batch);
            if (me.pe == 0)
              ns.push_back(
                  std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin)
                      .count() /
                  static_cast<double>(batch) / host_case.latency_divisor());
          }
          me.teams->sync(team_world);
        },
        options);
    std::sort(ns.begin(), ns.end());
    state.SetIterationTime(ns.front() * 1e-9);
    state.counters["fastest_ns"] = ns.front();
    state.counters["median_ns"] = ns[ns.size() / 2];
  }
}

} // namespace

// Each case that has a reference is followed by it.
#define SHMEMCTL_CASE(id, name, size_bytes)                                                        \
  BENCHMARK_CAPTURE(case_of, id, std::string(name), size_bytes)->UseManualTime()->Iterations(1)
SHMEMCTL_CASE(cacheline_pingpong, "cacheline-pingpong", 8);
SHMEMCTL_CASE(put_pingpong, "put-pingpong", 8);
SHMEMCTL_CASE(put_pingpong_1KiB, "put-pingpong", 1024);
SHMEMCTL_CASE(signal_pingpong, "signal-pingpong", 8);
SHMEMCTL_CASE(put_signal_pingpong_1KiB, "put-signal-pingpong", 1024);
SHMEMCTL_CASE(barrier, "barrier", 8);
SHMEMCTL_CASE(sync, "sync", 8);
SHMEMCTL_CASE(bare_atomic, "bare-atomic", 8);
SHMEMCTL_CASE(fetch_add, "atomic-fetch-add", 8);
SHMEMCTL_CASE(fetch, "atomic-fetch", 8);
SHMEMCTL_CASE(put_latency, "put-latency", 8);
SHMEMCTL_CASE(get_latency, "get-latency", 8);
SHMEMCTL_CASE(message_rate, "message-rate", 8);
SHMEMCTL_CASE(memcpy_1MiB, "memcpy", 1 << 20);
SHMEMCTL_CASE(put_1MiB, "put", 1 << 20);
SHMEMCTL_CASE(memcpy_8, "memcpy", 8);
SHMEMCTL_CASE(put_8, "put", 8);

BENCHMARK(sync_of)->Arg(1)->Arg(2)->Arg(4)->Arg(8)->Arg(16)->UseManualTime()->Iterations(10);
BENCHMARK(split_of)->Arg(2)->Arg(8)->UseManualTime()->Iterations(10);
BENCHMARK(reduce_of)
    ->ArgsProduct({{2, 4, 8}, {8, 4 << 10, 32 << 10, 64 << 10, 1 << 20, 8 << 20}})
    ->UseManualTime()
    ->Iterations(10);
BENCHMARK(broadcast_of)
    ->ArgsProduct({{2, 8}, {8, 64 << 10, 8 << 20}})
    ->UseManualTime()
    ->Iterations(10);
BENCHMARK(copy_of<true>)->RangeMultiplier(4)->Range(64 << 10, 64 << 20);
BENCHMARK(copy_of<false>)->RangeMultiplier(4)->Range(64 << 10, 64 << 20);

BENCHMARK_MAIN();
