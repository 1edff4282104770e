// How long PEs take to become a job over the uid bootstrap: from the first connection to the end
// of the first barrier on all of them.
#include <benchmark/benchmark.h>

#include "tests/unit/runtime/bootstrap/process_world.h"
#include "tests/unit/runtime/bootstrap/uid_world.h"

namespace shmemctl {
namespace {

/// Threads of this process; sockets are TCP, or Unix ones if `unix_sockets`.
void join_threads(benchmark::State& state, bool unix_sockets) {
  for (auto _ : state) {
    test::UidWorld world;
    world.n_pes = static_cast<int>(state.range(0));
    world.unix_sockets = unix_sockets;
    const auto errors =
        test::run_uid_world(world, [](Bootstrap& bootstrap, const Deadline& deadline) {
          bootstrap.barrier(deadline);
          bootstrap.finish(deadline);
        });
    for (const auto& error : errors)
      if (error)
        state.SkipWithError(error->message().c_str());
  }
}

/// Processes of this host, from fork to exit.
void join_processes(benchmark::State& state) {
  const int n_pes = static_cast<int>(state.range(0));
  for (auto _ : state) {
    test::ProcessWorld world(n_pes, [](int, UidArguments arguments) {
      const Deadline deadline = Deadline::after(std::chrono::seconds(60));
      const auto bootstrap = join_uid(std::move(arguments), deadline);
      bootstrap->barrier(deadline);
      bootstrap->finish(deadline);
    });
    for (int pe = 0; pe < n_pes; ++pe)
      if (const test::PeResult result = world.result(pe); !result.message.empty())
        state.SkipWithError(result.message.c_str());
  }
}

BENCHMARK_CAPTURE(join_threads, tcp, false)
    ->Arg(64)
    ->Arg(256)
    ->Arg(512)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(join_threads, unix, true)
    ->Arg(64)
    ->Arg(512)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(join_processes)->Arg(64)->Arg(512)->UseRealTime()->Unit(benchmark::kMillisecond);

} // namespace
} // namespace shmemctl

BENCHMARK_MAIN();
