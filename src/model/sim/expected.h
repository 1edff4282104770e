// Expected values of random routings: how many nodes and ranks a token reaches.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "src/model/sim/loads.h"

namespace shmemctl::sim {

// Binomial numbers from a specified generator. Their distribution uses exp and log, whose last bit
// may differ between C libraries.

/// C++ specifies the output of this generator exactly, but not that of std::binomial_distribution.
using Random = std::mt19937_64;

/// 95% of a normal distribution lie within this many standard deviations of its mean.
inline constexpr double normal_95 = 1.959964;

/// A uniform random number in [0, 1).
inline double uniform(Random& random) {
  return static_cast<double>(random() >> 11) * 0x1p-53;
}

/// How many of `n` trials succeed, each with probability `p`. By inversion if the mean is small;
/// otherwise by Hörmann's BTRS (The generation of binomial random variates, J. Stat. Comput. Simul.
/// 46, 1993), whose time does not depend on n.
std::int64_t binomial(Random& random, std::int64_t n, double p);

/// For uniform routing with the same number of experts on every node, in MoeMode::hybrid: then all
/// sets of nodes of the same size are equally likely to be those that a token reaches. A draw first
/// splits the tokens by how many nodes they reach, and then iterates over the nodes: of the tokens
/// that still lack j of the remaining R nodes, Binomial(count, j / R) reach this one. That is the
/// joint distribution of all counts, not only of each alone.
class NodeCounts {
public:
  /// Whether the traffic satisfies these conditions, and has ranks on two or more nodes.
  static bool can_draw(const MoeTraffic& traffic);
  explicit NodeCounts(const MoeTraffic& traffic);

  /// @param counts by node, own node included; overwritten
  void draw(Random& random, std::int64_t tokens, std::vector<double>& counts) const;

  /// Probability that a token reaches exactly that many nodes.
  const std::vector<double>& nodes_reached() const { return reached_; }

private:
  std::size_t nodes_;
  std::vector<double> reached_;
};

/// Probabilities for one token. Known for every routing whose choices are drawn evenly from a set
/// of experts (uniform, one-rank, hot-expert, empty-ranks, grouped), not for zipf or a file.
///
/// Of A allowed experts k are drawn without replacement; each is then masked with probability p. A
/// rank or node with h of the allowed experts receives nothing with probability
/// miss(A, h, k) = sum over j of C(h, j) C(A - h, k - j) / C(A, k) * p^j
/// which is C(A - h, k) / C(A, k) without masks.
class Expectation {
public:
  static bool known_for(const MoeTraffic& traffic);
  explicit Expectation(const MoeTraffic& traffic);

  /// Probability that at least one choice is among these experts.
  double hit(const std::vector<std::int32_t>& experts) const;

private:
  double grouped_miss(const std::vector<std::int32_t>& experts) const;

  std::vector<bool> allowed_;
  std::int32_t n_allowed_ = 0, drawn_ = 0;
  std::int32_t always_ = -1; ///< an expert that every token chooses
  double masked_ = 0;
  std::int32_t groups_ = 0, top_groups_ = 0, group_size_ = 0; ///< 0: no groups
};

/// miss(A, h, k) as defined above.
double miss_chance(std::int32_t allowed, std::int32_t here, std::int32_t drawn, double masked);

/// Adds the expected bytes of one call to `loads`.
void add_expected(const MoeTraffic& traffic, MoeLoads& loads);

} // namespace shmemctl::sim
