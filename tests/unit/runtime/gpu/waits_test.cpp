// What kernels see of teams, and waits for them.
#include <atomic>
#include <cstring>
#include <set>
#include <thread>

#include "tests/support/forked_pes.h"
#include "tests/unit/runtime/gpu/gpu_job.h"

namespace shmemctl::test {
namespace {

/// What kernels see of the teams.
struct SeenTeams {
  std::vector<TeamState> teams;
  std::vector<std::int32_t> members;
};
SeenTeams see_teams(Runtime& runtime) {
  SeenTeams seen;
  seen.teams.resize(limits::max_teams);
  seen.members.resize(runtime.state().members_capacity);
  const DeviceJob job = runtime.gpu()->job();
  runtime.gpu()->copy(seen.teams.data(), job.teams, seen.teams.size() * sizeof(TeamState));
  runtime.gpu()->copy(seen.members.data(), job.members, seen.members.size() * 4);
  return seen;
}
bool same_as_state(Runtime& runtime, const SeenTeams& seen) {
  const State& state = runtime.state();
  return std::memcmp(seen.teams.data(), state.teams, sizeof state.teams) == 0 &&
         std::memcmp(seen.members.data(), members_of(&state), seen.members.size() * 4) == 0;
}

TEST(GpuTeams, KernelsSeeTeamsCreatedAndDestroyed) {
  const SetVariable strict("FAKE_CUDA_STRICT", "1");
  expect_all_well(run_fork_job(gpu_job(4, [](Runtime& runtime) -> std::string {
    SeenTeams seen = see_teams(runtime);
    expect(seen.teams[team_world].in_use == 1 && seen.teams[team_world].n_pes == 4, "the world");
    expect(same_as_state(runtime, seen), "at the start");
    const auto grid = runtime.teams().split_2d(team_world, 2);
    const auto some = runtime.teams().split_strided(grid->x, 0, 1, 1);
    seen = see_teams(runtime);
    expect(seen.teams[static_cast<std::size_t>(grid->y)].n_pes == 2, "a column");
    expect(same_as_state(runtime, seen), "after splits");
    runtime.teams().destroy(*some);
    runtime.teams().destroy(grid->x);
    seen = see_teams(runtime);
    expect(seen.teams[static_cast<std::size_t>(grid->x)].in_use == 0, "a row that is gone");
    expect(same_as_state(runtime, seen), "after they have gone");
    return {};
  })));
}

TEST(GpuTeams, CellsAreZeroForTheNextUseOfTheirSlot) {
  const SetVariable strict("FAKE_CUDA_STRICT", "1");
  expect_all_well(run_fork_job(gpu_job(2, [](Runtime& runtime) -> std::string {
    PeGpu& gpu = *runtime.gpu();
    const auto team = *runtime.teams().split_strided(team_world, 0, 1, 2);
    DeviceTeamFlags& cells = gpu.job().cells[team];
    DeviceTeamFlags& world = gpu.job().cells[team_world];
    for (std::uint64_t* word : {&cells.arrived[1], &cells.epoch, &cells.messages[1][8191]})
      *reach(word) = 9;
    *reach(&world.epoch) = 4;
    runtime.teams().destroy(team);
    const std::vector<std::uint64_t> after =
        words_at(gpu, &cells, sizeof cells / sizeof(std::uint64_t));
    expect(after == std::vector<std::uint64_t>(after.size(), 0), "zeros");
    expect(word_at(gpu, &world.epoch) == 4, "another team's cells");
    return {};
  })));
}

TEST(GpuWait, ARaisedTimeoutAppliesToKernels) {
  expect_all_well(run_fork_job(gpu_job(2, [](Runtime& runtime) -> std::string {
    PeGpu& gpu = *runtime.gpu();
    expect(gpu.job().timeout_ns == 60'000'000'000u, "TIMEOUT");
    gpu.set_timeout_s(86400);
    expect(gpu.job().timeout_ns == 86'400'000'000'000u, "a day");
    gpu.wait(gpu.stream(), "nothing");
    return {};
  })));
}

TEST(GpuWait, ReleasedKernelsExitWithoutAnError) {
  expect_all_well(run_fork_job(gpu_job(1, [](Runtime& runtime) -> std::string {
    PeGpu& gpu = *runtime.gpu();
    gpu.release_kernels();
    expect(std::atomic_ref(gpu.job().report->state).load() == WaitReport::written, "they leave");
    gpu.check();
    return {};
  })));
}

TEST(GpuJob, TheHostKnowsWhereHeapsAreAsKernelsDo) {
  expect_all_well(run_fork_job(gpu_job(3, [](Runtime& runtime) -> std::string {
    PeGpu& gpu = *runtime.gpu();
    std::vector<std::int64_t> table(3);
    gpu.copy(table.data(), gpu.job().heap_delta_bytes, sizeof(std::int64_t) * 3);
    expect(gpu.heap_delta_bytes() == table, "by PE");
    return {};
  })));
}

TEST(GpuWait, EndsWhenTheStreamIsDone) {
  expect_all_well(run_fork_job(gpu_job(1, [](Runtime& runtime) -> std::string {
    runtime.gpu()->wait(runtime.gpu()->stream(), "nothing");
    std::atomic<bool> done{false};
    auto held = std::make_unique<HeldStreams>();
    std::thread gpu([&] {
      for (int i = 0; i < 100; ++i)
        std::this_thread::yield();
      done = true;
      held.reset();
    });
    runtime.gpu()->wait(runtime.gpu()->stream(), "a kernel");
    gpu.join();
    expect(done, "it was waited for");
    return {};
  })));
}

/// What PE 0's kernel reports while the host waits for it, as the error of both PEs.
/// @param faults whether the kernel faults after its report
void expect_reported(WaitKind kind, std::uint64_t offset_bytes, int exit_code,
                     const std::vector<std::string>& said, bool faults = false) {
  const auto pe_of_job = [=](Runtime& runtime) -> std::string {
    if (runtime.pe() == 1) {
      runtime.gather_text("");
      return {};
    }
    WaitReport& report = *runtime.gpu()->job().report;
    expect(report.state == WaitReport::none, "no report yet");
    const HeldStreams held;
    report.peer = 1;
    report.block = 6;
    report.expected = 12;
    report.seen = 11;
    report.offset_bytes = offset_bytes;
    report.kind = kind;
    std::atomic_ref(report.state).store(WaitReport::written);
    if (faults)
      fail_next_query(700); // CUDA_ERROR_ILLEGAL_ADDRESS
    runtime.gpu()->wait(runtime.gpu()->stream(), "a kernel");
    return {};
  };
  for (const PeResult& result : run_fork_job(gpu_job(2, pe_of_job))) {
    EXPECT_EQ(result.exit_code, exit_code) << result.text;
    for (const std::string& words : said)
      EXPECT_NE(result.text.find(words), std::string::npos) << words << ": " << result.text;
  }
}

TEST(GpuWait, AKernelsReportIsTheError) {
  expect_reported(WaitKind::word, 4096, 124,
                  {"GPU 0 (0000:1a:00.0), block 6", "waiting for PE 1", "offset 4096",
                   "is 11, expected 12", "PE 0"});
}
TEST(GpuWait, NamesABarrierWithMissingPes) {
  expect_reported(WaitKind::cell, 2 * sizeof(DeviceTeamFlags), 124,
                  {"GPU 0 (0000:1a:00.0), block 6", "waiting for PE 1",
                   "arrivals at barriers and syncs of team 2 is 11, expected 12"});
}
TEST(GpuWait, AReportComesBeforeTheFaultThatFollowsIt) {
  expect_reported(WaitKind::team_size, UINT64_MAX, 2,
                  {"GPU 0 (0000:1a:00.0), block 6", "begin a collective of team 12"}, true);
}
TEST(GpuWait, AnImpossibleCollectiveIsAnError) {
  expect_reported(WaitKind::team_size, UINT64_MAX, 2,
                  {"GPU 0 (0000:1a:00.0), block 6", "begin a collective of team 12",
                   "it has 11 members", "split the team"});
}

// One PE without a launcher: its only wait is for the GPU, so a short timeout is safe.
TEST(GpuWait, AnUnfinishedStreamTimesOut) {
  ForkedPes one(1, [](int) {
    const Environment environment{{"SHMEMCTL_CUDA_LIBRARY", SHMEMCTL_FAKE_CUDA},
                                  {"SHMEMCTL_SYMMETRIC_SIZE", "2M"},
                                  {"SHMEMCTL_TIMEOUT", "1"}};
    const Options options(environment);
    RuntimeRequest request;
    request.options = &options;
    request.environment = environment;
    request.gpu = GpuUse::required;
    request.word_atomics = std::make_shared<HostWordAtomics>();
    Runtime runtime(std::move(request));
    PeGpu& gpu = *runtime.gpu();
    const HeldStreams held;
    try {
      gpu.wait(gpu.stream(), "a kernel that stays");
    } catch (const Error& error) {
      const std::string& said = error.message();
      expect(error.code() == ExitCode::deadline, said);
      expect(said.find("a kernel that stays") != std::string::npos, said);
      expect(said.find("GPU 0 (0000:1a:00.0)") != std::string::npos, said);
      expect(std::atomic_ref(gpu.job().report->state).load() == WaitReport::written,
             "kernels are told to leave");
      return;
    }
    expect(false, "the wait ends with an error");
  });
  EXPECT_EQ(one.ends(), ChildEnds(1));
}

TEST(GpuWait, TheFailureOfAnotherPeEndsIt) {
  for (const PeResult& result : run_fork_job(gpu_job(2, [](Runtime& runtime) -> std::string {
         if (runtime.pe() == 1)
           throw Error(ExitCode::unavailable, "gadget", "turn on", "no power", "plug it in");
         const HeldStreams held;
         runtime.gpu()->wait(runtime.gpu()->stream(), "a kernel");
         return {};
       }))) {
    EXPECT_EQ(result.exit_code, 3) << result.text;
    EXPECT_NE(result.text.find("gadget"), std::string::npos) << result.text;
  }
}

using GpuFaults = OverHeaps;

/// Each driver call fails once: one line with the error, and no leak.
TEST_P(GpuFaults, EachIsOneLineAndLeavesNothing) {
  const char* functions[] = {"cuDevicePrimaryCtxRetain",
                             "cuCtxPushCurrent",
                             "cuCtxSetCurrent",
                             "cuCtxGetStreamPriorityRange",
                             "cuStreamCreateWithPriority",
                             "cuStreamSynchronize",
                             "cuStreamQuery",
                             "cuMemGetAllocationGranularity",
                             "cuMemAddressReserve",
                             "cuMemCreate",
                             "cuMemMap",
                             "cuMemSetAccess",
                             "cuMemExportToShareableHandle",
                             "cuMemImportFromShareableHandle",
                             "cuMemsetD8Async",
                             "cuMemcpyAsync",
                             "cuMemHostRegister",
                             "cuMemHostGetDevicePointer",
                             "cuMemHostAlloc",
                             "cuMemAlloc",
                             "cuIpcGetMemHandle",
                             "cuIpcOpenMemHandle"};
  // What is called at more than one step.
  const std::set<std::string> twice = {"cuStreamCreateWithPriority",
                                       "cuMemCreate",
                                       "cuMemMap",
                                       "cuMemcpyAsync",
                                       "cuMemHostAlloc",
                                       "cuMemAlloc"};
  ForkJob job = gpu_job(2,
                        [](Runtime& runtime) -> std::string {
                          PeGpu& gpu = *runtime.gpu();
                          const int peer = 1 - runtime.pe();
                          const KernelPath& way = gpu.paths_by_pe()[static_cast<std::size_t>(peer)];
                          // the job continues without the lost PE
                          if (way.path != DevicePath::load_store)
                            throw Error(ExitCode::unavailable, "PE " + std::to_string(peer), "map",
                                        way.reason, "-");
                          auto* words = static_cast<std::uint64_t*>(gpu.allocate(64));
                          runtime.rma().put_value<std::uint64_t>(words, 1, peer);
                          runtime.rma().quiet();
                          gpu.fill(words + 1, 1, 8);
                          gpu.wait(gpu.stream(), "a kernel");
                          return {};
                        },
                        {{"SHMEMCTL_HEAP", kind()}, {"SHMEMCTL_SYMMETRIC_SIZE", "4M"}});
  job.after = [] { return " held: " + held_by_fake(); };
  int failures = 0;
  for (const char* function : functions)
    for (const int call : {1, 2}) {
      if (call == 2 && twice.count(function) == 0)
        continue;
      const SetVariable fail("FAKE_CUDA_FAIL", function + (":" + std::to_string(call)) + ":719");
      for (const PeResult& result : run_fork_job(job)) {
        const std::string about = function + (" " + std::to_string(call)) + ": " + result.text;
        EXPECT_TRUE(result.exit_code == 0 || result.exit_code == 3) << about;
        EXPECT_NE(result.text.find(std::string(" held: ") + nothing_held), std::string::npos)
            << about;
        if (result.exit_code != 3)
          continue;
        ++failures;
        EXPECT_NE(result.text.find("CUDA_ERROR_FAKE: a failure that a test asked for"),
                  std::string::npos)
            << about;
      }
    }
  EXPECT_GT(failures, 20);
}

INSTANTIATE_TEST_SUITE_P(, GpuFaults, all_heaps(),
                         [](const auto& which) { return std::string(which.param); });

} // namespace
} // namespace shmemctl::test
