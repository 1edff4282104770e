// Quantiles, and the comparison of two samples.
#include "src/base/statistics.h"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

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
  return mad_to_sigma * median(std::move(distances));
}

namespace {

using boost::math::complement;

/// Two-sided probability of `z` standard deviations.
double normal_p(double z) {
  const boost::math::normal normal;
  return std::min(1.0, 2 * boost::math::cdf(complement(normal, std::abs(z))));
}

/// The number of pairs in which the second set's number is larger (ties count a half), and the sum
/// of t^3 - t over groups of t equal numbers in both sets together.
struct RankCount {
  double u = 0, ties = 0;
};

RankCount count_ranks(const std::vector<double>& first, const std::vector<double>& second) {
  RankCount count;
  std::size_t i = 0, j = 0;
  while (j < second.size()) {
    while (i < first.size() && first[i] < second[j])
      ++i;
    std::size_t same_first = i, same_second = j;
    while (same_first < first.size() && first[same_first] == second[j])
      ++same_first;
    while (same_second < second.size() && second[same_second] == second[j])
      ++same_second;
    count.u += static_cast<double>(same_second - j) *
               (static_cast<double>(i) + static_cast<double>(same_first - i) / 2);
    i = same_first;
    j = same_second;
  }
  std::vector<double> all(first.size() + second.size());
  std::merge(first.begin(), first.end(), second.begin(), second.end(), all.begin());
  for (std::size_t begin = 0; begin < all.size();) {
    std::size_t end = begin;
    while (end < all.size() && all[end] == all[begin])
      ++end;
    const auto length = static_cast<double>(end - begin);
    count.ties += length * length * length - length;
    begin = end;
  }
  return count;
}

/// The probability that the count of pairs is at most `u`, without ties: the number of arrangements
/// is a coefficient of the Gaussian binomial of n + m over n (Mann and Whitney 1947).
double exact_lower_tail(std::size_t n, std::size_t m, double u) {
  const std::size_t most = n * m;
  std::vector<double> count_of(most + 1, 0.0); // whole numbers below 2^53: exact
  count_of[0] = 1;
  for (std::size_t i = 1; i <= n; ++i) {
    for (std::size_t k = most; k >= m + i; --k)
      count_of[k] -= count_of[k - (m + i)];
    for (std::size_t k = i; k <= most; ++k)
      count_of[k] += count_of[k - i];
  }
  double below = 0, all = 0;
  for (std::size_t k = 0; k <= most; ++k) {
    all += count_of[k];
    below += static_cast<double>(k) <= u ? count_of[k] : 0;
  }
  return below / all;
}

double rank_p(const std::vector<double>& first, const std::vector<double>& second) {
  const RankCount count = count_ranks(first, second);
  const auto n = static_cast<double>(first.size()), m = static_cast<double>(second.size());
  if (count.ties == 0 && std::max(first.size(), second.size()) <= exact_rank_test)
    return std::min(
        1.0, 2 * exact_lower_tail(first.size(), second.size(), std::min(count.u, n * m - count.u)));
  const double all = n + m;
  const double variance = n * m / 12 * (all + 1 - count.ties / (all * (all - 1)));
  const double distance = std::abs(count.u - n * m / 2) - 0.5;
  return variance <= 0 || distance <= 0 ? 1 : normal_p(distance / std::sqrt(variance));
}

/// All differences second - first of two sorted sets, accessed by rank without storing them.
class Differences {
public:
  Differences(const std::vector<double>& first, const std::vector<double>& second)
      : first_(first), second_(second), least_(second.front() - first.back()),
        most_(second.back() - first.front()) {}

  /// The rank-th smallest (from 1), by halving the range until its width is 1e-7, or 1e-7 of its
  /// ends if these are above 1: far below the resolution of any measurement. Once few candidates
  /// are left in the range, the result is selected among them directly, which replaces the
  /// counting.
  double at(double rank) {
    constexpr double few = 64;
    double low = least_, high = most_;
    double below = up_to(low);
    if (below >= rank)
      return low;
    double to_high = static_cast<double>(first_.size()) * static_cast<double>(second_.size());
    std::optional<double> found;
    while (high - low > 1e-7 * std::max({1.0, std::abs(low), std::abs(high)})) {
      if (!found && to_high - below <= few)
        found = ranked(low, high, rank - below);
      const double middle = low + (high - low) / 2;
      const double count = found ? 0 : up_to(middle);
      const bool enough = found ? *found <= middle : count >= rank;
      (enough ? high : low) = middle;
      (enough ? to_high : below) = count;
    }
    return high;
  }

private:
  /// The number of differences up to `limit`. Cached, because searches for several ranks begin with
  /// the same limits.
  double up_to(double limit) {
    for (const auto& [known, count] : counts_)
      if (known == limit)
        return count;
    double count = 0;
    std::size_t j = 0;
    for (const double value : first_) { // `j` never decreases, because first_ is sorted
      while (j < second_.size() && second_[j] - value <= limit)
        ++j;
      count += static_cast<double>(j);
    }
    counts_.emplace_back(limit, count);
    return count;
  }

