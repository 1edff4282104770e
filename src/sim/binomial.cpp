#include "src/sim/binomial.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace shmemctl::sim {

namespace {

/// log(k!) less Stirling's (k + 1/2) log(k + 1) - (k + 1) + log(2 pi) / 2.
double stirling_rest(double k) {
  static constexpr std::array<double, 10> exact{
      0.0810614667953272,  0.0413406959554092, 0.0276779256849983, 0.02079067210376509,
      0.0166446911898211,  0.0138761288230707, 0.0118967099458917, 0.0104112652619720,
      0.00925546218271273, 0.00833056343336287};
  if (k < 10)
    return exact.at(static_cast<std::size_t>(k));
  const double next = 1 / ((k + 1) * (k + 1));
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 * next) * next) / (k + 1);
}

/// Adds up chances from 0 on.
std::int64_t by_inversion(Random& random, std::int64_t n, double p) {
  const double odds = p / (1 - p);
  double chance = std::exp(static_cast<double>(n) * std::log1p(-p));
  double rest = uniform(random);
  for (std::int64_t k = 0; k < n; ++k) {
    if (rest < chance)
      return k;
    rest -= chance;
    chance *= odds * static_cast<double>(n - k) / static_cast<double>(k + 1);
  }
  return n;
}

/// p at most a half, n p at least 10.
std::int64_t by_rejection(Random& random, std::int64_t n_whole, double p) {
  const auto n = static_cast<double>(n_whole);
  const double spread = std::sqrt(n * p * (1 - p));
  const double b = 1.15 + 2.53 * spread;
  const double a = -0.0873 + 0.0248 * b + 0.01 * p;
  const double c = n * p + 0.5;
  const double v_r = 0.92 - 4.2 / b;
  const double alpha = (2.83 + 5.1 / b) * spread;
  const double odds = p / (1 - p);
  const double mode = std::floor((n + 1) * p);
  for (;;) {
    const double u = uniform(random) - 0.5;
    double v = uniform(random);
    const double us = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / us + b) * u + c);
    if (us >= 0.07 && v <= v_r)
      return static_cast<std::int64_t>(k);
    if (k < 0 || k > n)
      continue;
    v = std::log(v * alpha / (a / (us * us) + b));
    const double bound = (mode + 0.5) * std::log((mode + 1) / (odds * (n - mode + 1))) +
                         stirling_rest(mode) + stirling_rest(n - mode) +
                         (n + 1) * std::log((n - mode + 1) / (n - k + 1)) +
                         (k + 0.5) * std::log(odds * (n - k + 1) / (k + 1)) - stirling_rest(k) -
                         stirling_rest(n - k);
    if (v <= bound)
      return static_cast<std::int64_t>(k);
  }
}

} // namespace

std::int64_t binomial(Random& random, std::int64_t n, double p) {
  if (n <= 0 || p <= 0)
    return 0;
  if (p >= 1)
    return n;
  if (p > 0.5)
    return n - binomial(random, n, 1 - p);
  return static_cast<double>(n) * p < 10 ? by_inversion(random, n, p) : by_rejection(random, n, p);
}

} // namespace shmemctl::sim
