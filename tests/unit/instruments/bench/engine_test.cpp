// The engine against a clock that only the case moves: exact answers.
#include <cmath>
#include <gtest/gtest.h>

#include "tests/unit/instruments/bench/scripted_case.h"

namespace shmemctl::bench {
namespace {

using test::OnePe;
using test::ScriptedRun;

constexpr std::int64_t us = 1000, ms = 1000 * us;

class Engine : public ::testing::Test {
protected:
  Stats measure() {
    run.run(job.runtime());
    EXPECT_EQ(run.rows.size(), run.points.size());
    EXPECT_TRUE(run.script.in_order);
    return run.rows.empty() ? Stats{} : run.rows.front().stats.value_or(Stats{});
  }
  ResultRow& row() { return run.rows.front(); }
  std::uint64_t batch() { return row().params.value("batch", std::uint64_t{1}); }

  OnePe job;
  ScriptedRun run;
};

TEST_F(Engine, ShortOperationsAreBatched) {
  run.script.cost_ns = [](std::uint64_t) { return 100; };
  const Stats stats = measure();
  // 400 times the clock's 50 ns: 20 us, of which 200 operations would do; powers of two.
  EXPECT_EQ(batch(), 256u);
  EXPECT_EQ(stats.n, 4096u);
  for (const auto& value : {stats.min, stats.p50, stats.p90, stats.p99, stats.max, stats.mean})
    EXPECT_DOUBLE_EQ(value.value(), 0.1);
  EXPECT_DOUBLE_EQ(stats.stddev.value(), 0);
  EXPECT_DOUBLE_EQ(stats.mad.value(), 0);
  EXPECT_EQ(row().unit, "us");
  EXPECT_EQ(row().verified, Verified::passed);
  EXPECT_EQ(row().status, RowStatus::pass);
  EXPECT_FALSE(row().bandwidth_GBps || row().rate_Mops || row().link_fraction);
  EXPECT_TRUE(run.own_findings().empty());
}

TEST_F(Engine, BatchesAreWholeWindows) {
  run.script.cost_ns = [](std::uint64_t) { return 100; };
  run.script.multiple = 3;
  measure();
  EXPECT_EQ(batch(), 384u); // 3 * 2^7
  run.effort.iterations = 1000;
  const Stats stats = measure();
  EXPECT_EQ(batch(), 48u); // of 1000 in 20 samples, cut to whole windows
  EXPECT_EQ(stats.n, 20u);
}

TEST_F(Engine, FewIterationsHaveSmallerWindows) {
  // perftest and nccl-tests average over -n 1000: so do we, and tell how the samples spread.
  run.script.cost_ns = [](std::uint64_t) { return 100; };
  run.script.multiple = 64;
  run.metric = Metric::bandwidth;
  run.effort.iterations = 1000;
  run.effort.warmup = 1;
  const Stats stats = measure();
  EXPECT_EQ(stats.n, 20u);
  EXPECT_EQ(batch(), 50u);
  EXPECT_EQ(row().params.at("window"), 50) << "64 were never under way together";
}

TEST_F(Engine, ACasesOwnClockCounts) {
  run.script.cost_ns = [](std::uint64_t) { return 50 * us; }; // with its launch
  run.script.own_duration_ns = [](std::uint64_t count) {
    return 100.0 * static_cast<double>(count);
  };
  run.script.own_timer = TimerQuality{32, 32};
  const Stats stats = measure();
  EXPECT_DOUBLE_EQ(stats.p50.value(), 0.1);
  EXPECT_EQ(batch(), 256u); // 400 operations of 64 ns by that clock
}

TEST_F(Engine, ABetterClockNeedsFewerOperations) {
  run.script.cost_ns = [](std::uint64_t) { return 100; };
  run.quality = {0.25, 0.25};
  measure();
  EXPECT_EQ(batch(), 2u);
}

TEST_F(Engine, SlowOperationsAreSampledOneByOne) {
  run.script.cost_ns = [](std::uint64_t) { return 50 * ms; };
  const Stats stats = measure();
  EXPECT_EQ(batch(), 1u);
  EXPECT_EQ(stats.n, 5u);
  EXPECT_DOUBLE_EQ(*stats.p50, 50000);
}

TEST_F(Engine, OperationsWithoutTimeEnd) {
  run.script.cost_ns = [](std::uint64_t) { return 0; };
  run.effort.iterations = 10;
  const Stats stats = measure();
  EXPECT_EQ(stats.n, 10u);
  EXPECT_DOUBLE_EQ(*stats.max, 0);
  EXPECT_FALSE(row().rate_Mops);
}

TEST_F(Engine, WarmUpLastsUntilTimesSettleAndIsNotCounted) {
  run.script.cost_ns = [](std::uint64_t number) { return number < 4 ? 5 * ms : ms; };
  const Stats stats = measure();
  EXPECT_DOUBLE_EQ(*stats.max, 1000);
  EXPECT_GT(stats.n, 100u);
}

TEST_F(Engine, AColdStartDoesNotMakeBatchesTooSmall) {
  run.script.cost_ns = [](std::uint64_t number) { return number == 0 ? 10 * ms : 100; };
  measure();
  EXPECT_EQ(batch(), 256u);
}

TEST_F(Engine, BatchesAreLongEnoughForTheLastSampleThatCalibrates) {
  // Two interrupted samples, then the confirming one.
  run.script.cost_ns = [](std::uint64_t number) { return number < 2 ? 10 * ms : 100; };
  run.effort.warmup = 1; // otherwise the warm-up enlarges them
  measure();
  EXPECT_EQ(batch(), 256u);
}

TEST_F(Engine, PercentilesOfAKnownSeries) {
  // 1000 samples: ten times each of 1000, 1010, ... 1990 us, shuffled.
  run.script.cost_ns = [](std::uint64_t number) {
    return ms + 10 * us * static_cast<std::int64_t>(number * 37 % 100);
  };
  run.effort.iterations = 1000;
  run.effort.warmup = 3;
  const Stats stats = measure();
  EXPECT_EQ(stats.n, 1000u);
  EXPECT_DOUBLE_EQ(*stats.min, 1000);
  EXPECT_DOUBLE_EQ(*stats.p50, 1495);
  EXPECT_DOUBLE_EQ(*stats.p90, 1891); // rank 899.1 of 0 .. 999: 0.1 between 1890 and 1900
  EXPECT_NEAR(*stats.p99, 1980.1, 1e-6);
  EXPECT_DOUBLE_EQ(*stats.max, 1990);
  EXPECT_NEAR(*stats.mean, 1495, 1e-9);
  EXPECT_EQ(run.script.iterated, 1003u);
}

TEST_F(Engine, IterationsAreAsManyAsAskedFor) {
  run.script.cost_ns = [](std::uint64_t) { return 100; };
  run.effort.iterations = 1501;
  run.effort.warmup = 5000;
  const Stats stats = measure();
  EXPECT_EQ(stats.n, 20u); // 75 fit; warm-up takes one batch before them
  EXPECT_EQ(batch(), 75u);
  EXPECT_EQ(run.script.iterated, 6501u);
  EXPECT_EQ(run.script.verified, 6501u);
}

TEST_F(Engine, TooFewIterationsForTheClockAreAFinding) {
  run.script.cost_ns = [](std::uint64_t) { return 100; };
  run.effort.iterations = 10;
  const Stats stats = measure();
  EXPECT_EQ(stats.n, 10u);
  EXPECT_EQ(batch(), 1u);
  const std::vector<Finding> findings = run.own_findings();
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].id, "bench-short-samples");
  EXPECT_NE(findings[0].message.find("50.0%"), std::string::npos) << findings[0].message;
}

