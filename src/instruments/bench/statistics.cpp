#include "src/instruments/bench/statistics.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "src/base/text.h"

namespace shmemctl::bench {

namespace {

/// Digits beyond the sixth are below any accuracy of measurement, and make reports long.
double to_six_digits(double value) {
  return parse_number(fmt::format("{:.6g}", value)).value_or(value);
}

} // namespace

void Moments::add(double value) {
  ++count_;
  const double distance = value - mean_;
  mean_ += distance / static_cast<double>(count_);
  squares_ += distance * (value - mean_);
}

void Moments::merge(const Moments& other) {
  if (other.count_ == 0)
    return;
  const auto own_count = static_cast<double>(count_), theirs = static_cast<double>(other.count_);
  const double distance = other.mean_ - mean_;
  squares_ += other.squares_ + distance * distance * own_count * theirs / (own_count + theirs);
  mean_ += distance * theirs / (own_count + theirs);
  count_ += other.count_;
}

double Moments::stddev() const {
  return count_ < 2 ? 0 : std::sqrt(squares_ / static_cast<double>(count_ - 1));
}

std::vector<double> kept_samples(const std::vector<std::vector<double>>& samples_by_pe) {
  std::vector<double> all;
  for (const std::vector<double>& samples : samples_by_pe)
    all.insert(all.end(), samples.begin(), samples.end());
  const std::size_t count = std::min(all.size(), max_kept_samples);
  std::vector<double> kept;
  kept.reserve(count);
  for (std::size_t i = 0; i < count; ++i)
    kept.push_back(to_six_digits(all[(2 * i + 1) * all.size() / (2 * count)]));
  return kept;
}

double median_error(std::vector<double> samples) {
  if (samples.empty())
    return 0;
  // The median lies between the smallest and the largest of six samples with a probability of 97 %
  // (1 - 2 / 2^6).
  constexpr std::size_t fewest = 6;
  std::sort(samples.begin(), samples.end());
  const auto n = static_cast<double>(samples.size());
  const double middle = quantile(samples, 0.5);
  if (samples.size() < fewest || !(middle > 0))
    return 1;
  // The number of samples below the median is binomial, with variance n / 4.
  constexpr double sigmas = 1.96;
  const double apart = sigmas * std::sqrt(n) / 2;
  const auto low = static_cast<std::size_t>(std::max(std::floor(n / 2 - apart), 0.0));
  const auto high = static_cast<std::size_t>(std::min(std::ceil(n / 2 + apart), n - 1));
  return (samples[high] - samples[low]) / 2 / middle;
}

std::vector<HistogramBin> histogram_of(const std::vector<std::vector<double>>& samples_by_pe) {
  constexpr std::size_t bins = 20;
  std::vector<double> all;
  for (const std::vector<double>& samples : samples_by_pe)
    all.insert(all.end(), samples.begin(), samples.end());
  if (all.empty())
    return {};
  const auto [least, most] = std::minmax_element(all.begin(), all.end());
  const double from = *least, to = *most;
  if (!(from > 0) || !(to > from))
    return {{from, to, all.size()}};
  const double step = std::pow(to / from, 1.0 / bins);
  std::vector<HistogramBin> histogram;
  for (std::size_t i = 0; i < bins; ++i)
    histogram.push_back({from * std::pow(step, static_cast<double>(i)),
                         i + 1 == bins ? to : from * std::pow(step, static_cast<double>(i + 1)),
                         0});
  for (const double sample : all) {
    std::size_t bin = 0;
    while (bin + 1 < bins && sample >= histogram[bin].to)
      ++bin;
    ++histogram[bin].count;
  }
  return histogram;
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
        throw Error(ExitCode::unavailable, "sample", "add to the statistics", "not a finite number",
                    "report this as a bug in shmemctl, with the command line");
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
  if (all.size() >= 1000)
    stats.p999 = quantile(all, 0.999);
  // The mean must not leave the range of the samples by rounding (if all are equal, for example).
  stats.mean = std::clamp(moments.mean(), all.front(), all.back());
  if (all.size() >= 2) {
    stats.stddev = moments.stddev();
    stats.mad = median_deviation(all);
  }
  return stats;
}

} // namespace shmemctl::bench
