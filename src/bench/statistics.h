// Summaries of samples.
#pragma once

#include <cstddef>
#include <vector>

#include "reports/report.h"

namespace shmemctl::bench {

/// Count, mean and spread of numbers that are seen once (Welford 1962; Chan, Golub and LeVeque 1979
/// for the merge): right also where the mean is huge against the spread.
class Moments {
public:
  void add(double value);
  void merge(const Moments& other);

  std::size_t count() const { return count_; }
  double mean() const { return mean_; }
  /// Of a sample (divided by n - 1); 0 for fewer than two numbers.
  double stddev() const;

private:
  std::size_t count_ = 0;
  double mean_ = 0, squares_ = 0; ///< squares_: sum of squared distances from the mean
};

/// Between the closest ranks, linearly (rank 1 + (n - 1) * fraction), as numpy and R do by default.
/// `sorted` must not be empty; fraction from 0 to 1.
double quantile(const std::vector<double>& sorted, double fraction);
/// 0 for no samples.
double median(std::vector<double> samples);
/// 1.4826 * median distance from the median: the standard deviation of a normal distribution, but
/// outliers do not move it. 0 for no samples.
double median_deviation(const std::vector<double>& samples);

/// p99 from 100 samples, stddev and mad from two. Throws Error (unavailable) for a sample that is
/// not finite: no clock gives one.
Stats stats_of(const std::vector<double>& samples);
/// Of all PEs' samples as one.
Stats stats_of(const std::vector<std::vector<double>>& samples_by_pe);

} // namespace shmemctl::bench
