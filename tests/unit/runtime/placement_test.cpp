// Where PEs are: nodes, local ranks and the distribution, for regular and odd jobs.
#include <algorithm>
#include <gtest/gtest.h>
#include <random>

#include "src/base/error.h"
#include "src/runtime/identity.h"

namespace shmemctl {
namespace {

std::vector<PeHost> hosts_on(const std::vector<int>& nodes) {
  std::vector<PeHost> hosts;
  for (const int node : nodes) {
    PeHost host;
    host.host_name = "host";
    host.node_id = 1000003ULL * static_cast<std::uint64_t>(node) + 17;
    host.machine_id = host.node_id;
    hosts.push_back(host);
  }
  return hosts;
}

Placement place_on(const std::vector<int>& nodes, int pe = 0) {
  return place(pe, hosts_on(nodes));
}

std::vector<int> block_nodes(int nodes, int pes_per_node) {
  std::vector<int> all;
  for (int pe = 0; pe < nodes * pes_per_node; ++pe)
    all.push_back(pe / pes_per_node);
  return all;
}
std::vector<int> round_robin_nodes(int nodes, int pes_per_node) {
  std::vector<int> all;
  for (int pe = 0; pe < nodes * pes_per_node; ++pe)
    all.push_back(pe % nodes);
  return all;
}

TEST(Placement, OneNode) {
  const Placement placement = place_on({0, 0, 0}, 1);
  EXPECT_EQ(placement.pe, 1);
  EXPECT_EQ(placement.n_pes, 3);
  EXPECT_EQ(placement.n_nodes(), 1);
  EXPECT_EQ(placement.my_node(), 0);
  EXPECT_EQ(placement.my_local_pe(), 1);
  EXPECT_EQ(placement.node_pes, (std::vector<std::vector<int>>{{0, 1, 2}}));
  EXPECT_EQ(placement.distribution, Distribution::block);
  EXPECT_TRUE(placement.equal_pes_per_node);
}

// NVSHMEM finds BLOCK only for one node and for as many nodes as PEs per node.
TEST(Placement, BlockIsFoundForEveryShape) {
  for (int nodes = 1; nodes <= 8; ++nodes)
    for (int per_node = 1; per_node <= 8; ++per_node) {
      const Placement placement = place_on(block_nodes(nodes, per_node));
      EXPECT_EQ(placement.distribution, Distribution::block) << nodes << " x " << per_node;
      EXPECT_EQ(placement.n_nodes(), nodes);
      EXPECT_TRUE(placement.equal_pes_per_node);
    }
}

TEST(Placement, RoundRobinIsFoundForEveryShape) {
  for (int nodes = 2; nodes <= 8; ++nodes)
    for (int per_node = 2; per_node <= 8; ++per_node) {
      const Placement placement = place_on(round_robin_nodes(nodes, per_node));
      EXPECT_EQ(placement.distribution, Distribution::round_robin) << nodes << " x " << per_node;
      EXPECT_TRUE(placement.equal_pes_per_node);
    }
}

// NVSHMEM reads past its array here and reports round robin.
TEST(Placement, OnePeOnEachNodeIsBlock) {
  for (int nodes = 1; nodes <= 17; ++nodes)
    EXPECT_EQ(place_on(block_nodes(nodes, 1)).distribution, Distribution::block) << nodes;
}

// NVSHMEM refuses such a job.
TEST(Placement, UnequalNodesAreLegalAndReported) {
  const Placement block = place_on({0, 0, 0, 1}, 3);
  EXPECT_FALSE(block.equal_pes_per_node);
  EXPECT_EQ(block.distribution, Distribution::block);
  EXPECT_EQ(block.my_node(), 1);
  EXPECT_EQ(block.my_local_pe(), 0);
  const Placement round_robin = place_on({0, 1, 2, 0, 1});
  EXPECT_FALSE(round_robin.equal_pes_per_node);
  EXPECT_EQ(round_robin.distribution, Distribution::round_robin);
}

TEST(Placement, IrregularJobs) {
  for (const std::vector<int>& nodes :
       {std::vector<int>{0, 1, 1, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 1, 2, 1, 0, 2}})
    EXPECT_EQ(place_on(nodes).distribution, Distribution::irregular);
}

TEST(Placement, NodesAreNumberedByFirstAppearance) {
  const Placement placement = place_on({7, 3, 7, 5, 3}, 4);
  EXPECT_EQ(placement.node, (std::vector<int>{0, 1, 0, 2, 1}));
  EXPECT_EQ(placement.local_pe, (std::vector<int>{0, 0, 1, 0, 1}));
  EXPECT_EQ(placement.node_pes, (std::vector<std::vector<int>>{{0, 2}, {1, 4}, {3}}));
  EXPECT_EQ(placement.my_node(), 1);
  EXPECT_EQ(placement.my_local_pe(), 1);
}

TEST(Placement, VirtualNodesCountNotMachines) {
  std::vector<PeHost> hosts = hosts_on({0, 1});
  hosts[0].machine_id = hosts[1].machine_id = 5;
  EXPECT_EQ(place(0, hosts).n_nodes(), 2);
  hosts = hosts_on({0, 0});
  hosts[1].machine_id = 6;
  EXPECT_EQ(place(0, hosts).n_nodes(), 1);
}

TEST(Placement, EqualHostNamesAreNotOneNode) {
  const Placement placement = place_on({0, 1});
  ASSERT_EQ(placement.hosts[0].host_name, placement.hosts[1].host_name);
  EXPECT_EQ(placement.n_nodes(), 2);
}

TEST(Placement, RandomJobsAreConsistent) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    std::vector<int> nodes(1 + random() % 40);
    for (int& node : nodes)
      node = static_cast<int>(random() % 6);
    const Placement placement = place_on(nodes);
    std::size_t members = 0;
    for (const std::vector<int>& pes : placement.node_pes) {
      EXPECT_TRUE(std::is_sorted(pes.begin(), pes.end()));
      members += pes.size();
    }
    EXPECT_EQ(members, nodes.size());
    for (std::size_t pe = 0; pe < nodes.size(); ++pe) {
      const auto node = static_cast<std::size_t>(placement.node[pe]);
      const auto local = static_cast<std::size_t>(placement.local_pe[pe]);
      EXPECT_EQ(placement.node_pes[node][local], static_cast<int>(pe));
      for (std::size_t other = 0; other < nodes.size(); ++other)
        EXPECT_EQ(placement.node[pe] == placement.node[other], nodes[pe] == nodes[other]);
    }
  }
}

TEST(Placement, RefusesAPeOutsideTheJob) {
  EXPECT_THROW(place(-1, hosts_on({0, 0})), Error);
  EXPECT_THROW(place(2, hosts_on({0, 0})), Error);
  EXPECT_THROW(place(0, {}), Error);
}

TEST(Placement, Names) {
  EXPECT_STREQ(to_string(Distribution::block), "block");
  EXPECT_STREQ(to_string(Distribution::round_robin), "round-robin");
  EXPECT_STREQ(to_string(Distribution::irregular), "irregular");
}

} // namespace
} // namespace shmemctl
