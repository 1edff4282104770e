// Pauses in a run, lost TCP packets, and results above their limit are found, without false alarms.
#include "src/instruments/bench/stall.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <random>

#include "src/instruments/bench/above_limit.h"
#include "src/instruments/bench/rows.h"
#include "src/instruments/bench/tcp_counters.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/instruments/bench/scripted_case.h"

namespace shmemctl::bench {
namespace {

TEST(Stall, OneSampleOf112ThatTookSevenSeconds) {
  std::vector<double> times(112, 0.0021);
  times[40] = 7.3;
  const auto stall = find_stall(times);
  ASSERT_TRUE(stall);
  const Finding finding = stall_finding("bench put 1M", *stall, "PE 0 (a) -> PE 2 (b) by ucx eth0",
                                        "b sent 9 TCP segments again");
  EXPECT_EQ(finding.id, "bench-stall");
  EXPECT_EQ(finding.severity, Severity::warning);
  EXPECT_EQ(finding.message,
            "sample 41 of 112 took 7.3 s, where 9 of 10 take at most 2.1 ms: PE 0 (a) -> PE 2 (b) "
            "by ucx eth0 stood still; b sent 9 TCP segments again");
}

TEST(Stall, ABusyMachineMakesNone) {
  std::vector<double> times(200, 50e-6);
  for (std::size_t i = 0; i < times.size(); i += 10)
    times[i] = 0.1; // a core that was preempted for 100 ms, 2000 times as long
  EXPECT_FALSE(find_stall(times));
  times[0] = 0.45;
  EXPECT_FALSE(find_stall(times));
  EXPECT_FALSE(find_stall(std::vector<double>{0.5, 0.6, 9, 0.5})) << "too few to tell";
  // Long samples with a large spread are not a stall.
  EXPECT_FALSE(find_stall({1, 1.2, 3, 5, 2, 1, 8, 19}));
}

TEST(Stall, FewSamplesAndManyPausesAreFound) {
  EXPECT_TRUE(find_stall({0.01, 0.01, 0.01, 0.01, 1.5}));
  std::vector<double> times(100, 0.001);
  for (int i = 0; i < 9; ++i)
    times[static_cast<std::size_t>(10 * i)] = 2;
  EXPECT_TRUE(find_stall(times));
}

TEST(Stall, RandomNoiseBelowTheLimitsIsNone) {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> noise(0, 0.6);
  for (int round = 0; round < 200; ++round) {
    std::vector<double> times(5 + random() % 300);
    for (double& time : times)
      time = 0.002 * noise(random);
    ASSERT_FALSE(find_stall(times)) << round;
    times[random() % times.size()] += 6;
    ASSERT_TRUE(find_stall(times)) << round;
  }
}

TEST(Stall, TheEngineFindsItInWhateverPart) {
  for (const bool in_reference : {false, true}) {
    test::OnePe job;
    test::ScriptedRun run;
    run.effort.iterations = 50;
    run.effort.warmup = 1;
    const auto cost = [](std::uint64_t number) {
      return number == 30 ? std::int64_t{7'000'000'000} : std::int64_t{1'000'000};
    };
    run.script.cost_ns = [&](std::uint64_t number) {
      return in_reference ? 1'000'000 : cost(number);
    };
    if (in_reference)
      run.script.reference_ns = cost;
    run.run(job.runtime());
    std::string ids;
    for (const Finding& finding : run.own_findings())
      ids += finding.id + " ";
    EXPECT_NE(ids.find("bench-stall"), std::string::npos) << ids << in_reference;
  }
}

TEST(Stall, TheEngineFindsNoneWhereThereIsNone) {
  test::OnePe job;
  test::ScriptedRun run;
  run.effort.iterations = 500;
  run.effort.warmup = 1;
  run.script.cost_ns = [](std::uint64_t number) {
    return number % 50 == 0 ? std::int64_t{100'000'000} : std::int64_t{1'000'000};
  };
  run.run(job.runtime());
  for (const Finding& finding : run.own_findings())
    EXPECT_NE(finding.id, "bench-stall") << finding.message;
}

constexpr const char* snmp =
    "Ip: Forwarding DefaultTTL\nIp: 1 64\n"
    "Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens AttemptFails EstabResets "
    "CurrEstab InSegs OutSegs RetransSegs InErrs OutRsts InCsumErrors\n"
    "Tcp: 1 200 120000 -1 10 11 0 0 2 5000 6000 17 0 3 0\nUdp: InDatagrams\nUdp: 5\n";

TEST(TcpCounters, AreFoundByName) {
  const TcpCounters counters = parse_tcp_counters(snmp);
  EXPECT_EQ(counters.sent, 6000u);
  EXPECT_EQ(counters.sent_again, 17u);
  TemporaryFolder folder;
  folder.write("proc/net/snmp", snmp);
  EXPECT_EQ(read_tcp_counters(Sysroot(folder.path())).sent_again, 17u);
}

TEST(TcpCounters, WhatIsMissingIsNotZero) {
  for (const char* text : {"", "Tcp: OutSegs\n", "Tcp: OutSegs RetransSegs\nTcp: x -1\n",
                           "Tcp: a b\nTcp: 1 2\n", "Udp: OutSegs\nUdp: 5\n"}) {
    const TcpCounters counters = parse_tcp_counters(text);
    EXPECT_FALSE(counters.sent) << text;
    EXPECT_FALSE(counters.sent_again) << text;
  }
  EXPECT_FALSE(change_between({5, 5}, {4, 6}).sent);
  EXPECT_EQ(change_between({5, 5}, {4, 6}).sent_again, 1u);
}

TEST(TcpCounters, AFindingNeedsManyAndAShare) {
  EXPECT_FALSE(tcp_finding("bench put", {{"a", {100000, 9}}}));
  EXPECT_FALSE(tcp_finding("bench put", {{"a", {1000000, 500}}}));
  EXPECT_FALSE(tcp_finding("bench put", {{"a", {}}}));
  const auto finding = tcp_finding("bench put", {{"a", {100000, 3}}, {"b", {100000, 1200}}});
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->id, "bench-tcp-retransmits");
  EXPECT_NE(finding->message.find("b sent 1200 of 100000 TCP segments again"), std::string::npos);
  EXPECT_EQ(finding->message.find("a sent"), std::string::npos);
}

ResultRow row_at(double fraction, const std::string& limit, std::uint64_t size_bytes = 4096) {
  ResultRow row;
  row.case_name = "put";
  row.params = {{"size_bytes", size_bytes}};
  row.link_fraction = fraction;
  row.limited_by = limit;
  note_above_limit(row);
  return row;
}

TEST(AboveLimit, IsNotedInTheRowAndFound) {
  const ResultRow near = row_at(1.04, reference_name), wire = row_at(1.015, "eth0:1 on a, 25 Gb/s");
  EXPECT_EQ(near.limit_note, "");
  EXPECT_EQ(wire.limit_note, "");
  EXPECT_FALSE(above_limit_finding("bench put", {near, wire}));
  const ResultRow above = row_at(1.212, reference_name);
  EXPECT_NE(above.limit_note.find("memcpy"), std::string::npos);
  const auto finding = above_limit_finding("bench put", {near, above});
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->id, "bench-above-limit");
  EXPECT_EQ(finding->severity, Severity::info);
  EXPECT_NE(finding->message.find("1 of 2 rows"), std::string::npos) << finding->message;
  EXPECT_NE(finding->message.find("put 4K: 121.2% of memcpy of the same size"), std::string::npos)
      << finding->message;
}

TEST(AboveLimit, ALinksRateIsAWarningAndGoesFirst) {
  const ResultRow above = row_at(3, reference_name),
                  wire = row_at(1.118, "mlx5_0:1 on a, 400 Gb/s", 1 << 20);
  const auto finding = above_limit_finding("bench put", {above, wire});
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->severity, Severity::warning);
  EXPECT_NE(finding->message.find("put 1M: 111.8% of mlx5_0:1 on a"), std::string::npos)
      << finding->message;
}

