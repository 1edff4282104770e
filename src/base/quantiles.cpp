#include "src/base/quantiles.h"

#include <algorithm>
#include <cmath>

namespace shmemctl {

double quantile(const std::vector<double>& sorted, double fraction) {
  const double rank = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(rank);
  if (below + 1 >= sorted.size())
    return sorted.back();
  const double share = rank - static_cast<double>(below);
  return sorted[below] + share * (sorted[below + 1] - sorted[below]);
}

double median(std::vector<double> samples) {
  if (samples.empty())
    return 0;
  std::sort(samples.begin(), samples.end());
  return quantile(samples, 0.5);
}

double median_deviation(const std::vector<double>& samples) {
  const double middle = median(samples);
  std::vector<double> distances;
  distances.reserve(samples.size());
  for (const double sample : samples)
    distances.push_back(std::abs(sample - middle));
  return 1.4826 * median(std::move(distances));
}

} // namespace shmemctl
