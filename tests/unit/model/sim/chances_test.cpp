// Formulas and fast draws against tokens that are drawn one by one.
#include <cmath>
#include <gtest/gtest.h>
#include <numeric>

#include "src/model/sim/expected.h"
#include "tests/unit/model/sim/sim_world.h"

namespace shmemctl::test {
namespace {

/// The mean of a step's bytes, drawn token by token, with standard errors, compared with the
/// expected values: within 5 errors, for some hundred numbers.
void expect_means(const sim::Request& request, const sim::Cluster& cluster) {
  const sim::Traffic traffic = traffic_of(request, cluster, std::nullopt);
  ASSERT_TRUE(sim::Expectation::known_for(*traffic.moe));
  const sim::Group group{&cluster, 0, cluster.nodes};
  sim::MoeLoads expected(group);
  add_expected(*traffic.moe, expected);
  std::vector<double> sum, squares, of_formula;
  const auto numbers = [](const sim::MoeLoads& loads) {
    std::vector<double> all;
    for (const sim::Loads* one : {&loads.dispatch, &loads.combine})
      for (const auto way : {&sim::Loads::out, &sim::Loads::in, &sim::Loads::up,
                             &sim::Loads::link_out, &sim::Loads::link_in})
        all.insert(all.end(), (one->*way).begin(), (one->*way).end());
    return all;
  };
  of_formula = numbers(expected);
  sum.assign(of_formula.size(), 0);
  squares = sum;
  const int steps = 400;
  sim::SourceCounts counts(*traffic.moe);
  for (int step = 0; step < steps; ++step) {
    sim::MoeLoads loads(group);
    for (int source = 0; source < cluster.ranks(); ++source) {
      counts.clear();
      count(*traffic.moe, traffic.moe->choices_of(source, static_cast<std::uint64_t>(step)),
            counts);
      add_rows(*traffic.moe, source, counts, loads);
    }
    const std::vector<double> now = numbers(loads);
    for (std::size_t i = 0; i < now.size(); ++i) {
      sum[i] += now[i];
      squares[i] += now[i] * now[i];
    }
  }
  for (std::size_t i = 0; i < sum.size(); ++i) {
    const double mean = sum[i] / steps;
    const double error = std::sqrt(std::max(0.0, squares[i] / steps - mean * mean) / steps);
    EXPECT_NEAR(mean, of_formula[i], 5 * error + 1e-6 * of_formula[i] + 1e-9)
        << request.routing << " " << request.mode << " number " << i;
  }
}

TEST(SimExpected, formulas_are_the_means_of_what_is_drawn) {
  const sim::Cluster cluster = small_cluster(3, 2, {sim::FabricKind::rail, 1, 1});
  for (const char* routing : {"uniform", "one-rank", "hot-expert", "empty-ranks", "grouped"})
    for (const int masked : {0, 30})
      for (const char* mode : {"ht", "ll"}) {
        sim::Request request = small_request(3, 24, 4, 8);
        request.routing = routing;
        request.masked_percent = masked;
        request.mode = mode;
        request.uneven = masked > 0;
        if (request.routing == "grouped") {
          request.groups = 4; // of 6 experts, over nodes of 8: groups lie across nodes
          request.top_groups = 2;
        }
        expect_means(request, cluster);
      }
}

TEST(SimExpected, a_moved_expert_takes_its_rows_along) {
  const sim::Cluster cluster = small_cluster(2, 2);
  const sim::Request request = small_request(2, 8, 2, 100);
  const sim::Traffic plain = traffic_of(request, cluster, std::nullopt);
  const sim::Traffic changed = moved(plain, {{0, 3}});
  sim::MoeLoads before(sim::Group{&cluster, 0, 2}), after(sim::Group{&cluster, 0, 2});
  add_expected(*plain.moe, before);
  add_expected(*changed.moe, after);
  const auto into = [](const sim::MoeLoads& loads, std::size_t node) {
    return loads.dispatch.in[node * 2] + loads.dispatch.in[node * 2 + 1];
  };
  EXPECT_LT(into(after, 0), into(before, 0));
  EXPECT_GT(into(after, 1), into(before, 1));
}

TEST(SimExpected, chances_by_hand) {
  // 2 of 4 experts: 6 pairs, one of which has neither expert 0 nor 1.
  EXPECT_DOUBLE_EQ(sim::miss_chance(4, 2, 2, 0), 1.0 / 6);
  EXPECT_DOUBLE_EQ(sim::miss_chance(4, 4, 2, 0), 0);
  EXPECT_DOUBLE_EQ(sim::miss_chance(4, 0, 2, 0), 1);
  // Both masked with probability 1/2: 1/6 + 4/6 * 1/2 + 1/6 * 1/4.
  EXPECT_NEAR(sim::miss_chance(4, 2, 2, 0.5), 1.0 / 6 + 4.0 / 12 + 1.0 / 24, 1e-12);
}

/// Chi-squared of two samples of integers, with cells of at least 10 merged; 1 if it is at most 5
/// standard deviations above its mean.
void expect_same_distribution(const std::vector<int>& left, const std::vector<int>& right,
                              const std::string& what) {
  std::map<int, std::pair<double, double>> cells;
  for (const int value : left)
    cells[value].first += 1;
  for (const int value : right)
    cells[value].second += 1;
  const auto a = static_cast<double>(left.size()), b = static_cast<double>(right.size());
  double chi = 0, freedom = -1;
  std::pair<double, double> cell{0, 0};
  for (auto it = cells.begin(); it != cells.end(); ++it) {
    cell.first += it->second.first;
    cell.second += it->second.second;
    if (cell.first + cell.second < 10 && std::next(it) != cells.end())
      continue;
    const double all = cell.first + cell.second;
    const double share_a = all * a / (a + b), share_b = all * b / (a + b);
    chi += (cell.first - share_a) * (cell.first - share_a) / share_a +
           (cell.second - share_b) * (cell.second - share_b) / share_b;
    freedom += 1;
    cell = {0, 0};
  }
  EXPECT_LT(chi, freedom + 5 * std::sqrt(2 * std::max(freedom, 1.0)) + 5)
      << what << ", " << freedom << " degrees of freedom";
}

struct Drawn {
  std::vector<int> node_0, node_1, both, pair;
};

/// Counts of one source: of two nodes, their sum over all, and a number of both, which depends on
/// their correlation.
Drawn draw_both(const sim::MoeTraffic& traffic, bool by_counts, int draws) {
  Drawn drawn;
  const sim::NodeCounts nodes(traffic);
  sim::Random random(77);
  sim::SourceCounts counts(traffic);
  for (int i = 0; i < draws; ++i) {
    counts.clear();
    if (by_counts)
      nodes.draw(random, traffic.routing.tokens, counts.to_node);
    else
      count(traffic, traffic.choices_of(1, static_cast<std::uint64_t>(i)), counts);
    const auto at = [&](std::size_t node) { return static_cast<int>(counts.to_node[node]); };
    drawn.node_0.push_back(at(0));
    drawn.node_1.push_back(at(counts.to_node.size() - 1));
    drawn.both.push_back(
        static_cast<int>(std::accumulate(counts.to_node.begin(), counts.to_node.end(), 0.0)));
    drawn.pair.push_back(100 * std::min(at(0), 99) + at(1));
  }
  return drawn;
}

TEST(SimNodeCounts, have_the_distribution_of_tokens_drawn_one_by_one) {
  for (const auto& [nodes, experts, top_k, tokens, masked] :
       std::vector<std::array<int, 5>>{{4, 32, 4, 12, 0}, {3, 12, 6, 6, 40}, {8, 16, 3, 40, 0}}) {
    const sim::Cluster cluster = small_cluster(nodes, 2);
    sim::Request request = small_request(nodes, experts, top_k, tokens);
    request.masked_percent = masked;
    const sim::Traffic traffic = traffic_of(request, cluster, std::nullopt);
    ASSERT_TRUE(sim::NodeCounts::can_draw(*traffic.moe));
    const Drawn slow = draw_both(*traffic.moe, false, 20000);
    const Drawn fast = draw_both(*traffic.moe, true, 20000);
    const std::string what = std::to_string(nodes) + " nodes, ";
    expect_same_distribution(slow.node_0, fast.node_0, what + "the first");
    expect_same_distribution(slow.node_1, fast.node_1, what + "the last");
    expect_same_distribution(slow.both, fast.both, what + "all together");
    expect_same_distribution(slow.pair, fast.pair, what + "two of them");
  }
}

TEST(SimNodeCounts, a_test_of_another_distribution_fails) {
  // Independent binomials have the right means, but are not the distribution: the sums differ.
  const sim::Cluster cluster = small_cluster(4, 2);
  const sim::Traffic traffic = traffic_of(small_request(4, 32, 4, 12), cluster, std::nullopt);
  const Drawn slow = draw_both(*traffic.moe, false, 20000);
  const double hit = 1 - sim::miss_chance(32, 8, 4, 0);
  sim::Random random(5);
  double squares = 0, squares_slow = 0;
  for (int i = 0; i < 20000; ++i) {
    double sum = 0;
    for (int node = 0; node < 4; ++node)
      sum += static_cast<double>(sim::binomial(random, 12, hit));
    squares += (sum - 48 * hit) * (sum - 48 * hit);
    squares_slow += (slow.both[static_cast<std::size_t>(i)] - 48 * hit) *
                    (slow.both[static_cast<std::size_t>(i)] - 48 * hit);
  }
  EXPECT_GT(squares, 1.5 * squares_slow);
}

TEST(SimNodeCounts, only_where_nodes_are_alike) {
  const sim::Cluster cluster = small_cluster(2, 2);
  sim::Request request = small_request(2, 8, 2, 4);
  const sim::Traffic traffic = traffic_of(request, cluster, std::nullopt);
  EXPECT_TRUE(sim::NodeCounts::can_draw(*traffic.moe));
  EXPECT_FALSE(sim::NodeCounts::can_draw(*moved(traffic, {{0, 3}}).moe));
  request.routing = "zipf";
  EXPECT_FALSE(sim::NodeCounts::can_draw(*traffic_of(request, cluster, std::nullopt).moe));
}

TEST(SimBinomial, against_its_own_chances) {
  for (const auto& [n, p] : std::vector<std::pair<int, double>>{
           {1, 0.3}, {20, 0.1}, {40, 0.5}, {100, 0.9}, {500, 0.03}, {4096, 0.2245}, {4096, 0.9}}) {
    sim::Random random(static_cast<std::uint64_t>(n));
    const int draws = 40000;
    std::map<std::int64_t, int> seen;
    for (int i = 0; i < draws; ++i)
      ++seen[sim::binomial(random, n, p)];
    double chi = 0, freedom = -1, expected = 0, got = 0;
    for (std::int64_t k = 0; k <= n; ++k) {
      expected += draws * std::exp(std::lgamma(n + 1.0) - std::lgamma(k + 1.0) -
                                   std::lgamma(static_cast<double>(n - k) + 1) +
                                   static_cast<double>(k) * std::log(p) +
                                   static_cast<double>(n - k) * std::log1p(-p));
      got += seen[k];
      if (expected < 10 && k < n)
        continue;
      chi += (got - expected) * (got - expected) / std::max(expected, 1e-9);
      freedom += 1;
      expected = got = 0;
    }
    EXPECT_LT(chi, freedom + 5 * std::sqrt(2 * std::max(freedom, 1.0)) + 5) << n << " " << p;
  }
  sim::Random random(1);
  EXPECT_EQ(sim::binomial(random, 10, 0), 0);
  EXPECT_EQ(sim::binomial(random, 10, 1), 10);
  EXPECT_EQ(sim::binomial(random, 0, 0.5), 0);
}

} // namespace
} // namespace shmemctl::test