TEST_F(Engine, ManyIterationsFitTheMemory) {
  run.script.cost_ns = [](std::uint64_t) { return 30 * us; };
  run.effort.iterations = 100000;
  run.effort.warmup = 1;
  const Stats stats = measure();
  EXPECT_EQ(stats.n, 7692u);
  EXPECT_EQ(batch(), 13u); // runs of one iteration, joined; 4 warm-up runs go before them
  EXPECT_DOUBLE_EQ(*stats.p50, 30);
  EXPECT_EQ(run.script.iterated, 100003u); // three to calibrate
}

TEST_F(Engine, ManyIterationsMakeNoLongRuns) {
  // The others wait while one PE runs: for less than their deadline, whatever -n is.
  std::uint64_t longest = 0, begun = 0;
  std::vector<std::string> words;
  run.callbacks.begins = [&](const std::string& text) { words.push_back(text); };
  run.script.cost_ns = [](std::uint64_t) { return 100 * ms; };
  run.script.before_iterate = [&](const Point&) {
    longest = std::max(longest, run.script.iterated - begun);
    begun = run.script.iterated;
  };
  run.effort.iterations = 20000; // more than the memory holds, 33 minutes
  run.effort.warmup = 50;
  const Stats stats = measure();
  EXPECT_EQ(longest, 1u);
  EXPECT_EQ(run.script.iterated, 20050u);
  EXPECT_EQ(stats.n, 6666u);
  EXPECT_EQ(batch(), 3u);
  // The observer of the deadline is notified.
  EXPECT_GT(words.size(), 1000u);
  EXPECT_NE(words[2].find("warm-up: "), std::string::npos) << words[2];
  EXPECT_NE(words.back().find(" of 6666 samples"), std::string::npos) << words.back();
}

