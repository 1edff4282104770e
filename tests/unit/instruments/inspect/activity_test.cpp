// Which processes compute, compile or wait, and the verdict on a job.
#include <deque>
#include <gtest/gtest.h>

#include "src/instruments/inspect/activity.h"

namespace shmemctl::inspect {
namespace {

Process sleeping(int pid, char state = 'S') {
  Process process;
  process.pid = pid;
  process.stat.name = "python3";
  process.stat.state = state;
  process.stat.parent = 1;
  Thread thread;
  thread.id = pid;
  thread.state = state;
  thread.system_call = 202;
  thread.wchan = "futex_wait_queue";
  process.threads = {thread};
  return process;
}

ProcessStat child_of(int parent, const std::string& name) {
  ProcessStat stat;
  stat.name = name;
  stat.state = 'R';
  stat.parent = parent;
  return stat;
}

TEST(InspectActivity, WaitsInACall) {
  const Activity activity = activity_of(sleeping(10), {}, std::nullopt);
  EXPECT_EQ(activity.doing, Doing::waits);
  EXPECT_EQ(activity.wait, "futex (futex_wait_queue)");
  EXPECT_EQ(system_call_name(9999), "system call 9999");
}

TEST(InspectActivity, CpuTimeCountsMoreThanOneReading) {
  EXPECT_EQ(activity_of(sleeping(10), {}, 0.98).doing, Doing::runs);
  EXPECT_EQ(activity_of(sleeping(10, 'R'), {}, 0.01).doing, Doing::waits);
  EXPECT_EQ(activity_of(sleeping(10, 'R'), {}, std::nullopt).doing, Doing::runs);
}

TEST(InspectActivity, StoppedBlockedEnded) {
  EXPECT_EQ(activity_of(sleeping(10, 'T'), {}, std::nullopt).doing, Doing::stopped);
  EXPECT_EQ(activity_of(sleeping(10, 't'), {}, 0.0).doing, Doing::stopped);
  EXPECT_EQ(activity_of(sleeping(10, 'D'), {}, 0.0).doing, Doing::blocked);
  EXPECT_EQ(activity_of(sleeping(10, 'Z'), {}, 0.0).doing, Doing::ended);
}

TEST(InspectActivity, CompilersAreDescendants) {
  const ProcessTable table = {{5, child_of(20, "ptxas")}, // numbers wrap around
                              {10, child_of(1, "python3")},
                              {20, child_of(30, "nvcc")},
                              {30, child_of(10, "ninja")},
                              {40, child_of(1, "ptxas")}};
  const Activity activity = activity_of(sleeping(10), table, 0.0);
  EXPECT_EQ(activity.doing, Doing::compiles);
  EXPECT_EQ(activity.compilers,
            (std::vector<std::pair<int, std::string>>{{5, "ptxas"}, {20, "nvcc"}, {30, "ninja"}}));
}

/// Ranks of one job on this node; PIDs are 100 and on.
class JobOfRanks {
public:
  Process& add(int rank, Doing doing) {
    Process& process = processes_.emplace_back(sleeping(100 + static_cast<int>(processes_.size())));
    process.environment = {{"RANK", std::to_string(rank)},
                           {"LOCAL_RANK", std::to_string(rank)},
                           {"MASTER_ADDR", "a"},
                           {"MASTER_PORT", "29500"}};
    Activity activity;
    activity.doing = doing;
    if (doing == Doing::compiles)
      activity.compilers = {{777, "ptxas"}};
    members_.push_back({&process, rank_of(process), activity});
    return process;
  }
  /// Sets the GPU of the member that was added last.
  void gpu(unsigned busy_percent, std::optional<bool> moves_data = std::nullopt) {
    members_.back().activity.gpu_busy_percent = busy_percent;
    members_.back().activity.moves_data = moves_data;
  }
  /// A context, and no sample of its kernels: of the member that was added last.
  void gpu_without_sample() { members_.back().activity.gpu_without_sample = true; }
  void sleeps_in(const std::string& wait) { members_.back().activity.wait = wait; }
  JobVerdict verdict(bool whole = true) const {
    const auto jobs = judge_jobs(members_, whole);
    return jobs.empty() ? JobVerdict{} : jobs.front();
  }
  Findings findings(bool whole = true) const { return job_findings(judge_jobs(members_, whole)); }

private:
  std::deque<Process> processes_;
  std::vector<Member> members_;
};

TEST(InspectJobs, TheRankThatCompiles) {
  JobOfRanks job;
  for (int rank = 0; rank < 8; ++rank)
    job.add(rank, rank == 6 ? Doing::compiles : Doing::runs);
  const JobVerdict verdict = job.verdict();
  EXPECT_EQ(verdict.job, "MASTER_ADDR a:29500");
  EXPECT_EQ(verdict.awaited, 106);
  EXPECT_EQ(verdict.awaited_rank, 6);
  EXPECT_NE(verdict.verdict.find("rank 6, PID 106 (python3), still compiles: ptxas (PID 777)"),
            std::string::npos);
  const Findings findings = job.findings();
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].id, "rank-awaited");
  EXPECT_EQ(findings[0].severity, Severity::warning);
}

