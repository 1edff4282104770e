#include "src/sim/expected.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace shmemctl::sim {

namespace {

std::size_t as_size(std::int32_t value) {
  return static_cast<std::size_t>(value);
}

/// C(n, k) by its logarithm; k from 0 to n.
double log_choose(std::int32_t n, std::int32_t k) {
  return std::lgamma(n + 1.0) - std::lgamma(k + 1.0) - std::lgamma(n - k + 1.0);
}

/// Of the miss chance without masks: a product, which loses no digits.
double none_of(std::int32_t allowed, std::int32_t here, std::int32_t drawn) {
  double chance = 1;
  for (std::int32_t i = 0; i < drawn; ++i)
    chance *= std::max(0.0, static_cast<double>(allowed - here - i)) / (allowed - i);
  return chance;
}

std::vector<std::vector<std::int32_t>> experts_by(const MoeTraffic& traffic, int ranks_of_place) {
  std::vector<std::vector<std::int32_t>> experts(as_size(traffic.shape.n_ranks / ranks_of_place));
  for (std::int32_t expert = 0; expert < traffic.shape.n_experts; ++expert)
    experts[as_size(traffic.rank_of_expert[as_size(expert)] / ranks_of_place)].push_back(expert);
  return experts;
}

} // namespace

double miss_chance(std::int32_t allowed, std::int32_t here, std::int32_t drawn, double masked) {
  if (masked <= 0)
    return none_of(allowed, here, drawn);
  double miss = 0;
  const std::int32_t least = std::max(0, drawn - (allowed - here));
  for (std::int32_t j = least; j <= std::min(here, drawn); ++j)
    miss += std::exp(log_choose(here, j) + log_choose(allowed - here, drawn - j) -
                     log_choose(allowed, drawn) + j * std::log(masked));
  return std::min(miss, 1.0);
}

bool Expectation::known_for(const MoeTraffic& traffic) {
  return !traffic.replay && traffic.routing.kind != moe::RoutingKind::zipf;
}

Expectation::Expectation(const MoeTraffic& traffic)
    : allowed_(as_size(traffic.shape.n_experts), true), drawn_(traffic.shape.top_k),
      masked_(traffic.routing.masked_percent / 100.0) {
  const moe::Shape& shape = traffic.shape;
  for (std::int32_t expert = 0; expert < shape.n_experts; ++expert) {
    if (traffic.routing.kind == moe::RoutingKind::one_rank)
      allowed_[as_size(expert)] = expert < shape.local_experts();
    if (traffic.routing.kind == moe::RoutingKind::empty_ranks)
      allowed_[as_size(expert)] = shape.rank_of_expert(expert) % 2 == 0;
  }
  if (traffic.routing.kind == moe::RoutingKind::hot_expert) {
    always_ = 0;
    allowed_[0] = false;
    --drawn_;
  }
  n_allowed_ = static_cast<std::int32_t>(std::count(allowed_.begin(), allowed_.end(), true));
  drawn_ = std::min(drawn_, n_allowed_);
  if (traffic.routing.kind == moe::RoutingKind::grouped) {
    groups_ = traffic.routing.groups;
    top_groups_ = traffic.routing.top_groups;
    group_size_ = shape.n_experts / groups_;
  }
}

double Expectation::hit(const std::vector<std::int32_t>& experts) const {
  if (groups_ > 0)
    return 1 - grouped_miss(experts);
  std::int32_t here = 0;
  double miss = 1;
  for (const std::int32_t expert : experts) {
    here += allowed_[as_size(expert)] ? 1 : 0;
    if (expert == always_)
      miss = masked_;
  }
  return 1 - miss * miss_chance(n_allowed_, here, drawn_, masked_);
}

/// Over the number of these experts that lie in the groups which a token chose.
double Expectation::grouped_miss(const std::vector<std::int32_t>& experts) const {
  std::map<std::int32_t, std::int32_t> of_group;
  for (const std::int32_t expert : experts)
    ++of_group[expert / group_size_];
  // ways[{groups, experts}]: to choose so many of the groups met so far, with so many of these.
  std::map<std::pair<std::int32_t, std::int32_t>, double> ways{{{0, 0}, 1}};
  for (const auto& [group, here] : of_group) {
    auto more = ways;
    for (const auto& [chosen, count] : ways)
      if (chosen.first < top_groups_)
        more[{chosen.first + 1, chosen.second + here}] += count;
    ways = std::move(more);
  }
  const auto others = groups_ - static_cast<std::int32_t>(of_group.size());
  double miss = 0;
  for (const auto& [chosen, count] : ways) {
    const std::int32_t elsewhere = top_groups_ - chosen.first;
    if (elsewhere > others)
      continue;
    const double chance =
        count * std::exp(log_choose(others, elsewhere) - log_choose(groups_, top_groups_));
    miss += chance * miss_chance(top_groups_ * group_size_, chosen.second, drawn_, masked_);
  }
  return std::min(miss, 1.0);
}

void add_expected(const MoeTraffic& traffic, MoeLoads& loads) {
  const Expectation chances(traffic);
  const auto by_node = experts_by(traffic, traffic.node_ranks);
  const auto by_rank = experts_by(traffic, 1);
  std::vector<double> node_hit, rank_hit, chosen;
  for (const auto& experts : by_node)
    node_hit.push_back(chances.hit(experts));
  for (const auto& experts : by_rank) {
    rank_hit.push_back(chances.hit(experts));
    chosen.push_back(0);
    for (const std::int32_t expert : experts)
      chosen.back() += chances.hit({expert});
  }
  SourceCounts counts(traffic);
  for (int source = 0; source < traffic.shape.n_ranks; ++source) {
    const double tokens = traffic.tokens_of(source);
    const auto scaled = [tokens](const std::vector<double>& of_token, std::vector<double>& to) {
      std::transform(of_token.begin(), of_token.end(), to.begin(),
                     [tokens](double chance) { return tokens * chance; });
    };
    scaled(node_hit, counts.to_node);
    scaled(rank_hit, counts.to_rank);
    scaled(chosen, counts.choices);
    add_rows(traffic, source, counts, loads);
  }
}

} // namespace shmemctl::sim
