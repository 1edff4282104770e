#include "src/instruments/bench/interference.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "src/base/error.h"
#include "src/instruments/bench/timer.h"
#include "tests/support/temporary_folder.h"

namespace shmemctl::bench {
namespace {

constexpr const char* stat_text = "cpu  100 10 20 1000 5 1 2 7 3 0\n"
                                  "cpu0 60 5 10 500 3 1 2 4 1 0\n"
                                  "cpu1 40 5 10 500 2 0 0 3 2 0\n"
                                  "cpu10 1 1 1 1 1 1 1 1 0 0\n"
                                  "intr 5 6 7\n";

TEST(ProcStat, LinesAreFoundByTheirCpu) {
  const auto all = parse_cpu_ticks(stat_text, -1);
  ASSERT_TRUE(all);
  EXPECT_EQ(all->busy, 133u);
  EXPECT_EQ(all->idle, 1005u);
  EXPECT_EQ(all->steal, 7u);
  EXPECT_EQ(parse_cpu_ticks(stat_text, 1)->busy, 55u);
  EXPECT_EQ(parse_cpu_ticks(stat_text, 10)->busy, 5u);
  EXPECT_FALSE(parse_cpu_ticks(stat_text, 2));
}

TEST(ProcStat, WhatIsMalformedIsNothing) {
  for (const char* bad :
       {"", "cpu", "cpu ", "cpu 1 2 3", "cpu a b c d e f g h", "cpu 1 2 3 4 5 6 7 -8",
        "cpu 99999999999999999999 2 3 4 5 6 7 8", "xcpu 1 2 3 4 5 6 7 8"})
    EXPECT_FALSE(parse_cpu_ticks(bad, -1)) << bad;
}

TEST(ProcThread, TimesAndSwitches) {
  const auto times = parse_schedstat("123456789 42000 17\n");
  ASSERT_TRUE(times);
  EXPECT_EQ(times->run_ns, 123456789u);
  EXPECT_EQ(times->wait_ns, 42000u);
  for (const char* bad : {"", "1", "1 2", "1 2 3 4", "a b c", "-1 2 3"})
    EXPECT_FALSE(parse_schedstat(bad)) << bad;
  EXPECT_EQ(parse_involuntary_switches("Name:\tx\nvoluntary_ctxt_switches:\t5\n"
                                       "nonvoluntary_ctxt_switches:\t12\n"),
            12u);
  for (const char* bad : {"", "nonvoluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:\t-1",
                          "nonvoluntary_ctxt_switches:\t1 2"})
    EXPECT_FALSE(parse_involuntary_switches(bad)) << bad;
}

TEST(Usage, IsReadFromAMachine) {
  TemporaryFolder folder;
  folder.write("proc/stat", stat_text);
  folder.write("proc/thread-self/schedstat", "1000 500 2\n");
  folder.write("proc/thread-self/status", "nonvoluntary_ctxt_switches:\t3\n");
  folder.write("sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0-1\n");
  folder.write("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "2400000\n");
  folder.write("sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "9\n");
  const Usage usage = read_usage(Sysroot(folder.path()), 0, 1.5);
  EXPECT_EQ(usage.core.value().busy, 78u);
  EXPECT_EQ(usage.siblings.value().busy, 55u);
  EXPECT_EQ(usage.thread.value().wait_ns, 500u);
  EXPECT_EQ(usage.switches.value(), 3u);
  EXPECT_DOUBLE_EQ(usage.frequency_MHz.value(), 2400);
  EXPECT_EQ(usage.throttles.value(), 9u);
  TemporaryFolder empty;
  const Usage nothing = read_usage(Sysroot(empty.path()), 0, 1.5);
  EXPECT_FALSE(nothing.core || nothing.siblings || nothing.thread || nothing.switches ||
               nothing.frequency_MHz || nothing.throttles);
}

/// An idle machine during ten seconds.
struct Quiet {
  Usage before{0, CpuTicks{0, 0, 0}, CpuTicks{0, 0, 0}, ThreadTimes{0, 0}, 0, 2400.0, 0};
  Usage after{
      10, CpuTicks{1000, 0, 0}, CpuTicks{3, 997, 0}, ThreadTimes{10000000000, 1000000}, 2, 2410.0,
      0};
  std::optional<Finding> finding() const {
    Interference found;
    found.cpu = 3;
    found.add(before, after);
    return interference_finding(
        "bench put", {Interference{}, from_bytes<Interference>(to_bytes(found)).value()});
  }
};

TEST(Interference, AQuietMachineHasNone) {
  EXPECT_FALSE(Quiet().finding());
}

TEST(Interference, EachKindIsNamed) {
  const auto named = [](const auto& change, const std::string& words) {
    Quiet machine;
    change(machine.after);
    const auto finding = machine.finding();
    ASSERT_TRUE(finding) << words;
    EXPECT_EQ(finding->id, "bench-interference");
    EXPECT_EQ(finding->subject, "bench put");
    EXPECT_NE(finding->message.find("PE 1 on CPU 3"), std::string::npos) << finding->message;
    EXPECT_NE(finding->message.find(words), std::string::npos) << finding->message;
  };
  const double ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  named([](Usage& after) { after.thread->wait_ns = 2500000000; }, "waited 25% of the time");
  named([&](Usage& after) { after.core->steal = static_cast<std::uint64_t>(ticks); },
        "hypervisor took 10%");
  named([&](Usage& after) { after.siblings->busy = static_cast<std::uint64_t>(ticks * 5); },
        "busy for 50%");
  named([](Usage& after) { after.frequency_MHz = 1200; }, "between 1200 and 2400 MHz");
  named([](Usage& after) { after.throttles = 4; }, "throttled 4 times");
}

TEST(Interference, TheMostDisturbedPeIsNamedWhateverDisturbedIt) {
  const auto disturbed = [](const auto& change) {
    Interference found;
    found.wall_s = 10;
    change(found);
    return found;
  };
  const Interference quiet = disturbed([](Interference&it) { it.waited_s = 0.09; }),
                     waited = disturbed([](Interference&it) { it.waited_s = 0.2; });
  for (const Interference& worse :
       {disturbed([](Interference& it) { it.waited_s = 0.3; }),
        disturbed([](Interference& it) { it.stolen_s = 1; }),
        disturbed([](Interference& it) { it.sibling_s = 9; }),
        disturbed([](Interference& it) { it.slowest_MHz = 1200, it.fastest_MHz = 2400; }),
        disturbed([](Interference& it) { it.waited_s = 0.2, it.throttles = 7; })}) {
    const auto finding = interference_finding("bench put", {quiet, waited, worse});
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->message.find("PE 2: "), 0u) << finding->message;
    EXPECT_NE(finding->message.find("1 more PE was disturbed"), std::string::npos)
        << finding->message;
  }
  // Throttling alone, of which nothing is known but its number.
  const auto throttled = [&](std::uint64_t times) {
    return disturbed([&](Interference& it) { it.throttles = times; });
  };
  const auto finding = interference_finding("bench put", {throttled(3), throttled(40), quiet});
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->message.find("PE 1: the core was throttled 40"), 0u) << finding->message;
}

TEST(Interference, AFewTicksAreChance) {
  Quiet machine;
  machine.after.at_s = 0.1; // the tick that represents half of it may have been earlier
  machine.after.core = CpuTicks{9, 0, 1};
  machine.after.thread = ThreadTimes{100000000, 0};
  EXPECT_FALSE(machine.finding());
}

TEST(Interference, HidesWhoIsSlowWhereAPeLostMuchOfItsTime) {
  Interference quiet, waited, stolen;
  quiet.wall_s = waited.wall_s = stolen.wall_s = 10;
  waited.waited_s = 0.5;
  EXPECT_FALSE(hides_who_is_slow({}));
  EXPECT_FALSE(hides_who_is_slow({quiet, waited, Interference{}}));
  waited.waited_s = 2;
  EXPECT_TRUE(hides_who_is_slow({quiet, waited}));
  stolen.stolen_s = 1.5;
  EXPECT_TRUE(hides_who_is_slow({stolen, quiet}));
}

TEST(Interference, AWatchCountsFromItsBeginToItsEnd) {
  const InterferenceWatch watch;
  const SteadyClock clock;
  for (const std::int64_t end = clock.now_ns() + 20000000; clock.now_ns() < end;) {
  }
  const Interference found = watch.end();
  EXPECT_GE(found.wall_s, 0.02);
  EXPECT_EQ(found.cpu, bound_cpu());
}

TEST(Interference, CountersThatStartAgainAreNoTime) {
  Quiet machine;
  machine.before.thread = ThreadTimes{5, 1ULL << 62};
  machine.before.core = CpuTicks{5, 5, 1ULL << 59};
  EXPECT_FALSE(machine.finding());
}

TEST(Interference, WhatIsUnknownStaysUnknown) {
  Interference found;
  found.add(Usage{}, Usage{});
  const std::string bytes = to_bytes(found);
  const Interference back = from_bytes<Interference>(bytes).value();
  EXPECT_FALSE(back.waited_s || back.stolen_s || back.sibling_s || back.switches ||
               back.throttles || back.slowest_MHz);
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(from_bytes<Interference>(bytes.substr(0, length))) << length;
}

TEST(Interference, WithoutACpuOfItsOwnStealIsAShareOfAll) {
  Interference found;
  found.add({0, CpuTicks{0, 0, 0}, {}, {}, {}, {}, {}},
            {10, CpuTicks{300, 600, 100}, {}, {}, {}, {}, {}});
  EXPECT_NEAR(found.stolen_s.value(), 1, 1e-12);
}

TEST(Interference, TheLiveMachineTellsThisThreadsTimes) {
  const Usage before = read_usage(Sysroot(), bound_cpu(), 0);
  const SteadyClock clock;
  for (const std::int64_t end = clock.now_ns() + 20000000; clock.now_ns() < end;) {
  }
  const Usage after = read_usage(Sysroot(), bound_cpu(), 0.02);
  if (!before.thread || !after.thread)
    GTEST_SKIP() << "this kernel keeps no schedstat";
  const std::uint64_t known =
      after.thread->run_ns - before.thread->run_ns + after.thread->wait_ns - before.thread->wait_ns;
  EXPECT_GT(known, 2000000u);
}

} // namespace
} // namespace shmemctl::bench
