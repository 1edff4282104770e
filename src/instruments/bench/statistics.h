// Summaries of samples.
#pragma once

#include <cstddef>
#include <vector>

#include "reports/report.h"
#include "src/base/statistics.h"

namespace shmemctl::bench {

/// Count, mean and standard deviation of numbers in one pass (Welford 1962; Chan, Golub and LeVeque
/// 1979 for the merge). Accurate even if the mean is huge compared with the spread.
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

/// The most samples that a row keeps for comparisons.
inline constexpr std::size_t max_kept_samples = 100;
/// The samples for the row's `samples`: all of them or max_kept_samples of them at even distances,
/// ordered by PE, then by time, and rounded to six digits.
std::vector<double> kept_samples(const std::vector<std::vector<double>>& samples_by_pe);

/// How well the median is known: half the width of its 95 % confidence interval (by ranks), as a
/// share of the median. 1 for fewer than six samples, which are too few for such an interval, and
/// for a median of 0; 0 without samples.
double median_error(std::vector<double> samples);

/// A histogram of all samples: at most 20 bins from the smallest sample to the largest, whose
/// widths grow by a constant factor.
std::vector<HistogramBin> histogram_of(const std::vector<std::vector<double>>& samples_by_pe);

/// p99 needs 100 samples, p99.9 needs 1000, stddev and mad need two. Throws Error (unavailable) for
/// a sample that is not finite, because no clock gives one.
Stats stats_of(const std::vector<double>& samples);
/// Statistics of the samples of all PEs together.
Stats stats_of(const std::vector<std::vector<double>>& samples_by_pe);

} // namespace shmemctl::bench