TEST(AboveLimit, TheFixFitsTheKindOfLimit) {
  const auto found = [](const std::vector<ResultRow>& rows) {
    return above_limit_finding("bench put", rows).value_or(Finding{});
  };
  const ResultRow cached = row_at(
      1.6, "memory of the GPU: 3350 GB/s by clock and width, half of it for payload that is read "
           "and written");
  EXPECT_NE(cached.limit_note.find("cache"), std::string::npos) << cached.limit_note;
  EXPECT_EQ(found({cached}).severity, Severity::info);
  EXPECT_NE(found({cached}).fix.find("--sizes"), std::string::npos);
  const ResultRow link = row_at(1.2, "NVLink, 18 links of 25 GB/s: 450 GB/s by the model");
  EXPECT_EQ(found({cached, link}).severity, Severity::warning);
  EXPECT_NE(found({cached, link}).message.find("120.0% of NVLink"), std::string::npos);
  EXPECT_NE(found({link}).fix.find("nvidia-smi nvlink"), std::string::npos);
  const ResultRow measured = row_at(2, "430 GB/s measured (4 GPUs); NVLink, 18 links of 25 GB/s");
  EXPECT_EQ(found({measured, cached}).severity, Severity::info);
  EXPECT_NE(found({measured, cached}).fix.find("-D 5"), std::string::npos);
  const ResultRow wire = row_at(1.3, "mlx5_0:1 on a, 400 Gb/s");
  EXPECT_NE(found({measured, wire, link}).fix.find("hotspots"), std::string::npos);
}

TEST(AboveLimit, TheEnginesRowSaysIt) {
  test::OnePe job;
  test::ScriptedRun run;
  run.effort.iterations = 50;
  run.effort.warmup = 1;
  run.script.cost_ns = [](std::uint64_t) { return 1'000'000; };
  run.script.reference_ns = [](std::uint64_t) { return 1'300'000; };
  run.run(job.runtime());
  ASSERT_EQ(run.rows.size(), 1u);
  EXPECT_NEAR(run.rows[0].link_fraction.value_or(0), 1.3, 0.01);
  EXPECT_NE(run.rows[0].limit_note, "");
}

} // namespace
} // namespace shmemctl::bench
