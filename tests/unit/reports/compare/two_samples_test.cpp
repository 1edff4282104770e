// Against values of SciPy 1.10 and of the literature, and against counting every arrangement.
#include "src/base/statistics.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <random>

namespace shmemctl {
namespace {

std::vector<double> sorted(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values;
}

/// Two waves, as the SciPy values below had them.
std::vector<double> wave(int count, double step, double start, double slope) {
  std::vector<double> values;
  for (int i = 0; i < count; ++i)
    values.push_back(std::sin(i * step) + start + slope * i);
  return values;
}

TEST(RankShift, HollanderAndWolfe) {
  // Permeability of the human chorioamnion: W = 35, two-sided p = 0.2544, shift 0.305.
  const Shift shift =
      rank_shift(sorted({0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46}),
                 sorted({1.15, 0.88, 0.90, 0.74, 1.21}), 0.95);
  EXPECT_NEAR(shift.p, 0.2544122544122544, 1e-12);
  EXPECT_NEAR(shift.estimate, -0.305, 2e-7);
  EXPECT_LT(shift.low, -0.305);
  EXPECT_GT(shift.high, -0.305);
}

TEST(RankShift, ExactAndApproximateProbabilitiesAreSciPys) {
  const auto first = wave(30, 1.7, 0, 0.01), second = wave(25, 2.3, 0.5, 0.013);
  const Shift shift = rank_shift(sorted(first), sorted(second), 0.95);
  EXPECT_NEAR(shift.p, 0.014586099490464417, 1e-12);
  EXPECT_NEAR(shift.estimate, 0.4951839962970044, 2e-7);
  EXPECT_NEAR(shift.low, 0.15098560428517604, 2e-7);
  EXPECT_NEAR(shift.high, 0.8840747337547404, 2e-7);
  const Shift exact = rank_shift(sorted({first.begin(), first.begin() + 20}),
                                 sorted({second.begin(), second.begin() + 18}), 0.95);
  EXPECT_NEAR(exact.p, 0.03825324166613624, 1e-12);
}

TEST(RankShift, TiesAreCorrectedFor) {
  const Shift shift =
      rank_shift({1, 2, 2, 3, 3, 3, 4, 5, 5, 6}, {3, 4, 4, 5, 6, 6, 7, 7, 8, 9, 9, 10}, 0.95);
  EXPECT_NEAR(shift.p, 0.003478237891742154, 1e-12);
  const std::vector<double> same(7, 2.5);
  const Shift none = rank_shift(same, same, 0.95);
  EXPECT_EQ(none.p, 1);
  EXPECT_EQ(none.estimate, 0);
}

/// The probability by trying every choice of ranks for the first set.
double by_counting(const std::vector<double>& first, const std::vector<double>& second) {
  std::vector<double> all(first);
  all.insert(all.end(), second.begin(), second.end());
  std::sort(all.begin(), all.end());
  const auto pairs_of = [&](const std::vector<bool>& is_first) {
    double pairs = 0, firsts = 0;
    for (std::size_t i = 0; i < all.size(); ++i)
      (is_first[i] ? firsts : pairs) += is_first[i] ? 1 : firsts;
    return pairs;
  };
  std::vector<bool> actual;
  for (const double value : all)
    actual.push_back(std::find(first.begin(), first.end(), value) != first.end());
  const double middle = static_cast<double>(first.size() * second.size()) / 2;
  const double distance = std::abs(pairs_of(actual) - middle);
  std::vector<bool> choice(all.size(), false);
  std::fill(choice.end() - static_cast<std::ptrdiff_t>(first.size()), choice.end(), true);
  double extreme = 0, total = 0;
  do {
    ++total;
    extreme += std::abs(pairs_of(choice) - middle) >= distance ? 1 : 0;
  } while (std::next_permutation(choice.begin(), choice.end()));
  return extreme / total;
}

TEST(RankShift, ProbabilityIsThatOfAllArrangements) {
  std::mt19937 random(7);
  std::normal_distribution<double> noise;
  for (int i = 0; i < 30; ++i) {
    std::vector<double> first(5 + random() % 3), second(5 + random() % 3);
    for (double& value : first)
      value = noise(random);
    for (double& value : second)
      value = noise(random) + i % 4;
    EXPECT_NEAR(rank_shift(sorted(first), sorted(second), 0.95).p,
                std::min(1.0, by_counting(first, second)), 1e-12);
  }
}

TEST(RankShift, SwappingTheSetsTurnsTheShiftAround) {
  const auto first = sorted(wave(12, 1.1, 0, 0.1)), second = sorted(wave(9, 0.7, 0.4, 0));
  const Shift there = rank_shift(first, second, 0.95), back = rank_shift(second, first, 0.95);
  EXPECT_NEAR(there.estimate, -back.estimate, 2e-7);
  EXPECT_NEAR(there.low, -back.high, 2e-7);
  EXPECT_NEAR(there.high, -back.low, 2e-7);
  EXPECT_DOUBLE_EQ(there.p, back.p);
}

TEST(RankShift, FarApartAndHugeSets) {
  std::vector<double> first, second;
  for (int i = 0; i < 200000; ++i) {
    first.push_back(i);
    second.push_back(i + 1e6);
  }
  const Shift shift = rank_shift(first, second, 0.95);
  EXPECT_NEAR(shift.estimate, 1e6, 1);
  EXPECT_GE(shift.p, 0);
  EXPECT_LT(shift.p, 1e-300);
}

/// The rank-th smallest difference by its definition: the range is halved by counting all pairs.
double halved(const std::vector<double>& first, const std::vector<double>& second, double rank) {
  const auto up_to = [&](double limit) {
    double count = 0;
    for (const double a : first)
      for (const double b : second)
        count += b - a <= limit ? 1 : 0;
    return count;
  };
  double low = second.front() - first.back(), high = second.back() - first.front();
  if (up_to(low) >= rank)
    return low;
  while (high - low > 1e-7 * std::max({1.0, std::abs(low), std::abs(high)})) {
    const double middle = low + (high - low) / 2;
    (up_to(middle) >= rank ? high : low) = middle;
  }
  return high;
}

TEST(RankShift, ShortCutsChangeNoBit) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 60; ++round) {
    std::vector<double> first(1 + random() % 40), second(1 + random() % 40);
    std::normal_distribution<double> noise(round % 3, 0.1);
    const bool ties = round % 4 == 0; // as a clock of coarse steps gives them
    for (std::vector<double>* side : {&first, &second}) {
      for (double& value : *side)
        value = ties ? std::round(noise(random) * 20) / 20 : noise(random);
      std::sort(side->begin(), side->end());
    }
    const Shift shift = rank_shift(first, second, 0.95);
    const auto n = static_cast<double>(first.size()), m = static_cast<double>(second.size());
    const double pairs = n * m;
    const double skipped = std::max(
        1.0, std::floor(pairs / 2 - 1.959963984540054 * std::sqrt(pairs * (n + m + 1) / 12)));
    EXPECT_EQ(shift.low, halved(first, second, skipped)) << round;
    EXPECT_EQ(shift.high, halved(first, second, pairs - skipped + 1)) << round;
    EXPECT_EQ(shift.estimate, (halved(first, second, std::floor((pairs + 1) / 2)) +
                               halved(first, second, std::ceil((pairs + 1) / 2))) /
                                  2)
        << round;
  }
}