TEST(InspectJobs, AStoppedOneComesBeforeOneThatCompiles) {
  JobOfRanks job;
  job.add(0, Doing::compiles);
  job.add(1, Doing::stopped);
  job.add(2, Doing::runs);
  EXPECT_EQ(job.verdict().awaited_rank, 1);
}

TEST(InspectJobs, AGuessIsSaidToBeOne) {
  JobOfRanks job;
  for (int rank = 0; rank < 4; ++rank)
    job.add(rank, rank == 2 ? Doing::waits : Doing::runs);
  const Findings findings = job.findings();
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].severity, Severity::info);
  EXPECT_NE(findings[0].message.find("rank 2"), std::string::npos);
  EXPECT_NE(findings[0].message.find("probably"), std::string::npos);
}

TEST(InspectJobs, TheRankWhoseGpuIsIdle) {
  JobOfRanks job;
  for (int rank = 0; rank < 4; ++rank) {
    job.add(rank, Doing::runs); // all ranks poll, so CPU times tell nothing
    job.gpu(rank == 2 ? 3 : 100);
  }
  EXPECT_EQ(job.verdict().awaited_rank, 2);
  EXPECT_TRUE(job.verdict().guess);
  EXPECT_NE(job.verdict().verdict.find("its GPU is idle (3%), while kernels of the 3 others run"),
            std::string::npos);
  JobOfRanks two; // pipelines take turns
  for (int rank = 0; rank < 4; ++rank) {
    two.add(rank, Doing::runs);
    two.gpu(rank < 2 ? 3 : 100);
  }
  EXPECT_FALSE(two.verdict().awaited);
  JobOfRanks unknown;
  for (int rank = 0; rank < 4; ++rank) {
    unknown.add(rank, Doing::runs);
    if (rank != 2)
      unknown.gpu(100);
  }
  EXPECT_FALSE(unknown.verdict().awaited);
}

TEST(InspectJobs, AContextWithoutASampleIsIdleWhereOthersHaveOne) {
  for (const bool sampled : {true, false}) {
    JobOfRanks job;
    for (int rank = 0; rank < 4; ++rank) {
      job.add(rank, Doing::runs);
      if (rank == 2 || !sampled)
        job.gpu_without_sample();
      else
        job.gpu(100);
    }
    EXPECT_EQ(job.verdict().awaited_rank, sampled ? std::optional(2) : std::nullopt);
    EXPECT_EQ(job.verdict().verdict.find("its GPU is idle (no sample of its kernels)") ==
                  std::string::npos,
              !sampled)
        << job.verdict().verdict;
  }
}

TEST(InspectJobs, OfTwoTheOneWhoseGpuIsIdle) {
  for (const Doing doing : {Doing::runs, Doing::waits}) {
    JobOfRanks job;
    job.add(0, Doing::runs);
    job.gpu(100);
    job.add(1, doing);
    job.gpu_without_sample();
    const JobVerdict verdict = job.verdict();
    EXPECT_EQ(verdict.awaited_rank, 1);
    EXPECT_TRUE(verdict.guess);
    EXPECT_NE(verdict.verdict.find("while kernels of rank 0 run: perhaps rank 0 waits for it"),
              std::string::npos)
        << verdict.verdict;
    ASSERT_EQ(job.findings().size(), 1U);
    EXPECT_EQ(job.findings()[0].severity, Severity::info);
  }
  JobOfRanks host_works; // the CPU works on the data for which the sleeping rank's kernel waits
  host_works.add(0, Doing::waits);
  host_works.gpu(100);
  host_works.add(1, Doing::runs);
  host_works.gpu(2);
  EXPECT_EQ(host_works.verdict().awaited_rank, 1);
}

