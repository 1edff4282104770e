// What samples say of means, and of the slowest of many groups.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "src/sim/simulate.h"

namespace shmemctl::sim {

namespace {

constexpr double normal_95 = 1.959964;
constexpr std::size_t most_blocks = 32;

/// [i]: the chance that of `n` samples without replacement, so many groups, all are among the `i`
/// smallest.
std::vector<double> all_below(std::size_t groups, std::size_t n) {
  std::vector<double> chances(n + 1);
  chances[n] = 1;
  for (std::size_t i = n; i > groups; --i)
    chances[i - 1] = chances[i] * static_cast<double>(i - groups) / static_cast<double>(i);
  return chances;
}

struct SortedClass {
  std::vector<double> samples; ///< ascending
  std::vector<double> below;   ///< [i]: all groups are among the i smallest
  std::size_t at = 0;
};

/// The mean of the largest, from samples of each class without those of a block.
double mean_of_slowest(const std::vector<ClassResult>& classes, std::size_t skip_from,
                       std::size_t skip_to) {
  std::vector<SortedClass> all;
  std::vector<std::pair<double, std::size_t>> order;
  for (const ClassResult& result : classes) {
    SortedClass one;
    for (std::size_t i = 0; i < result.step_us.size(); ++i)
      if (i < skip_from || i >= skip_to)
        one.samples.push_back(result.step_us[i]);
    std::sort(one.samples.begin(), one.samples.end());
    const std::size_t n = one.samples.size();
    one.below = all_below(std::min(result.groups.first_nodes.size(), n), n);
    for (const double sample : one.samples)
      order.emplace_back(sample, all.size());
    all.push_back(std::move(one));
  }
  std::sort(order.begin(), order.end());
  double mean = 0, before = 0;
  for (const auto& [sample, c] : order) {
    ++all[c].at;
    double chance = 1;
    for (const SortedClass& one : all)
      chance *= one.below[one.at];
    mean += sample * (chance - before);
    before = chance;
  }
  return mean;
}

} // namespace

Estimate estimate_mean(const std::vector<double>& samples) {
  const auto n = static_cast<double>(samples.size());
  if (samples.empty())
    return {};
  const double mean = std::accumulate(samples.begin(), samples.end(), 0.0) / n;
  if (samples.size() < 2)
    return {mean, std::nullopt};
  double squares = 0;
  for (const double sample : samples)
    squares += (sample - mean) * (sample - mean);
  return {mean, normal_95 * std::sqrt(squares / (n - 1) / n)};
}

Estimate estimate_slowest(const std::vector<ClassResult>& classes) {
  const std::size_t n = classes.empty() ? 0 : classes[0].step_us.size();
  if (n == 0)
    return {};
  Estimate slowest{mean_of_slowest(classes, n, n), std::nullopt};
  const std::size_t blocks = std::min(most_blocks, n);
  const std::size_t largest = (n + blocks - 1) / blocks;
  for (const ClassResult& result : classes)
    if (result.groups.first_nodes.size() + largest >= n)
      return slowest;
  std::vector<double> without;
  for (std::size_t block = 0; block < blocks; ++block)
    without.push_back(mean_of_slowest(classes, block * n / blocks, (block + 1) * n / blocks));
  const double mean = estimate_mean(without).mean;
  double squares = 0;
  for (const double one : without)
    squares += (one - mean) * (one - mean);
  const auto b = static_cast<double>(blocks);
  slowest.margin = normal_95 * std::sqrt((b - 1) / b * squares);
  return slowest;
}

} // namespace shmemctl::sim
