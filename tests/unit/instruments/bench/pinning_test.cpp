#include "src/instruments/bench/pinning.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/fork_job.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/instruments/bench/scripted_case.h"

namespace shmemctl::bench {
namespace {

using shmemctl::test::expect_error;
using shmemctl::test::PeResult;
using shmemctl::test::run_fork_job;

/// Two nodes of two cores of two threads: core i has CPUs i and i + 4.
CpuLayout eight_cpus() {
  CpuLayout layout;
  for (int core = 0; core < 4; ++core) {
    layout.cores.push_back({core, core + 4});
    layout.numa[core] = layout.numa[core + 4] = core / 2;
  }
  return layout;
}

CpuSet range(int first, int last) {
  CpuSet cpus;
  cpus.add(first, last);
  return cpus;
}

TEST(PinPlan, PhysicalCoresFirstThenThreadsThenSharing) {
  const std::vector<PinRequest> pin_requests(10, PinRequest{range(0, 7), -1});
  EXPECT_EQ(plan_cpus(pin_requests, eight_cpus()),
            (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 0, 1}));
}

TEST(PinPlan, TheOwnNumaNodeFirst) {
  const std::vector<PinRequest> pin_requests = {
      {range(0, 7), 1}, {range(0, 7), 1}, {range(0, 7), 1}};
  EXPECT_EQ(plan_cpus(pin_requests, eight_cpus()), (std::vector<int>{2, 3, 0}));
}

TEST(PinPlan, NoPeLosesItsOnlyCoreToAnother) {
  // The first PE may use any core, the second only those that the first would take.
  const std::vector<PinRequest> pin_requests = {
      {range(0, 3), 0}, {range(0, 1), 0}, {range(0, 1), 0}};
  const std::vector<int> cpus = plan_cpus(pin_requests, eight_cpus());
  EXPECT_EQ(cpus[0], 2);
  EXPECT_EQ(std::set<int>(cpus.begin(), cpus.end()).size(), 3u);
  EXPECT_LE(std::max(cpus[1], cpus[2]), 1);
}

TEST(PinPlan, APeWithOneCoreKeepsIt) {
  const std::vector<PinRequest> pin_requests = {
      {range(0, 7), 0}, {CpuSet{0, 4}, 0}, {CpuSet{5}, 0}};
  EXPECT_EQ(plan_cpus(pin_requests, eight_cpus()), (std::vector<int>{2, 0, 5}));
}

TEST(PinPlan, WithoutCpusThereIsNone) {
  EXPECT_EQ(plan_cpus({PinRequest{}}, eight_cpus()), std::vector<int>{-1});
  EXPECT_EQ(plan_cpus({PinRequest{range(0, 1), 0}}, CpuLayout{}), std::vector<int>{0});
}

TEST(PinLayout, IsReadFromTheMachine) {
  TemporaryFolder folder;
  for (int cpu = 0; cpu < 4; ++cpu)
    folder.write("sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                     "/topology/thread_siblings_list",
                 cpu % 2 == 0 ? "0,2\n" : "1,3\n");
  folder.write("sys/devices/system/cpu/cpufreq/x", "");
  folder.write("sys/devices/system/cpu/cpu4/online", "1"); // does not tell its siblings
  folder.write("sys/devices/system/node/node0/cpulist", "0,2\n");
  folder.write("sys/devices/system/node/node1/cpulist", "1,3\n");
  const CpuLayout layout = read_cpu_layout(Sysroot(folder.path()));
  EXPECT_EQ(layout.cores, (std::vector<CpuSet>{{0, 2}, {1, 3}, {4}}));
  EXPECT_EQ(layout.numa_of({0, 2}), 0);
  EXPECT_EQ(layout.numa_of({0, 1}), std::nullopt);
  EXPECT_EQ(layout.numa_of({4}), std::nullopt);
}

TEST(PinList, KeepsItsOrder) {
  EXPECT_EQ(parse_pin_list("4,0-2,0"), (std::vector<int>{4, 0, 1, 2, 0}));
  for (const char* bad : {"", "a", "1,", "-1", "2-1", "1-2-3", "99999999", "0-99999", "0x1"})
    EXPECT_FALSE(parse_pin_list(bad)) << bad;
  EXPECT_TRUE(parse_pin_choice("auto").wanted);
  EXPECT_FALSE(parse_pin_choice("none").wanted);
  expect_error(ExitCode::usage, {"--pin"}, [] { parse_pin_choice("all"); });
}

TEST(PinState, SurvivesTheJourney) {
  const PinState state{~std::uint64_t{0}, {0, 3, 4}, 1, 3, true, "not \"allowed\"\n"};
  const std::string bytes = to_bytes(state);
  const PinState back = value_of_pe<PinState>(bytes, 0, "CPUs");
  EXPECT_EQ(back.machine_id, state.machine_id);
  EXPECT_EQ(back.allowed, state.allowed);
  EXPECT_EQ(back.cpu, 3);
  EXPECT_EQ(back.numa, 1);
  EXPECT_TRUE(back.by_launcher);
  EXPECT_EQ(back.problem, state.problem);
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(from_bytes<PinState>(bytes.substr(0, length))) << length;
  std::string bad_list = bytes;
  bad_list.at(bad_list.find("0,3-4")) = 'x';
  EXPECT_THROW(value_of_pe<PinState>(bad_list, 0, "CPUs"), Error);
}

TEST(PinFindings, OversubscribedAndUnpinned) {
  const PinState pinned0{1, {0, 1}, 0, 0, false, ""}, pinned1{1, {0, 1}, 0, 1, false, ""};
  const PinState elsewhere{2, {0, 1}, 0, 0, false, ""};
  EXPECT_TRUE(pin_findings({pinned0, pinned1, elsewhere}, {"a", "a", "b"}, true).empty());
  Findings found = pin_findings({pinned0, pinned0}, {"a", "a"}, true);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].id, "bench-oversubscribed");
  EXPECT_NE(found[0].message.find("2 PEs share CPU 0"), std::string::npos);
  found = pin_findings({pinned0, pinned1, pinned0}, {"a", "a", "a"}, true);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found[0].message.find("3 PEs share 2 CPUs"), std::string::npos);
  PinState loose{1, {0, 1}, 0, -1, false, "sched_setaffinity: no"};
  found = pin_findings({pinned0, loose}, {"a", "a"}, true);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].id, "bench-unpinned");
  EXPECT_EQ(found[0].severity, Severity::warning);
  EXPECT_EQ(found[0].subject, "PE 1");
  EXPECT_NE(found[0].message.find("sched_setaffinity: no"), std::string::npos);
  EXPECT_EQ(pin_findings({loose}, {"a"}, false)[0].severity, Severity::info);
}

