// Cases on a whole runtime, with PEs that are processes.
#include <gtest/gtest.h>

#include <cstring>

#include "src/instruments/bench/case_table.h"
#include "tests/support/fork_job.h"

using namespace shmemctl;
using namespace shmemctl::bench;
using namespace shmemctl::test;

namespace {

/// As in the engine. Returns what is wrong.
std::string run_at(Runtime& runtime, const BenchCase& bench_case, const Point& point) {
  const std::string where = bench_case.info.name + ", " + std::to_string(point.size_bytes) +
                            " bytes, " + to_string(point.traffic) + ": ";
  const auto made = bench_case.make(point);
  if (const std::string reason = made->cannot_run(runtime); !reason.empty())
    return where + reason + "\n";
  const std::size_t size_bytes = made->bytes_needed(runtime, point);
  auto* memory = static_cast<std::byte*>(runtime.allocate(size_bytes, 4096));
  std::memset(memory, 0, size_bytes);
  Arena arena{runtime, point, memory, size_bytes, 99};
  made->prepare(arena);
  std::uint64_t done = 0;
  for (const std::uint64_t count : {1, 7, 200}) {
    runtime.collectives().barrier(team_world);
    made->reference(done, count);
    runtime.collectives().barrier(team_world);
    made->iterate(done, count);
    done += count;
  }
  runtime.collectives().barrier(team_world);
  const auto wrong = made->verify(done);
  runtime.free(memory);
  return wrong ? where + wrong->what + "\n" : "";
}

std::string run_all(Runtime& runtime) {
  std::string wrong;
  for (const BenchCase& bench_case : host_cases())
    for (const Traffic traffic : bench_case.info.traffics)
      for (const std::size_t size : {std::size_t{8}, std::size_t{4096}, std::size_t{1} << 20}) {
        if (bench_case.info.group == verbs_group) // no PE is reached over verbs in this job
          continue;
        if (size != 8 && (!bench_case.info.sized || size > bench_case.info.max_bytes))
          continue;
        Point point;
        point.size_bytes = size;
        point.traffic = traffic;
        point.window = bench_case.info.metric == Metric::latency ? 1 : 64;
        wrong += run_at(runtime, bench_case, point);
      }
  return wrong;
}

} // namespace

TEST(CasesOfProcesses, AreRight) {
  for (const int n_pes : {2, 3}) {
    ForkJob job;
    job.n_pes = n_pes;
    job.body = run_all;
    for (const PeResult& pe : run_fork_job(job)) {
      EXPECT_EQ(pe.exit_code, 0);
      EXPECT_EQ(pe.text, "");
    }
  }
}

/// What the direct calls of the reference leave behind is not the proxy's work.
std::string references_pass(Runtime& runtime) {
  std::string wrong;
  for (const BenchCase& bench_case : choose_cases(host_cases(), {"proxy-*"})) {
    Point point;
    point.window = bench_case.info.metric == Metric::latency ? 1 : 16;
    const auto made = bench_case.make(point);
    const std::size_t size_bytes = made->bytes_needed(runtime, point);
    auto* memory = static_cast<std::byte*>(runtime.allocate(size_bytes, 4096));
    std::memset(memory, 0, size_bytes);
    runtime.collectives().barrier(team_world);
    Arena arena{runtime, point, memory, size_bytes, 99};
    made->prepare(arena);
    runtime.collectives().barrier(team_world);
    const bool has_reference = made->reference(0, 50);
    runtime.collectives().barrier(team_world);
    if (has_reference != (runtime.pe() == 0) || (runtime.pe() == 1 && !made->verify(50)))
      wrong += bench_case.info.name + " before; ";
    runtime.collectives().barrier(team_world);
    made->iterate(0, 50);
    runtime.collectives().barrier(team_world);
    if (made->verify(50))
      wrong += bench_case.info.name + " after; ";
    if (runtime.pe() == 1 && !made->verify(51))
      wrong += bench_case.info.name + " one less; ";
    runtime.collectives().barrier(team_world);
    runtime.free(memory);
  }
  return wrong;
}

TEST(CasesOfProcesses, TheReferenceOfAProxyCaseIsNotItsWork) {
  for (const char* threads : {"1", "3"}) {
    ForkJob job;
    job.environment["SHMEMCTL_PROXY_THREADS"] = threads;
    job.body = references_pass;
    for (const PeResult& pe : run_fork_job(job)) {
      EXPECT_EQ(pe.exit_code, 0);
      EXPECT_EQ(pe.text, "");
    }
  }
}

TEST(CasesOfProcesses, SayWhereTheyCannotRun) {
  ForkJob job;
  job.n_nodes = 2;
  job.environment = {{"SHMEMCTL_REMOTE_TRANSPORT", "none"}};
  job.require_reach = false;
  job.body = [](Runtime& runtime) {
    std::string reasons;
    for (const BenchCase& bench_case : host_cases()) {
      Point point;
      point.traffic = bench_case.info.traffics.at(0);
      if (!bench_case.make(point)->cannot_run(runtime).empty())
        reasons += bench_case.info.name + " ";
    }
    return reasons;
  };
  for (const PeResult& pe : run_fork_job(job)) {
    EXPECT_EQ(pe.exit_code, 0);
    EXPECT_EQ(pe.text, "memcpy cacheline-pingpong bare-atomic verbs-write verbs-write-latency ");
  }
}

/// Also those that another transport reaches: each PE of the pair says which.
TEST(CasesOfProcesses, WritesByVerbsNeedATransportOverVerbs) {
  ForkJob job;
  job.n_pes = 3;
  job.body = [](Runtime& runtime) {
    const BenchCase bench_case = choose_cases(host_cases(), {"verbs-write"}).at(0);
    return bench_case.make(Point())->cannot_run(runtime);
  };
  const auto pes = run_fork_job(job);
  ASSERT_EQ(pes.size(), 3u);
  for (int pe = 0; pe < 2; ++pe)
    EXPECT_EQ(pes[static_cast<std::size_t>(pe)].text, "shm carries its puts to PE " +
                                                          std::to_string(1 - pe) +
                                                          ", and not ibrc, ibdevx or ibgda");
}