TEST_F(Engine, ALongDurationMakesNoLongRuns) {
  std::uint64_t longest = 0, begun = 0;
  run.script.cost_ns = [](std::uint64_t) { return 10 * ms; };
  run.script.before_iterate = [&](const Point&) {
    longest = std::max(longest, run.script.iterated - begun);
    begun = run.script.iterated;
  };
  run.effort.duration_s = 20000; // 5 s for each of 4096 samples
  run.effort.warmup = 1;
  const Stats stats = measure();
  EXPECT_LE(longest, 128u); // 1 s, in powers of two
  EXPECT_LE(stats.n, 8192u);
  // Where an odd number of samples is joined in pairs, the last one is dropped.
  EXPECT_GE(static_cast<double>(stats.n * batch()) * 0.01, 20000 * 0.999);
  EXPECT_DOUBLE_EQ(*stats.max, 10000);
}

TEST_F(Engine, DurationIsKept) {
  run.script.cost_ns = [](std::uint64_t) { return us; };
  run.effort.duration_s = 2;
  run.effort.warmup = 1;
  const Stats stats = measure();
  const double sampled_s = static_cast<double>(stats.n * batch()) * 1e-6;
  EXPECT_GE(sampled_s, 2);
  EXPECT_LE(sampled_s, 2.2);
  EXPECT_DOUBLE_EQ(*stats.max, 1);
  EXPECT_GE(stats.n, 1000u);
}

TEST_F(Engine, ADurationSaysItsWorstWindow) {
  // A link that is slower for a fraction of a second moves no median, and is what one looks for.
  run.metric = Metric::bandwidth;
  run.script.bytes = 1000;
  const auto slow = [&] { return run.clock.now_ns() > 900 * ms && run.clock.now_ns() < 1200 * ms; };
  run.script.cost_ns = [&](std::uint64_t) { return slow() ? 10 * us : us; };
  run.effort.duration_s = 2;
  run.effort.warmup = 1;
  measure();
  ASSERT_TRUE(row().windows.has_value());
  EXPECT_NEAR(row().windows->length_s, 0.01, 0.001); // as long as operations are fast
  EXPECT_GE(row().windows->count, 100u);
  EXPECT_NEAR(row().windows->max_us.value_or(0), 10, 0.5);
  EXPECT_NEAR(row().windows->min_GBps.value_or(0), 0.1, 0.005);
  EXPECT_NEAR(row().bandwidth_GBps.value_or(0), 1, 1e-9);
  run.effort.duration_s = 0;
  measure();
  EXPECT_FALSE(row().windows.has_value());
}

