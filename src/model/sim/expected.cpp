// Expected values of random routings: how many nodes and ranks a token reaches.
#include "src/model/sim/expected.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace shmemctl::sim {

namespace {

/// log(k!) minus Stirling's (k + 1/2) log(k + 1) - (k + 1) + log(2 pi) / 2.
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

/// Accumulates the cumulative distribution from 0 on until it exceeds a random number.
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

/// Requires p <= 1/2 and n p >= 10.
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

namespace {

std::size_t to_index(std::int32_t value) {
  return static_cast<std::size_t>(value);
}

/// Probability that y of j choices fall on `here` of `left` experts.
double falls(std::int32_t left, std::int32_t here, std::int32_t j, std::int32_t y) {
  if (y > here || j - y > left - here)
    return 0;
  const auto choose = [](std::int32_t n, std::int32_t k) {
    return std::lgamma(n + 1.0) - std::lgamma(k + 1.0) - std::lgamma(n - k + 1.0);
  };
  return std::exp(choose(here, y) + choose(left - here, j - y) - choose(left, j));
}

/// [d]: probability that a token reaches d nodes. Iterates over the nodes and the choices that are
/// left.
std::vector<double> nodes_reached(std::int32_t nodes, std::int32_t experts, std::int32_t top_k,
                                  double masked) {
  const std::int32_t here = experts / nodes;
  const std::size_t side = to_index(top_k) + 1;
  std::vector<double> now(side * side), next(side * side); // [choices left][reached]
  now[to_index(top_k) * side] = 1;
  for (std::int32_t node = 0; node < nodes; ++node) {
    std::fill(next.begin(), next.end(), 0);
    for (std::int32_t j = 0; j <= top_k; ++j)
      for (std::int32_t y = 0; y <= std::min(j, here); ++y) {
        const double fall = falls(experts - node * here, here, j, y);
        const double all_masked = std::pow(masked, y);
        for (std::size_t d = 0; fall > 0 && d < side; ++d) {
          const double chance = now[to_index(j) * side + d] * fall;
          next[to_index(j - y) * side + d] += chance * all_masked;
          if (d + 1 < side)
            next[to_index(j - y) * side + d + 1] += chance * (1 - all_masked);
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
  std::vector<std::int32_t> experts(to_index(traffic.nodes()));
  for (const std::int32_t rank : traffic.rank_of_expert)
    ++experts[to_index(rank / traffic.node_ranks)];
  return std::all_of(experts.begin(), experts.end(),
                     [&](std::int32_t count) { return count == experts[0]; });
}

NodeCounts::NodeCounts(const MoeTraffic& traffic)
    : nodes_(to_index(traffic.nodes())),
      reached_(sim::nodes_reached(traffic.nodes(), traffic.shape.n_experts, traffic.shape.top_k,
                                  traffic.routing.masked_percent / 100.0)) {}

void NodeCounts::draw(Random& random, std::int64_t tokens, std::vector<double>& counts) const {
  std::vector<std::int64_t> lacking(reached_.size()); // [j]: tokens that still lack j nodes
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

namespace {

/// The logarithm of C(n, k); k from 0 to n.
double log_choose(std::int32_t n, std::int32_t k) {
  return std::lgamma(n + 1.0) - std::lgamma(k + 1.0) - std::lgamma(n - k + 1.0);
}

/// The miss probability without masks, as a product, which loses no digits.
double none_of(std::int32_t allowed, std::int32_t here, std::int32_t drawn) {
  double chance = 1;
  for (std::int32_t i = 0; i < drawn; ++i)
    chance *= std::max(0.0, static_cast<double>(allowed - here - i)) / (allowed - i);
  return chance;
}

std::vector<std::vector<std::int32_t>> experts_by(const MoeTraffic& traffic, int ranks_each) {
  std::vector<std::vector<std::int32_t>> experts(to_index(traffic.shape.n_ranks / ranks_each));
  for (std::int32_t expert = 0; expert < traffic.shape.n_experts; ++expert)
    experts[to_index(traffic.rank_of_expert[to_index(expert)] / ranks_each)].push_back(expert);
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
    : allowed_(to_index(traffic.shape.n_experts), true), drawn_(traffic.shape.top_k),
      masked_(traffic.routing.masked_percent / 100.0) {
  const moe::Shape& shape = traffic.shape;
  for (std::int32_t expert = 0; expert < shape.n_experts; ++expert) {
    if (traffic.routing.kind == moe::RoutingKind::one_rank)
      allowed_[to_index(expert)] = expert < shape.local_experts();
    if (traffic.routing.kind == moe::RoutingKind::empty_ranks)
      allowed_[to_index(expert)] = shape.rank_of_expert(expert) % 2 == 0;
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
    here += allowed_[to_index(expert)] ? 1 : 0;
    if (expert == always_)
      miss = masked_;
  }
  return 1 - miss * miss_chance(n_allowed_, here, drawn_, masked_);
}

/// Sums over how many of these experts lie in the groups that a token chose.
double Expectation::grouped_miss(const std::vector<std::int32_t>& experts) const {
  std::map<std::int32_t, std::int32_t> of_group;
  for (const std::int32_t expert : experts)
    ++of_group[expert / group_size_];
  // ways[{groups, experts}]: number of ways to choose that many of the groups seen so far, with
  // that many of these experts.
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
