// Quantiles of samples.
#pragma once

#include <vector>

namespace shmemctl {

/// Between the closest ranks, linearly (rank 1 + (n - 1) * fraction), as numpy and R do by default.
/// `sorted` must not be empty; fraction from 0 to 1.
double quantile(const std::vector<double>& sorted, double fraction);
/// 0 for no samples.
double median(std::vector<double> samples);
/// 1.4826 * median distance from the median: the standard deviation of a normal distribution, but
/// outliers do not move it. 0 for no samples.
double median_deviation(const std::vector<double>& samples);

} // namespace shmemctl
