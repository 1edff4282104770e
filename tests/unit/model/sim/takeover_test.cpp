// Which ports carry the traffic of NICs that a what-if kills.
#include <algorithm>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "src/model/sim/summary.h"
#include "src/model/sim/takeover.h"
#include "tests/unit/model/sim/sim_world.h"

namespace shmemctl::test {
namespace {

std::vector<sim::Takeover> after_changes(int nodes, int pairs,
                                         const std::vector<sim::NicChange>& changes) {
  return takeovers(small_cluster(nodes, pairs), small_cluster(nodes, pairs, {}, changes), changes);
}

TEST(SimTakeover, names_the_ports_that_the_mapping_gives_instead) {
  const std::vector<sim::NicChange> changes = {{1, "mlx5_2", {}, 0}};
  const sim::Cluster after = small_cluster(3, 4, {}, changes);
  const std::vector<sim::Takeover> all = after_changes(3, 4, changes);
  ASSERT_EQ(all.size(), 1U);
  const sim::Takeover& one = all[0];
  EXPECT_EQ(one.nodes, std::vector<int>{1});
  EXPECT_EQ(one.device, "mlx5_2");
  EXPECT_EQ(one.port, 1);
  EXPECT_EQ(one.pes, std::vector<int>{2});
  ASSERT_EQ(one.by.size(), 1U);
  const int port = after.kind(1).ports_of_pe[2].front();
  EXPECT_NE(port, 2);
  EXPECT_EQ(one.by[0].device, after.ports[static_cast<std::size_t>(port)].device);
  EXPECT_EQ(one.by[0].pes, std::vector<int>{2});
  EXPECT_EQ(one.by[0].shares, std::vector<int>{port}); // PE i has port i
}

TEST(SimTakeover, nodes_on_which_the_same_happens_are_one_entry) {
  std::vector<sim::Takeover> all = after_changes(5, 4, {{{}, "mlx5_0", {}, 0}});
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].nodes, (std::vector<int>{0, 1, 2, 3, 4}));
  // On node 3 the NIC that would step in is dead as well.
  const std::string other = all[0].by.at(0).device;
  all = after_changes(5, 4, {{{}, "mlx5_0", {}, 0}, {3, other, {}, 0}});
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].nodes, (std::vector<int>{0, 1, 2, 4}));
  EXPECT_EQ(all[1].nodes, std::vector<int>{3});
  EXPECT_EQ(all[2].device, other);
  for (const sim::Takeover& one : all)
    for (const sim::Substitute& by : one.by)
      EXPECT_FALSE(by.device == "mlx5_0" || (one.nodes.front() == 3 && by.device == other));
}

TEST(SimTakeover, a_slow_nic_keeps_its_ranks_and_an_unused_one_has_none) {
  EXPECT_TRUE(after_changes(2, 4, {{{}, "mlx5_1", {}, 0.5}}).empty());
  // Two NICs behind each switch, of which the mapping uses one.
  const Node node = testing::NodeBuilder::hgx(2, 2, 2).node;
  sim::ClusterRequest request;
  request.nodes = 2;
  request.mapping = mapping_of(node, Policy::nvshmem);
  request.mapping.world = World::deepep_ht;
  request.link_GBps = 400;
  const sim::Cluster before = build_cluster(node, request);
  std::string unused;
  for (std::size_t port = 0; port < before.ports.size(); ++port)
    if (std::none_of(before.kind(0).ports_of_pe.begin(), before.kind(0).ports_of_pe.end(),
                     [&](const std::vector<int>& used) {
                       return std::find(used.begin(), used.end(), static_cast<int>(port)) !=
                              used.end();
                     }))
      unused = before.ports[port].device;
  ASSERT_NE(unused, "");
  request.changes = {{{}, unused, {}, 0}};
  const std::vector<sim::Takeover> all =
      takeovers(before, build_cluster(node, request), request.changes);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_TRUE(all[0].pes.empty());
  EXPECT_TRUE(all[0].by.empty());
}

TEST(SimTakeover, is_in_the_report) {
  const Node node = testing::NodeBuilder::hgx(4).node;
  const MappingRequest mapping = mapping_of(node, Policy::nvshmem);
  sim::Request request = small_request(3, 24, 4, 16);
  request.link_GBps = 400;
  request.kill_nics = {"1/mlx5_0"};
  const sim::Cluster cluster = build_cluster(node, cluster_of(request, mapping));
  const sim::Traffic traffic = traffic_of(request, cluster, std::nullopt);
  const sim::Variants variants = simulate_variants(node, request, mapping, traffic);
  std::vector<sim::Summary> summaries;
  for (std::size_t i = 0; i < variants.results.size(); ++i)
    summaries.push_back(summarize(variants.names[i], variants.results[i], traffic));
  const nlohmann::json json =
      simulation_json(summaries, {traffic, effort_of(request, traffic), what_if_of(request), 3});
  const nlohmann::json& taken_over = json.at("taken_over");
  ASSERT_EQ(taken_over.size(), 1U);
  EXPECT_EQ(taken_over[0].at("first_node"), 1);
  EXPECT_EQ(taken_over[0].at("nodes"), 1);
  EXPECT_EQ(taken_over[0].at("device"), "mlx5_0");
  EXPECT_EQ(taken_over[0].at("pes"), nlohmann::json::parse("[0]"));
  EXPECT_EQ(taken_over[0].at("by").size(), 1U);
  // The mapping is the best one, and says so instead of repeating its numbers.
  EXPECT_EQ(json.at("variants").at(1).at("same_nics_as"), "given");
  EXPECT_FALSE(json.at("variants").at(2).contains("same_nics_as"));
  EXPECT_EQ(json.at("variants").at(0).at("even"), true);
  EXPECT_EQ(json.at("variants").at(0).at("busiest_alike"), 12);
  EXPECT_EQ(json.at("variants").at(2).at("even"), false);
}

} // namespace
} // namespace shmemctl::test