TEST(Pinning, BindsThisThreadAndLetsItGo) {
  test::OnePe job;
  const CpuSet before = thread_affinity();
  ASSERT_FALSE(before.empty());
  {
    const Pinning pinning(job.runtime(), parse_pin_choice("auto"));
    if (before.cpus().size() > 1) {
      EXPECT_EQ(thread_affinity(), CpuSet{pinning.cpu()});
    }
    ASSERT_EQ(pinning.rows().size(), 1u);
    EXPECT_EQ(pinning.rows()[0].cpus, std::to_string(pinning.cpu()));
    EXPECT_NE(pinning.rows()[0].by, "nobody");
    EXPECT_TRUE(pinning.findings().empty());
  }
  EXPECT_EQ(thread_affinity(), before);
  {
    const Pinning pinning(job.runtime(), parse_pin_choice("none"));
    EXPECT_EQ(thread_affinity(), before);
  }
  const std::string last = std::to_string(before.last());
  {
    const Pinning pinning(job.runtime(), parse_pin_choice(last));
    EXPECT_EQ(pinning.cpu(), before.last());
    EXPECT_EQ(pinning.rows()[0].by, "bench");
    EXPECT_EQ(pinning.rows()[0].cpus, last);
  }
  expect_error(ExitCode::usage, {"CPU 16000"}, [&] {
    try {
      const Pinning pinning(job.runtime(), parse_pin_choice("16000"));
    } catch (const Error& error) {
      EXPECT_TRUE(error.same_on_all_pes());
      throw;
    }
  });
}

TEST(Pinning, PesOfAJobGetCoresOfTheirOwn) {
  const std::vector<PeResult> results =
      run_fork_job({.n_pes = 2, .body = [](Runtime& runtime) {
                      const Pinning pinning(runtime, parse_pin_choice("auto"));
                      std::string text;
                      for (const PinRow& row : pinning.rows())
                        text += row.cpus + " " + row.by + "; ";
                      for (const Finding& finding : pinning.findings())
                        text += finding.id;
                      return text;
                    }});
  EXPECT_EQ(results[0].exit_code, 0) << results[0].text;
  EXPECT_EQ(results[0].text, results[1].text);
  const std::size_t cpus = thread_affinity().cpus().size();
  EXPECT_EQ(results[0].text.find("bench-oversubscribed") != std::string::npos, cpus < 2)
      << results[0].text;
}

TEST(Pinning, AListThatIsTooShortEndsOnAllPes) {
  for (const PeResult& result :
       run_fork_job({.n_pes = 2, .body = [](Runtime& runtime) {
                       const std::string first = std::to_string(thread_affinity().first());
                       try {
                         const Pinning pinning(runtime, parse_pin_choice(first));
                       } catch (const Error& error) {
                         if (error.same_on_all_pes())
                           throw;
                       }
                       return std::string("no error of all PEs");
                     }})) {
    EXPECT_EQ(result.exit_code, 2) << result.text;
    EXPECT_NE(result.text.find("list has 1 CPU, but"), std::string::npos) << result.text;
  }
}

} // namespace
} // namespace shmemctl::bench