TEST_F(Engine, WindowsOfALongRunStayAsLong) {
  // From 4096 windows on only the slower of two neighbours is kept; its length does not change.
  run.metric = Metric::bandwidth;
  run.script.bytes = 1000;
  const auto cost_ms = [&] {
    const std::int64_t now_ms = run.clock.now_ns() / ms;
    return now_ms < 1000 ? 2 : now_ms == 100'000 ? 200 : 1;
  };
  run.script.cost_ns = [&](std::uint64_t) { return cost_ms() * ms; };
  run.effort.duration_s = 300;
  run.effort.warmup = 1;
  measure();
  ASSERT_TRUE(row().windows.has_value());
  EXPECT_NEAR(row().windows->length_s, 0.128, 0.001); // 64 operations, as fast as at first
  EXPECT_GT(row().windows->count, 4096u);
  EXPECT_GT(row().windows->max_us.value_or(0), 3000) << "the slowest is never dropped";
}

TEST_F(Engine, AWindowIsAtLeastOneSample) {
  run.metric = Metric::bandwidth;
  run.script.bytes = 1000;
  run.script.cost_ns = [](std::uint64_t) { return ms; };
  run.effort.duration_s = 600; // 0.256 s for each sample
  run.effort.warmup = 1;
  measure();
  ASSERT_TRUE(row().windows.has_value());
  EXPECT_NEAR(row().windows->length_s * static_cast<double>(row().windows->count), 600, 10);
}

TEST_F(Engine, NoiseIsSampledAway) {
  run.script.cost_ns = [](std::uint64_t number) {
    return ms + 10 * us * static_cast<std::int64_t>(number * 7919 % 100);
  };
  run.effort.warmup = 1;
  const std::size_t usual = measure().n;
  run.effort.max_noise = 0.01;
  const std::size_t more = measure().n;
  EXPECT_GT(more, usual);
  EXPECT_LT(more, 8192u);
  EXPECT_TRUE(run.own_findings().empty());
}

TEST_F(Engine, NoiseThatStaysIsAFinding) {
  // If two values are equally frequent, the median is neither.
  run.script.cost_ns = [](std::uint64_t number) {
    return number * 2654435761U % 64 < 32 ? ms : 3 * ms;
  };
  run.effort.warmup = 1;
  run.effort.max_noise = 0.01;
  measure();
  const std::vector<Finding> findings = run.own_findings();
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].id, "bench-noisy");
  EXPECT_NE(findings[0].message.find("--max-noise asks for 1%"), std::string::npos)
      << findings[0].message;
  EXPECT_LT(static_cast<double>(run.clock.now_ns()) * 1e-9, 40) << "15 s, and a round more";
}

TEST_F(Engine, AHistogramHasEverySample) {
  run.script.cost_ns = [](std::uint64_t number) { return number % 4 == 0 ? 4 * ms : ms; };
  run.effort.histogram = true;
  const Stats stats = measure();
  std::size_t count = 0;
  for (const HistogramBin& bin : row().histogram)
    count += bin.count;
  EXPECT_EQ(count, stats.n);
  EXPECT_DOUBLE_EQ(row().histogram.front().from, *stats.min);
  EXPECT_DOUBLE_EQ(row().histogram.back().to, *stats.max);
}

TEST_F(Engine, DurationIsKeptWhenTheCaseGetsFaster) {
  const std::int64_t slow_until_ns = 10 * ms;
  run.script.cost_ns = [&](std::uint64_t) {
    return run.clock.now_ns() < slow_until_ns ? 10 * us : us;
  };
  run.effort.duration_s = 2;
  run.effort.warmup = 1;
  const Stats stats = measure();
  EXPECT_LE(stats.n, 8192u);
  EXPECT_GE(static_cast<double>(run.clock.now_ns()) * 1e-9, 2);
  EXPECT_LE(static_cast<double>(run.clock.now_ns()) * 1e-9, 2.3);
  EXPECT_NEAR(*stats.p50, 1, 1e-9);
  EXPECT_GT(*stats.max, 1);
}

