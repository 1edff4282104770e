#include "src/instruments/bench/statistics.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>

#include "tests/support/expect_error.h"

namespace shmemctl::bench {
namespace {

TEST(Statistics, OneToTen) {
  std::vector<double> samples;
  for (int i = 10; i >= 1; --i)
    samples.push_back(i);
  const Stats stats = stats_of(samples);
  EXPECT_EQ(stats.n, 10u);
  EXPECT_DOUBLE_EQ(*stats.min, 1);
  EXPECT_DOUBLE_EQ(*stats.max, 10);
  EXPECT_DOUBLE_EQ(*stats.p50, 5.5);
  EXPECT_DOUBLE_EQ(*stats.p90, 9.1); // numpy.percentile(range(1, 11), 90)
  EXPECT_FALSE(stats.p99.has_value());
  EXPECT_DOUBLE_EQ(*stats.mean, 5.5);
  EXPECT_NEAR(*stats.stddev, 3.0276503540974917, 1e-15);
  EXPECT_NEAR(*stats.mad, 1.4826 * 2.5, 1e-15);
}

TEST(Statistics, PercentileNinetyNineTakesAHundredSamples) {
  std::vector<double> samples;
  for (int i = 1; i <= 99; ++i)
    samples.push_back(i);
  EXPECT_FALSE(stats_of(samples).p99.has_value());
  samples.push_back(100);
  EXPECT_DOUBLE_EQ(*stats_of(samples).p99, 99.01);
}

TEST(Statistics, PercentileNinetyNinePointNineTakesAThousandSamples) {
  std::vector<double> samples;
  for (int i = 1; i <= 999; ++i)
    samples.push_back(i);
  EXPECT_FALSE(stats_of(samples).p999.has_value());
  samples.push_back(1000);
  EXPECT_NEAR(*stats_of(samples).p999, 999.001, 1e-9);
}

TEST(Statistics, TheErrorOfAMedianShrinksWithTheRootOfTheNumber) {
  const auto error_of = [](int n) {
    std::mt19937 random(1);
    std::uniform_real_distribution<double> spread(0.5, 1.5);
    std::vector<double> samples;
    for (int i = 0; i < n; ++i)
      samples.push_back(spread(random));
    return median_error(samples);
  };
  // The density at the median is 1: a standard error of 1 / (2 sqrt(n)).
  EXPECT_NEAR(error_of(10000), 1.96 / 2 / 100, 0.002);
  EXPECT_NEAR(error_of(100), 1.96 / 2 / 10, 0.05);
  EXPECT_EQ(median_error({}), 0);
  EXPECT_EQ(median_error({1, 1, 1}), 1) << "too few to say";
  EXPECT_EQ(median_error(std::vector<double>(20, 7)), 0);
}

TEST(Statistics, AHistogramsBinsGrowByOneFactor) {
  const std::vector<HistogramBin> bins = histogram_of({{1, 1, 1024}, {31, 33}});
  ASSERT_EQ(bins.size(), 20u); // 2^10 in 20 bins: the square root of two each
  EXPECT_DOUBLE_EQ(bins[0].from, 1);
  EXPECT_EQ(bins[0].count, 2u);
  EXPECT_NEAR(bins[10].from, 32, 1e-9);
  EXPECT_EQ(bins[9].count, 1u);
  EXPECT_EQ(bins[10].count, 1u);
  EXPECT_DOUBLE_EQ(bins[19].to, 1024);
  EXPECT_EQ(bins[19].count, 1u) << "the largest sample is in the last bin";
  EXPECT_EQ(histogram_of({{2, 2}}).size(), 1u);
  EXPECT_TRUE(histogram_of({{}, {}}).empty());
}

TEST(Statistics, OneSampleHasNoSpread) {
  const Stats stats = stats_of(std::vector<double>{3});
  EXPECT_EQ(stats.n, 1u);
  for (const auto& value : {stats.min, stats.p50, stats.p90, stats.max, stats.mean})
    EXPECT_DOUBLE_EQ(value.value(), 3);
  EXPECT_FALSE(stats.p99.has_value());
  EXPECT_FALSE(stats.stddev.has_value());
  EXPECT_FALSE(stats.mad.has_value());
}

TEST(Statistics, NoSamplesHaveNothing) {
  const Stats stats = stats_of(std::vector<double>{});
  EXPECT_EQ(stats.n, 0u);
  EXPECT_FALSE(stats.min || stats.p50 || stats.mean || stats.mad);
}

TEST(Statistics, TiesHaveNoSpreadAndTheirOwnMean) {
  const double value = 0.1; // 0.1 has no exact sums
  const Stats stats = stats_of(std::vector<double>(1000, value));
  for (const auto& each : {stats.min, stats.p50, stats.p90, stats.p99, stats.max, stats.mean})
    EXPECT_EQ(each.value(), value);
  EXPECT_EQ(stats.stddev.value(), 0);
  EXPECT_EQ(stats.mad.value(), 0);
}

TEST(Statistics, AHugeOffsetTakesNothingFromTheSpread) {
  // The sum of squares minus the square of the sum has no correct digit left here.
  std::vector<double> samples;
  for (int i = 0; i < 1000; ++i)
    samples.push_back(1e9 + (i % 2 == 0 ? 0.25 : -0.25));
  const Stats stats = stats_of(samples);
  EXPECT_NEAR(*stats.stddev, 0.25 * std::sqrt(1000.0 / 999), 1e-9);
  EXPECT_NEAR(*stats.mean, 1e9, 1e-6);
}

TEST(Statistics, TimesBelowAMicrosecondKeepTheirSpread) {
  const Stats stats = stats_of(std::vector<double>{0.001, 0.002, 0.003});
  EXPECT_NEAR(*stats.stddev, 0.001, 1e-15);
}

TEST(Statistics, OutliersDoNotMoveTheMad) {
  std::vector<double> samples(1000);
  std::mt19937 random(7);
  std::normal_distribution<double> normal(10, 1);
  std::generate(samples.begin(), samples.end(), [&] { return normal(random); });
  for (int i = 0; i < 10; ++i)
    samples[static_cast<std::size_t>(i)] = 1e6;
  const Stats stats = stats_of(samples);
  EXPECT_NEAR(*stats.mad, 1, 0.15);
  EXPECT_NEAR(*stats.p50, 10, 0.15);
  EXPECT_GT(*stats.stddev, 1000);
}

TEST(Statistics, AMillionSamplesOfManyPes) {
  std::mt19937_64 random(11);
  std::uniform_real_distribution<double> uniform(100, 101);
  std::vector<std::vector<double>> by_pe(16);
  std::vector<double> all;
  long double sum = 0;
  for (std::size_t i = 0; i < 1000000; ++i) {
    const double sample = uniform(random);
    by_pe[i * i % 16].push_back(sample); // some PEs have none
    all.push_back(sample);
    sum += static_cast<long double>(sample);
  }
  const double mean = static_cast<double>(sum / 1000000);
  long double squares = 0;
  for (const double sample : all)
    squares += static_cast<long double>(sample - mean) * static_cast<long double>(sample - mean);
  const Stats stats = stats_of(by_pe);
  EXPECT_EQ(stats.n, 1000000u);
  EXPECT_NEAR(*stats.mean, mean, 1e-10);
  EXPECT_NEAR(*stats.stddev, std::sqrt(static_cast<double>(squares / 999999)), 1e-10);
  std::sort(all.begin(), all.end());
  EXPECT_EQ(*stats.min, all.front());
  EXPECT_EQ(*stats.max, all.back());
  EXPECT_DOUBLE_EQ(*stats.p50, (all[499999] + all[500000]) / 2);
  EXPECT_NEAR(*stats.p99, 100.99, 0.001);
}

TEST(Statistics, MergingIsTheSameAsOneRow) {
  Moments left, right, one, empty;
  for (int i = 0; i < 100; ++i) {
    (i < 30 ? left : right).add(i * i);
    one.add(i * i);
  }
  left.merge(empty);
  left.merge(right);
  EXPECT_EQ(left.count(), one.count());
  EXPECT_NEAR(left.mean(), one.mean(), 1e-9);
  EXPECT_NEAR(left.stddev(), one.stddev(), 1e-9);
  empty.merge(one);
  EXPECT_DOUBLE_EQ(empty.stddev(), one.stddev());
}

TEST(Statistics, WhatIsNotFiniteIsRefused) {
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
    EXPECT_THROW(stats_of(std::vector<double>{1, bad}), Error);
}

TEST(KeptSamples, AreAllOrSomeAtEvenDistances) {
  EXPECT_TRUE(kept_samples({}).empty());
  EXPECT_EQ(kept_samples({{1, 2}, {}, {3}}), (std::vector<double>{1, 2, 3}));
  std::vector<double> first, second;
  for (int i = 0; i < 500; ++i) {
    first.push_back(i);
    second.push_back(1000 + i);
  }
  const std::vector<double> kept = kept_samples({first, second});
  ASSERT_EQ(kept.size(), max_kept_samples);
  EXPECT_EQ(kept[0], 5); // the middle of the first ten
  EXPECT_EQ(kept[1], 15);
  EXPECT_EQ(std::count_if(kept.begin(), kept.end(), [](double value) { return value >= 1000; }),
            50);
}

TEST(KeptSamples, HaveSixDigits) {
  EXPECT_EQ(kept_samples({{1.23456789e-5, 123456789, 0, -0.1234565678, 1e-310}}),
            (std::vector<double>{1.23457e-5, 123457000, 0, -0.123457, 1e-310}));
}

} // namespace
} // namespace shmemctl::bench
