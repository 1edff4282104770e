// Quantiles, and the comparison of two samples.
#pragma once

#include <cstddef>
#include <vector>

namespace shmemctl {

/// Linear interpolation between the closest ranks (rank 1 + (n - 1) * fraction), numpy's and R's
/// default. `sorted` must not be empty; fraction from 0 to 1.
double quantile(const std::vector<double>& sorted, double fraction);
/// 0 for no samples.
double median(std::vector<double> samples);
/// A normal distribution's standard deviation, in units of its median distance from the median.
inline constexpr double mad_to_sigma = 1.4826;
/// Standard error of a normal distribution's median, as a multiple of that of its mean.
inline constexpr double median_error_factor = 1.2533;
/// 1.4826 * median absolute deviation: estimates the standard deviation of a normal distribution,
/// robust against outliers. 0 for no samples.
double median_deviation(const std::vector<double>& samples);

/// The shift between two samples, and its significance.
struct Shift {
  double estimate = 0;      ///< second minus first
  double low = 0, high = 0; ///< confidence interval of the estimate
  double p = 1;             ///< two-sided p-value of the shift
};

/// Mann and Whitney's rank test, two-sided, with Hodges and Lehmann's shift (the median of all
/// differences) and Moses' interval for it. The p-value is exact if both sets have at most
/// `exact_rank_test` numbers and no ties; otherwise it is the normal approximation with corrections
/// for ties and continuity. Both sets must be sorted and contain at least five numbers.
Shift rank_shift(const std::vector<double>& first, const std::vector<double>& second,
                 double confidence);
inline constexpr std::size_t exact_rank_test = 20;
inline constexpr std::size_t fewest_for_rank_test = 5;

/// Student's t-test with a common variance, which also compares one number with many. Needs at
/// least three numbers together, and one in each set.
Shift student_shift(const std::vector<double>& first, const std::vector<double>& second,
                    double confidence);

/// The summary of a set of samples that were not kept.
struct MeanAndSpread {
  double n = 0, mean = 0, stddev = 0;
};
/// Welch's t-test on the logarithm of the mean, whose error is derived from the spread. Means must
/// be positive, and n at least 2.
Shift welch_log_shift(const MeanAndSpread& first, const MeanAndSpread& second, double confidence);

/// Corrects the p-values of a whole family of tests (Holm's step-down): the chance of any false
/// alarm in the family is below alpha if values below alpha are reported.
std::vector<double> holm_adjusted(const std::vector<double>& p);

} // namespace shmemctl