TEST_F(Engine, LongRunsSayWhereTheyAre) {
  std::vector<std::string> words;
  run.callbacks.begins = [&](const std::string& text) { words.push_back(text); };
  run.effort.duration_s = 5;
  measure();
  EXPECT_EQ(words.front(), "bench scripted 8");
  EXPECT_EQ(words.back(), "bench scripted 8, 5 of 5 s");
  EXPECT_GE(words.size(), 20u);
}

TEST_F(Engine, BandwidthRateAndHalfRoundTrips) {
  run.metric = Metric::bandwidth;
  run.script.cost_ns = [](std::uint64_t) { return 40 * us; };
  run.script.bytes = 80000;
  run.script.operations = 4;
  measure();
  EXPECT_DOUBLE_EQ(*row().stats->p50, 10); // per operation
  EXPECT_DOUBLE_EQ(*row().bandwidth_GBps, 2);
  EXPECT_DOUBLE_EQ(*row().rate_Mops, 0.1);
  run.script.operations = 1;
  run.script.divisor = 2;
  EXPECT_DOUBLE_EQ(*measure().p50, 20);
}

TEST_F(Engine, TheWindowIsTheOneThatTheCaseHas) {
  run.points.front().window = 64;
  run.script.multiple = 2; // what fits
  measure();
  EXPECT_EQ(row().params.value("window", 0), 2);
  run.script.multiple = 1;
  measure();
  EXPECT_FALSE(row().params.contains("window"));
}

TEST_F(Engine, TheReferenceIsTimedBesideTheSamples) {
  run.script.cost_ns = [](std::uint64_t) { return 100 * us; };
  run.script.reference_ns = [](std::uint64_t) { return 80 * us; };
  measure();
  EXPECT_DOUBLE_EQ(row().link_fraction.value_or(0), 0.8);
  EXPECT_EQ(row().limited_by.value_or(""), "memcpy of the same size");
  EXPECT_GT(run.script.references, row().stats->n); // warm-up too
}

TEST_F(Engine, WhatSlowsBothDownDoesNotChangeTheShare) {
  // The machine is four times slower for half of the time.
  const auto slower = [&](std::int64_t ns) {
    return run.clock.now_ns() / (3 * ms) % 2 == 0 ? ns : 4 * ns;
  };
  run.script.cost_ns = [&](std::uint64_t) { return slower(100 * us); };
  run.script.reference_ns = [&](std::uint64_t) { return slower(80 * us); };
  measure();
  EXPECT_DOUBLE_EQ(row().link_fraction.value_or(0), 0.8);
}

TEST_F(Engine, DriftIsFound) {
  run.effort.iterations = 200;
  run.effort.warmup = 20;
  run.script.cost_ns = [](std::uint64_t number) { return number < 120 ? 1000 * us : 1100 * us; };
  measure();
  const std::vector<Finding> findings = run.own_findings();
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].id, "bench-drift");
  EXPECT_NE(findings[0].message.find("+10.0%"), std::string::npos) << findings[0].message;
}

TEST_F(Engine, AnEvenSlopeIsDriftToo) {
  run.effort.iterations = 200;
  run.effort.warmup = 1;
  run.script.cost_ns = [](std::uint64_t number) {
    return ms + 2 * us * static_cast<std::int64_t>(number);
  };
  measure();
  ASSERT_EQ(run.own_findings().size(), 1u);
  EXPECT_EQ(run.own_findings()[0].id, "bench-drift");
}

TEST_F(Engine, SpreadIsNoDrift) {
  run.effort.iterations = 200;
  run.effort.warmup = 1;
  run.script.cost_ns = [](std::uint64_t number) {
    return ms + us * static_cast<std::int64_t>(number * 7919 % 300);
  };
  measure();
  EXPECT_TRUE(run.own_findings().empty());
}

