// Summaries of samples.
#pragma once

#include <cstddef>
#include <vector>

#include "reports/report.h"
#include "src/base/statistics.h"

namespace shmemctl::bench {

/// Count, mean and spread of numbers that are seen once (Welford 1962; Chan, Golub and LeVeque 1979
/// for the merge): right also where the mean is huge against the spread.
class Moments {
public:
  void add(double value);
  void merge(const Moments& other);

  std::size_t count() const { return count_; }
  double mean() const { return mean_; }
  /// The sample's standard deviation (divided by n - 1); 0 for fewer than two numbers.
  double stddev() const;

private:
  std::size_t count_ = 0;
  double mean_ = 0, squares_ = 0; ///< squares_: sum of squared distances from the mean
};

using shmemctl::median;
using shmemctl::median_deviation;
using shmemctl::quantile;

/// A row keeps at most this many samples for comparisons.
inline constexpr std::size_t max_kept_samples = 100;
/// Samples for the row's `samples`: all of them, or max_kept_samples evenly spaced ones, ordered by
/// PE, then by time, and rounded to six digits.
std::vector<double> kept_samples(const std::vector<std::vector<double>>& samples_by_pe);

/// How well the median is known: half its 95 % confidence interval by ranks, as a share of it. 1
/// for fewer than six samples, of which no rank bounds it so surely, or a median of 0; 0 without
/// any.
double median_error(std::vector<double> samples);

/// All samples by their values: at most 20 bins, each as many times as long as the one before,
/// from the smallest sample to the largest.
std::vector<HistogramBin> histogram_of(const std::vector<std::vector<double>>& samples_by_pe);

/// p99 from 100 samples, p99.9 from 1000, stddev and mad from two. Throws Error (unavailable) for a
/// sample that is not finite: no clock gives one.
Stats stats_of(const std::vector<double>& samples);
/// Statistics of the samples of all PEs together.
Stats stats_of(const std::vector<std::vector<double>>& samples_by_pe);

} // namespace shmemctl::bench
