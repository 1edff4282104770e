// Simulated noise with fixed seeds: the rates of false alarms and of missed changes.
#include <gtest/gtest.h>

#include "reports/compare/compare.h"
#include "tests/unit/reports/compare/fake_reports.h"

namespace shmemctl {
namespace {

using test::Noise;
using test::report_of;
using test::timed_row;

struct Setting {
  std::size_t rows = 20, samples = 20, runs = 1;
  double spread = 0.05, between_runs = 0;
  int outliers = 0;
};

/// Runs of the same machine, whose times are `factor` times what they were.
std::vector<LoadedReport> side(Noise& noise, const Setting& setting, double factor,
                               const std::string& name) {
  std::vector<LoadedReport> reports;
  for (std::size_t run = 0; run < setting.runs; ++run) {
    std::vector<ResultRow> rows;
    for (std::size_t i = 0; i < setting.rows; ++i)
      rows.push_back(timed_row("put", {{"size_bytes", 8 * (i + 1)}},
                               noise.samples(setting.samples,
                                             factor * (1.0 + static_cast<double>(i)) *
                                                 noise.factor(setting.between_runs),
                                             setting.spread, setting.outliers)));
    reports.push_back(report_of(name + std::to_string(run), std::move(rows)));
  }
  return reports;
}

/// How many of `count` comparisons report any row as worse, if NEW is `factor` times as slow.
int alarms(const Setting& setting, double factor, int count, std::uint64_t seed) {
  Noise noise(seed);
  int called = 0;
  for (int i = 0; i < count; ++i) {
    const auto base = side(noise, setting, 1, "base"), other = side(noise, setting, factor, "new");
    called += compare_reports(base, other, {}).count(RowVerdict::worse) > 0 ? 1 : 0;
  }
  return called;
}

TEST(FalseAlarms, AreFewInAThousandComparisons) {
  const Setting settings[] = {
      {20, 20, 1, 0.05, 0, 0},    // 20 samples of 5% noise
      {20, 20, 1, 0.30, 0, 0},    // noise far above what counts
      {20, 100, 1, 0.10, 0, 10},  // one in ten takes three times as long
      {5, 5, 1, 0.20, 0, 0},      // the fewest samples
      {5, 20, 3, 0.05, 0.10, 0},  // runs that differ by more than the threshold
      {5, 20, 2, 0.05, 0.10, 20}, // the same with two runs
  };
  std::uint64_t seed = 100;
  for (const Setting& setting : settings)
    EXPECT_LE(alarms(setting, 1, 1000, seed++), 50)
        << setting.samples << " samples, spread " << setting.spread << ", " << setting.runs
        << " runs";
}

TEST(FalseAlarms, ChangesBelowTheThresholdAreIgnored) {
  EXPECT_LE(alarms({20, 100, 1, 0.02, 0, 0}, 1.03, 300, 5), 15);
}

TEST(Power, ATenthMoreIsSeenInTwentyNoisySamples) {
  EXPECT_GE(alarms({1, 20, 1, 0.05, 0, 0}, 1.1, 1000, 11), 900);
  EXPECT_GE(alarms({1, 20, 1, 0.05, 0, 20}, 1.1, 1000, 12), 900);
  // Also if the row is one of many, for which p-values are corrected: every row shifts, so each
  // must be found by itself.
  Noise noise(13);
  const Setting setting{50, 20, 1, 0.05, 0, 0};
  std::size_t found = 0;
  for (int i = 0; i < 20; ++i)
    found += compare_reports(side(noise, setting, 1, "base"), side(noise, setting, 1.1, "new"), {})
                 .count(RowVerdict::worse);
  EXPECT_GE(found, 900u) << "of 1000 rows";
}

TEST(Power, ARunOfThreeIsSeenThroughNoiseBetweenRuns) {
  EXPECT_GE(alarms({1, 20, 3, 0.05, 0.01, 0}, 1.1, 300, 21), 270);
}

} // namespace
} // namespace shmemctl
