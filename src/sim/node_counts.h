// How many of a rank's tokens go to each node, drawn as counts instead of token by token.
#pragma once

#include <vector>

#include "src/sim/binomial.h"
#include "src/sim/moe_traffic.h"

namespace shmemctl::sim {

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

} // namespace shmemctl::sim
