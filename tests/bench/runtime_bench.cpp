// Figures of sync, collectives and copies between PEs that are threads of this process.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstring>
#include <vector>

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

} // namespace

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