TEST_F(Engine, AWrongByteFailsTheRow) {
  run.script.verify = [](int pe) {
    return WrongByte{pe, 17, 0x2a, 0xa5, "slot 3 of iteration 17 from PE 0"};
  };
  measure();
  EXPECT_EQ(row().verified, Verified::failed);
  EXPECT_EQ(row().status, RowStatus::fail);
  const std::string wanted =
      "PE 0, offset 17: expected 0x2a, found 0xa5 (slot 3 of iteration 17 from PE 0)";
  EXPECT_EQ(row().reason, wanted);
  EXPECT_TRUE(row().stats.has_value()); // results measured so far are kept
  ASSERT_EQ(run.own_findings().size(), 1u);
  EXPECT_EQ(run.own_findings()[0].id, "bench-corrupt");
  EXPECT_EQ(run.own_findings()[0].severity, Severity::error);
  EXPECT_NE(run.own_findings()[0].message.find(wanted), std::string::npos);
  EXPECT_EQ(run.script.verified, run.script.iterated);
  EXPECT_TRUE(any_failed(job.runtime(), run.rows));
}

TEST_F(Engine, WhatIsNotVerifiedSaysWhy) {
  run.script.unverified = "there is no data";
  measure();
  EXPECT_EQ(row().verified, Verified::unchecked);
  EXPECT_EQ(row().reason, "there is no data");
  EXPECT_EQ(run.script.verified, 0u);
  run.script.unverified.clear();
  run.effort.verify = false;
  measure();
  EXPECT_EQ(row().verified, Verified::unchecked);
  EXPECT_EQ(row().reason, "verification is switched off");
  EXPECT_FALSE(any_failed(job.runtime(), run.rows));
}

TEST_F(Engine, WhatCannotRunIsSkippedWithAReason) {
  run.script.cannot_run = "PE 0 is far away";
  measure();
  EXPECT_EQ(row().status, RowStatus::skip);
  EXPECT_EQ(row().reason, "PE 0: PE 0 is far away");
  EXPECT_FALSE(row().stats);
  run.script.cannot_run.clear();
  run.script.measures = [](int) { return false; };
  measure();
  EXPECT_EQ(row().status, RowStatus::skip);
  EXPECT_EQ(row().reason, "no PE measures at this point");
}

TEST_F(Engine, EachPointStartsWithZeroedMemoryAndIsReportedWhenDone) {
  run.points.assign(3, Point(run.points.front()));
  run.points[1].size_bytes = 16;
  run.points[2].size_bytes = 32;
  std::vector<std::size_t> rows;
  run.callbacks.done = [&](const std::vector<ResultRow>& so_far) { rows.push_back(so_far.size()); };
  measure();
  EXPECT_TRUE(run.script.zeroed);
  EXPECT_EQ(rows, (std::vector<std::size_t>{1, 2, 3}));
  EXPECT_EQ(run.rows[2].params["size_bytes"], 32);
}

TEST_F(Engine, AnErrorInTheMiddleLeavesTheRowsBefore) {
  run.points.assign(3, Point(run.points.front()));
  run.points[2].size_bytes = 4096;
  std::vector<ResultRow> seen;
  run.callbacks.done = [&](const std::vector<ResultRow>& so_far) { seen = so_far; };
  run.script.before_iterate = [](const Point& point) {
    if (point.size_bytes == 4096)
      throw Error(ExitCode::unavailable, "link", "put", "it broke", "replace it");
  };
  EXPECT_THROW(run.run(job.runtime()), Error);
  EXPECT_EQ(seen.size(), 2u);
}

TEST_F(Engine, MemoryGoesBackToTheHeap) {
  run.script.memory_bytes = 3 << 20;
  run.effort.iterations = 1;
  for (int i = 0; i < 400; ++i) // more than the heap has, together
    measure();
}

} // namespace
} // namespace shmemctl::bench