TEST(StudentShift, SleepData) {
  const Shift shift = student_shift({0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0},
                                    {1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4}, 0.95);
  EXPECT_NEAR(shift.p, 0.07918671421593829, 1e-12);
  EXPECT_NEAR(shift.estimate, 1.58, 1e-12);
  EXPECT_NEAR(shift.low, -0.203874, 1e-6); // as R's t.test(var.equal = TRUE) prints it
  EXPECT_NEAR(shift.high, 3.363874, 1e-6);
}

TEST(StudentShift, OneAgainstMany) {
  const Shift shift = student_shift({1.0, 1.1, 0.9, 1.05}, {1.3}, 0.95);
  EXPECT_NEAR(shift.estimate, 0.2875, 1e-12);
  EXPECT_NEAR(shift.low, -0.0163291893562017, 1e-9);
  EXPECT_GT(shift.p, 0.05); // as the interval holds zero
  const Shift equal = student_shift({2, 2}, {2}, 0.95);
  EXPECT_EQ(equal.p, 1);
  const Shift exact = student_shift({2, 2}, {3}, 0.95);
  EXPECT_EQ(exact.p, 0);
}

TEST(WelchLogShift, IsSciPysOnTheLogarithms) {
  const Shift shift = welch_log_shift({50, 10, 1}, {50, 11, 1.2}, 0.95);
  EXPECT_NEAR(shift.estimate, std::log(1.1), 1e-12);
  EXPECT_NEAR(shift.p, 1.5261943805510895e-05, 1e-14);
  EXPECT_NEAR(shift.low, 0.05377365852256593, 1e-10);
}

TEST(Holm, AsRsPAdjust) {
  const std::vector<double> adjusted = holm_adjusted({0.05, 0.01, 0.03, 0.02, 0.04});
  const std::vector<double> expected{0.09, 0.05, 0.09, 0.08, 0.09};
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(adjusted[i], expected[i], 1e-15);
  EXPECT_TRUE(holm_adjusted({}).empty());
  EXPECT_EQ(holm_adjusted({0.9, 0.8}).front(), 1);
}

} // namespace
} // namespace shmemctl
