// Simulates one request: loads, times, what limits them.
#include "src/model/sim/simulate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "src/model/sim/expected.h"

namespace shmemctl::sim {

namespace {

/// What decides the class of a group: the kinds of its nodes in all clusters and, if it spans
/// several blocks of leaf switches, where it begins in its first block.
std::vector<int> likeness(const std::vector<const Cluster*>& clusters, int first, int nodes) {
  const int block_nodes = clusters[0]->fabric.leaf_nodes;
  const bool one_block = first / block_nodes == (first + nodes - 1) / block_nodes;
  std::vector<int> key{one_block ? 0 : first % block_nodes};
  for (const Cluster* cluster : clusters)
    for (int node = first; node < first + nodes; ++node)
      key.push_back(cluster->kind_of_node[static_cast<std::size_t>(node)]);
  return key;
}

std::vector<GroupClass> classes_of(const std::vector<const Cluster*>& clusters, int group_nodes) {
  std::map<std::vector<int>, std::size_t> known;
  std::vector<GroupClass> classes;
  for (int first = 0; first < clusters[0]->nodes; first += group_nodes) {
    const auto [found, is_new] =
        known.try_emplace(likeness(clusters, first, group_nodes), classes.size());
    if (is_new)
      classes.push_back({{nullptr, first, group_nodes}, {}});
    classes[found->second].first_nodes.push_back(first);
  }
  return classes;
}

/// The steps of one class on one cluster.
class Steps {
public:
  Steps(const Cluster& cluster, const GroupClass& groups)
      : result_{groups, MoeLoads(Group{&cluster, groups.group.first_node, groups.group.nodes}),
                {},     {},
                {},     {},
                {},     {},
                {},     {}},
        now_(result_.bytes.dispatch.group()) {
    result_.groups.group = now_.dispatch.group();
  }

  MoeLoads& now() { return now_; }
  MoeLoads& expected() { return result_.bytes; }
  /// Copies the loads of the GPU links within a node, which are not drawn for each step.
  void take_links(const MoeLoads& from) {
    for (const auto direction : {&Loads::link_out, &Loads::link_in}) {
      now_.dispatch.*direction = from.dispatch.*direction;
      now_.combine.*direction = from.combine.*direction;
    }
  }
  void end_step(bool keep_bytes) {
    const double there = end(now_.dispatch, result_.dispatch_us, result_.slowest_dispatch);
    const double back = end(now_.combine, result_.combine_us, result_.slowest_combine);
    result_.step_us.push_back(there + back);
    double peak = 0;
    for (const auto direction : {&Loads::out, &Loads::in})
      for (std::size_t i = 0; i < (now_.dispatch.*direction).size(); ++i)
        peak = std::max(peak, (now_.dispatch.*direction)[i] + (now_.combine.*direction)[i]);
    result_.peak_bytes.push_back(peak);
    if (keep_bytes) {
      result_.bytes.add(now_);
      keep_squares(&Loads::out, result_.out_error);
      keep_squares(&Loads::in, result_.in_error);
    }
  }
  ClassResult finish(bool keep_bytes) {
    if (keep_bytes) {
      const auto steps = static_cast<double>(result_.step_us.size());
      MoeLoads mean(result_.bytes.dispatch.group());
      mean.add(result_.bytes, 1 / steps);
      result_.bytes = mean;
      to_errors(&Loads::out, steps, result_.out_error);
      to_errors(&Loads::in, steps, result_.in_error);
    }
    return std::move(result_);
  }

private:
  static double end(const Loads& loads, std::vector<double>& times_us,
                    std::map<Resource, int>& by) {
    const auto slowest = loads.slowest();
    times_us.push_back(slowest ? slowest->time_us : 0);
    if (slowest)
      ++by[slowest->resource];
    return times_us.back();
  }
  void keep_squares(std::vector<double> Loads::*direction, std::vector<double>& squares) {
    squares.resize((now_.dispatch.*direction).size());
    for (std::size_t i = 0; i < squares.size(); ++i) {
      const double bytes = (now_.dispatch.*direction)[i] + (now_.combine.*direction)[i];
      squares[i] += bytes * bytes;
    }
  }
  /// Turns sums of squares into standard errors of the mean.
  void to_errors(std::vector<double> Loads::*direction, double steps,
                 std::vector<double>& squares) {
    if (steps < 2) {
      squares.clear();
      return;
    }
    for (std::size_t i = 0; i < squares.size(); ++i) {
      const double mean =
          (result_.bytes.dispatch.*direction)[i] + (result_.bytes.combine.*direction)[i];
      const double variance = (squares[i] / steps - mean * mean) * steps / (steps - 1);
      squares[i] = std::sqrt(std::max(0.0, variance) / steps);
    }
  }

