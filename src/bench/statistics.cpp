#include "src/bench/statistics.h"

#include <algorithm>
#include <cmath>

namespace shmemctl::bench {

void Moments::add(double value) {
  ++count_;
  const double distance = value - mean_;
  mean_ += distance / static_cast<double>(count_);
  squares_ += distance * (value - mean_);
}

void Moments::merge(const Moments& other) {
  if (other.count_ == 0)
    return;
  const auto mine = static_cast<double>(count_), theirs = static_cast<double>(other.count_);
  const double distance = other.mean_ - mean_;
  squares_ += other.squares_ + distance * distance * mine * theirs / (mine + theirs);
  mean_ += distance * theirs / (mine + theirs);
  count_ += other.count_;
}

double Moments::stddev() const {
  return count_ < 2 ? 0 : std::sqrt(squares_ / static_cast<double>(count_ - 1));
}

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

Stats stats_of(const std::vector<double>& samples) {
  return stats_of(std::vector<std::vector<double>>{samples});
}

Stats stats_of(const std::vector<std::vector<double>>& samples_by_pe) {
  Moments moments;
  std::vector<double> all;
  for (const std::vector<double>& samples : samples_by_pe) {
    Moments own;
    for (const double sample : samples) {
      if (!std::isfinite(sample))
        throw Error(ExitCode::unavailable, "a sample", "summarise", "it is not a finite number",
                    "report this: no clock gives one");
      own.add(sample);
    }
    moments.merge(own);
    all.insert(all.end(), samples.begin(), samples.end());
  }
  Stats stats;
  stats.n = all.size();
  if (all.empty())
    return stats;
  std::sort(all.begin(), all.end());
  stats.min = all.front();
  stats.max = all.back();
  stats.p50 = quantile(all, 0.5);
  stats.p90 = quantile(all, 0.9);
  if (all.size() >= 100)
    stats.p99 = quantile(all, 0.99);
  // Rounding must not put the mean of equal samples beside them.
  stats.mean = std::clamp(moments.mean(), all.front(), all.back());
  if (all.size() >= 2) {
    stats.stddev = moments.stddev();
    stats.mad = median_deviation(all);
  }
  return stats;
}

} // namespace shmemctl::bench
