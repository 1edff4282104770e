#include "src/sim/node_counts.h"

#include <algorithm>
#include <cmath>

namespace shmemctl::sim {

namespace {

std::size_t as_size(std::int32_t value) {
  return static_cast<std::size_t>(value);
}

/// Chance that y of j choices fall on `here` of `left` experts.
double falls(std::int32_t left, std::int32_t here, std::int32_t j, std::int32_t y) {
  if (y > here || j - y > left - here)
    return 0;
  const auto choose = [](std::int32_t n, std::int32_t k) {
    return std::lgamma(n + 1.0) - std::lgamma(k + 1.0) - std::lgamma(n - k + 1.0);
  };
  return std::exp(choose(here, y) + choose(left - here, j - y) - choose(left, j));
}

/// chances[d]: d nodes are reached. From node to node, over the choices that are left.
std::vector<double> nodes_reached(std::int32_t nodes, std::int32_t experts, std::int32_t top_k,
                                  double masked) {
  const std::int32_t here = experts / nodes;
  const std::size_t side = as_size(top_k) + 1;
  std::vector<double> now(side * side), next(side * side); // [choices left][reached]
  now[as_size(top_k) * side] = 1;
  for (std::int32_t node = 0; node < nodes; ++node) {
    std::fill(next.begin(), next.end(), 0);
    for (std::int32_t j = 0; j <= top_k; ++j)
      for (std::int32_t y = 0; y <= std::min(j, here); ++y) {
        const double fall = falls(experts - node * here, here, j, y);
        const double all_masked = std::pow(masked, y);
        for (std::size_t d = 0; fall > 0 && d < side; ++d) {
          const double chance = now[as_size(j) * side + d] * fall;
          next[as_size(j - y) * side + d] += chance * all_masked;
          if (d + 1 < side)
            next[as_size(j - y) * side + d + 1] += chance * (1 - all_masked);
        }
      }
    now.swap(next);
  }
  now.resize(side);
  return now;
}

} // namespace

bool NodeCounts::can_draw(const MoeTraffic& traffic) {
  if (traffic.replay || traffic.mode != MoeMode::hybrid || traffic.nodes() < 2 ||
      traffic.routing.kind != moe::RoutingKind::uniform)
    return false;
  std::vector<std::int32_t> experts(as_size(traffic.nodes()));
  for (const std::int32_t rank : traffic.rank_of_expert)
    ++experts[as_size(rank / traffic.node_ranks)];
  return std::all_of(experts.begin(), experts.end(),
                     [&](std::int32_t count) { return count == experts[0]; });
}

NodeCounts::NodeCounts(const MoeTraffic& traffic)
    : nodes_(as_size(traffic.nodes())),
      reached_(sim::nodes_reached(traffic.nodes(), traffic.shape.n_experts, traffic.shape.top_k,
                                  traffic.routing.masked_percent / 100.0)) {}

void NodeCounts::draw(Random& random, std::int64_t tokens, std::vector<double>& counts) const {
  std::vector<std::int64_t> lacking(reached_.size()); // [j]: tokens that lack j nodes
  double rest = 1;
  std::size_t most = 0;
  for (std::size_t d = 0; d < reached_.size() && tokens > 0; ++d) {
    const bool last = d + 1 == reached_.size() || rest - reached_[d] <= 1e-15;
    lacking[d] = last ? tokens : binomial(random, tokens, std::min(1.0, reached_[d] / rest));
    tokens -= lacking[d];
    rest -= reached_[d];
    most = lacking[d] > 0 ? d : most;
  }
  std::fill(counts.begin(), counts.end(), 0);
  for (std::size_t node = 0; node < nodes_ && most > 0; ++node) {
    const auto left = static_cast<double>(nodes_ - node);
    std::int64_t here = 0;
    for (std::size_t j = 1; j <= most; ++j) {
      const std::int64_t reach = binomial(random, lacking[j], static_cast<double>(j) / left);
      lacking[j] -= reach;
      lacking[j - 1] += reach;
      here += reach;
    }
    counts[node] = static_cast<double>(here);
    while (most > 0 && lacking[most] == 0)
      --most;
  }
}

} // namespace shmemctl::sim