  ClassResult result_;
  MoeLoads now_;
};

bool draws_counts(const Traffic& traffic, Sampling wanted) {
  if (traffic.fixed() || wanted == Sampling::tokens || !NodeCounts::can_draw(*traffic.moe))
    return false;
  return wanted == Sampling::counts || traffic.moe->routing.tokens >= traffic.moe->nodes();
}

void fixed_step(const Traffic& traffic, MoeLoads& loads) {
  if (!traffic.moe)
    return add_pattern(traffic.pattern, traffic.size_bytes, loads.dispatch);
  SourceCounts counts(*traffic.moe);
  for (int source = 0; source < traffic.moe->shape.n_ranks; ++source) {
    counts.clear();
    count(*traffic.moe, traffic.moe->choices_of(source, 0), counts);
    add_rows(*traffic.moe, source, counts, loads);
  }
}

void drawn_step(const MoeTraffic& traffic, std::uint64_t step, const NodeCounts* nodes,
                Random& random, SourceCounts& counts, std::vector<Steps>& all) {
  for (int source = 0; source < traffic.shape.n_ranks; ++source) {
    if (nodes != nullptr) {
      nodes->draw(random, traffic.tokens_of(source), counts.to_node);
      for (Steps& steps : all)
        add_crossing_rows(traffic, source, counts.to_node, steps.now());
      continue;
    }
    counts.clear();
    count(traffic, traffic.choices_of(source, step), counts);
    for (Steps& steps : all)
      add_rows(traffic, source, counts, steps.now());
  }
}

} // namespace

std::vector<Result> simulate(const std::vector<const Cluster*>& clusters, const Traffic& traffic,
                             const Effort& effort) {
  const bool formula = !traffic.fixed() && Expectation::known_for(*traffic.moe);
  const bool by_counts = draws_counts(traffic, effort.sampling);
  const int steps = traffic.fixed() ? 1 : effort.steps;
  std::optional<NodeCounts> nodes;
  if (by_counts)
    nodes.emplace(*traffic.moe);
  std::vector<Result> results;
  for (const Cluster* cluster : clusters)
    results.push_back({cluster,
                       traffic.fixed() || formula,
                       traffic.fixed(),
                       steps,
                       by_counts ? Sampling::counts : Sampling::tokens,
                       {}});
  const int group_nodes = traffic.moe ? traffic.moe->nodes() : clusters[0]->nodes;
  const std::vector<GroupClass> classes = classes_of(clusters, group_nodes);
  for (std::size_t c = 0; c < classes.size(); ++c) {
    std::vector<Steps> all;
    for (const Cluster* cluster : clusters)
      all.emplace_back(*cluster, classes[c]);
    for (Steps& one : all)
      if (formula)
        add_expected(*traffic.moe, one.expected());
    Random random(effort.seed + 0x9e3779b97f4a7c15U * c);
    std::optional<SourceCounts> counts;
    if (traffic.moe)
      counts.emplace(*traffic.moe);
    for (int step = 0; step < steps; ++step) {
      for (Steps& one : all) {
        one.now().clear();
        if (by_counts)
          one.take_links(one.expected());
        if (traffic.fixed())
          fixed_step(traffic, one.now());
      }
      if (!traffic.fixed())
        drawn_step(*traffic.moe,
                   c * static_cast<std::size_t>(steps) + static_cast<std::size_t>(step),
                   nodes ? &*nodes : nullptr, random, *counts, all);
      for (Steps& one : all)
        one.end_step(!formula);
    }
    for (std::size_t i = 0; i < all.size(); ++i)
      results[i].classes.push_back(all[i].finish(!formula && steps > 0));
  }
  return results;
}

namespace {

constexpr std::size_t max_blocks = 32;

/// [i]: probability that `groups` of `n` samples, drawn without replacement, are all among the `i`
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
  std::vector<double> below;   ///< [i]: probability that all groups are among the i smallest
  std::size_t at = 0;
};

/// The mean of the slowest group's time, from the samples of each class except those of one block.
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
  const std::size_t blocks = std::min(max_blocks, n);
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