TEST(InspectJobs, OfTwoTheOneThatSleeps) {
  JobOfRanks job;
  job.add(0, Doing::runs);
  job.add(1, Doing::waits);
  job.sleeps_in("clock_nanosleep (hrtimer_nanosleep)");
  EXPECT_EQ(job.verdict().awaited_rank, 1);
  EXPECT_NE(job.verdict().verdict.find("rank 1, PID 101 (python3), sleeps in clock_nanosleep "
                                       "(hrtimer_nanosleep), and rank 0 runs, as processes do that "
                                       "poll: perhaps rank 0 waits for it"),
            std::string::npos)
      << job.verdict().verdict;
  JobOfRanks kernel; // a message cannot come from a rank that spins in a kernel
  kernel.add(0, Doing::runs);
  kernel.gpu(100);
  kernel.add(1, Doing::waits);
  kernel.sleeps_in("poll (do_sys_poll)");
  EXPECT_EQ(kernel.verdict().awaited_rank, 1);
  EXPECT_NE(kernel.verdict().verdict.find("rank 0 has kernels that run"), std::string::npos);
}

TEST(InspectJobs, OfTwoNoneStandsOut) {
  for (const char* wait : {"recvfrom (sk_wait_data)", "epoll_wait", "ep_poll"}) {
    JobOfRanks message; // the rank may wait for a result that the other one computes
    message.add(0, Doing::runs);
    message.add(1, Doing::waits);
    message.sleeps_in(wait);
    EXPECT_FALSE(message.verdict().awaited) << wait;
    EXPECT_EQ(message.verdict().verdict, "no process stands out");
  }
  JobOfRanks kernels; // both ranks wait, or both compute
  kernels.add(0, Doing::runs);
  kernels.gpu(100);
  kernels.add(1, Doing::waits);
  kernels.gpu(100);
  EXPECT_FALSE(kernels.verdict().awaited);
  EXPECT_EQ(kernels.verdict().verdict, "no process stands out");
  for (const Doing doing : {Doing::runs, Doing::waits}) {
    JobOfRanks alike;
    for (int rank = 0; rank < 2; ++rank) {
      alike.add(rank, doing);
      alike.gpu(50);
    }
    EXPECT_FALSE(alike.verdict().awaited);
    EXPECT_TRUE(alike.findings().empty());
  }
}

TEST(InspectJobs, BusyGpusThroughWhichNothingMoves) {
  for (const bool moves : {false, true}) {
    JobOfRanks job;
    for (int rank = 0; rank < 2; ++rank) {
      job.add(rank, Doing::runs);
      job.gpu(100, moves && rank == 1);
    }
    EXPECT_FALSE(job.verdict().awaited);
    EXPECT_EQ(job.verdict().verdict.find("nothing moves") == std::string::npos, moves)
        << job.verdict().verdict;
    EXPECT_TRUE(job.findings().empty());
  }
}

TEST(InspectJobs, NothingStandsOut) {
  for (const Doing doing : {Doing::runs, Doing::waits, Doing::compiles}) {
    JobOfRanks job;
    for (int rank = 0; rank < 4; ++rank)
      job.add(rank, doing);
    EXPECT_FALSE(job.verdict().awaited);
    EXPECT_FALSE(job.verdict().verdict.empty());
    EXPECT_TRUE(job.findings().empty());
  }
}

TEST(InspectJobs, ALocalRankThatIsMissing) {
  JobOfRanks job;
  for (const int rank : {0, 1, 3})
    (*job.add(rank, Doing::runs).environment)["LOCAL_WORLD_SIZE"] = "4";
  EXPECT_EQ(job.findings().size(), 1U);
  EXPECT_NE(job.verdict().verdict.find("local rank 2 "), std::string::npos);
  EXPECT_TRUE(job.findings(false).empty()); // only some of the processes were named
}

TEST(InspectJobs, LoadersOfARankAndSingleProcessesAreNoMembers) {
  JobOfRanks job;
  job.add(0, Doing::runs);
  Process& loader = job.add(0, Doing::stopped);
  loader.stat.parent = 100;
  EXPECT_TRUE(job.verdict().pids.empty()); // a rank alone waits for no local rank
  job.add(1, Doing::runs);
  EXPECT_EQ(job.verdict().pids, (std::vector<int>{100, 102}));
}

} // namespace
} // namespace shmemctl::inspect