  /// The rank-th smallest of the differences above `low` and up to `high`.
  double ranked(double low, double high, double rank) {
    rest_.clear();
    std::size_t begin = second_.size(), end = second_.size();
    for (auto value = first_.rbegin(); value != first_.rend(); ++value) {
      while (begin > 0 && second_[begin - 1] - *value > low)
        --begin;
      while (end > 0 && second_[end - 1] - *value > high)
        --end;
      for (std::size_t j = begin; j < end; ++j)
        rest_.push_back(second_[j] - *value);
    }
    const auto at = rest_.begin() + static_cast<std::ptrdiff_t>(rank) - 1;
    std::nth_element(rest_.begin(), at, rest_.end());
    return *at;
  }

  const std::vector<double>&first_, &second_;
  double least_, most_;
  std::vector<std::pair<double, double>> counts_; ///< limit and count
  std::vector<double> rest_;
};

Shift shift_of_t(double estimate, double error, double freedom, double confidence) {
  if (!(error > 0))
    return {estimate, estimate, estimate, estimate == 0 ? 1.0 : 0.0};
  const boost::math::students_t t(freedom);
  const double reach = error * boost::math::quantile(complement(t, (1 - confidence) / 2));
  const double p = 2 * boost::math::cdf(complement(t, std::abs(estimate) / error));
  return {estimate, estimate - reach, estimate + reach, std::min(1.0, p)};
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double squares_of(const std::vector<double>& values, double mean) {
  return std::accumulate(values.begin(), values.end(), 0.0, [mean](double sum, double value) {
    return sum + (value - mean) * (value - mean);
  });
}

} // namespace

Shift rank_shift(const std::vector<double>& first, const std::vector<double>& second,
                 double confidence) {
  const auto n = static_cast<double>(first.size()), m = static_cast<double>(second.size());
  const double z = boost::math::quantile(boost::math::normal(), (1 + confidence) / 2);
  const double pairs = n * m;
  const double skipped =
      std::max(1.0, std::floor(pairs / 2 - z * std::sqrt(pairs * (n + m + 1) / 12)));
  Shift shift;
  Differences differences(first, second);
  shift.estimate =
      (differences.at(std::floor((pairs + 1) / 2)) + differences.at(std::ceil((pairs + 1) / 2))) /
      2;
  shift.low = differences.at(skipped);
  shift.high = differences.at(pairs - skipped + 1);
  shift.p = rank_p(first, second);
  return shift;
}

Shift student_shift(const std::vector<double>& first, const std::vector<double>& second,
                    double confidence) {
  const auto n = static_cast<double>(first.size()), m = static_cast<double>(second.size());
  const double before = mean_of(first), after = mean_of(second);
  const double freedom = n + m - 2;
  const double variance = (squares_of(first, before) + squares_of(second, after)) / freedom;
  return shift_of_t(after - before, std::sqrt(variance * (1 / n + 1 / m)), freedom, confidence);
}

Shift welch_log_shift(const MeanAndSpread& first, const MeanAndSpread& second, double confidence) {
  const auto share = [](const MeanAndSpread& side) {
    const double relative = side.stddev / side.mean;
    return relative * relative / side.n;
  };
  const double before = share(first), after = share(second);
  const double sum = before + after;
  const double freedom =
      sum > 0 ? sum * sum / (before * before / (first.n - 1) + after * after / (second.n - 1)) : 1;
  return shift_of_t(std::log(second.mean / first.mean), std::sqrt(sum), freedom, confidence);
}

std::vector<double> holm_adjusted(const std::vector<double>& p) {
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&p](std::size_t a, std::size_t b) { return p[a] < p[b]; });
  std::vector<double> adjusted(p.size());
  double largest = 0;
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    largest = std::max(largest, p[order[rank]] * static_cast<double>(p.size() - rank));
    adjusted[order[rank]] = std::min(1.0, largest);
  }
  return adjusted;
}

} // namespace shmemctl
