// Expected values of random routings: how many nodes and ranks a token reaches.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "src/sim/loads.h"

namespace shmemctl::sim {

// Binomial numbers from a stated generator. Their distribution uses exp and log, whose last bit a C
// library may round otherwise.

/// The standard says what it draws, to the bit; its distributions it leaves open.
using Random = std::mt19937_64;

/// From 0 to below 1.
inline double uniform(Random& random) {
  return static_cast<double>(random() >> 11) * 0x1p-53;
}

/// How many of `n` trials succeed that each do with chance `p`. By inversion where few do; else by
/// Hörmann's BTRS (The generation of binomial random variates, J. Stat. Comput. Simul. 46, 1993),
/// which takes as long for any n.
std::int64_t binomial(Random& random, std::int64_t n, double p);

/// Of uniform routing, where every node has as many experts, in MoeMode::hybrid: then a token's set
/// of nodes depends on their number alone, and every set of that number is as likely. So a draw
/// first splits the tokens by how many nodes they reach, and then goes from node to node: of the
/// tokens that still lack j of the R nodes left, Binomial(count, j / R) reach this one. That is the
/// distribution of all counts together, not of each alone.
class NodeCounts {
public:
  /// Whether the traffic is of that kind.
  static bool can_draw(const MoeTraffic& traffic);
  explicit NodeCounts(const MoeTraffic& traffic);

  /// @param counts by node, own node included; overwritten
  void draw(Random& random, std::int64_t tokens, std::vector<double>& counts) const;

  /// That a token reaches just so many nodes.
  const std::vector<double>& nodes_reached() const { return reached_; }

private:
  std::size_t nodes_;
  std::vector<double> reached_;
};

/// Chances of one token. Known for every routing whose choices are drawn evenly from a set of
/// experts (uniform, one-rank, hot-expert, empty-ranks, grouped), not for zipf nor a file.
///
/// Of A allowed experts k are drawn, none twice; each is then masked with chance p. A place that
/// has h of the allowed experts gets nothing with chance
///   miss(A, h, k) = sum over j of C(h, j) C(A - h, k - j) / C(A, k) * p^j
/// which is C(A - h, k) / C(A, k) without masks.
class Expectation {
public:
  static bool known_for(const MoeTraffic& traffic);
  explicit Expectation(const MoeTraffic& traffic);

  /// That at least one choice is among these experts.
  double hit(const std::vector<std::int32_t>& experts) const;

private:
  double grouped_miss(const std::vector<std::int32_t>& experts) const;

  std::vector<bool> allowed_;
  std::int32_t n_allowed_ = 0, drawn_ = 0;
  std::int32_t always_ = -1; ///< an expert that every token chooses
  double masked_ = 0;
  std::int32_t groups_ = 0, top_groups_ = 0, group_size_ = 0; ///< 0: no groups
};

/// miss(A, h, k) of above.
double miss_chance(std::int32_t allowed, std::int32_t here, std::int32_t drawn, double masked);

/// Adds what is expected of one call to `loads`.
void add_expected(const MoeTraffic& traffic, MoeLoads& loads);

} // namespace shmemctl::sim
