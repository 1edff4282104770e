#include <gtest/gtest.h>

#include "src/model/topo/advice/advice.h"
#include "src/model/topo/advice/env_fix.h"
#include "src/model/topo/mapping/ports.h"
#include "tests/support/findings.h"
#include "tests/support/node_builder.h"

namespace shmemctl {

using shmemctl::testing::contains;
using shmemctl::testing::NodeBuilder;

namespace {

Mapping optimal_of(const Node& node, MappingRequest request = {}) {
  request.policy = Policy::optimal;
  if (request.gpus.empty())
    request.gpus = assign_gpus(node, -1, {});
  return map_nics(node, request);
}

const Advice& find(const std::vector<Advice>& all, const std::string& library,
                   World world = World::node) {
  for (const Advice& advice : all)
    if (advice.library == library && advice.world == world)
      return advice;
  throw std::runtime_error("no advice for " + library);
}

/// What NVSHMEM does if every rank follows the advice.
Mapping simulated(const Node& node, const Mapping& optimal, const Advice& advice) {
  Mapping together;
  for (std::size_t pe = 0; pe < optimal.pes.size(); ++pe) {
    MappingRequest request = optimal.request;
    request.policy = Policy::nvshmem;
    request.world = advice.world;
    request.nvshmem = advice.settings_per_rank.at(pe);
    together.pes.push_back(map_nics(node, request).pes[pe]);
  }
  return together;
}

void expect_confirmed(const Node& node, const Mapping& optimal) {
  for (const Advice& advice : advise(node, optimal)) {
    EXPECT_FALSE(advice.lines.empty()) << advice.library << " " << advice.note;
    EXPECT_FALSE(advice.note.empty());
    if (advice.library != "nvshmem")
      continue;
    EXPECT_TRUE(
        at_least_as_good(score(node, simulated(node, optimal, advice)), score(node, optimal)))
        << to_string(advice.world);
  }
}

Node h20() {
  return NodeBuilder::from_matrix({"mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"},
                                  {{"PIX", "NODE", "SYS", "SYS"},
                                   {"NODE", "NODE", "SYS", "SYS"},
                                   {"NODE", "PIX", "SYS", "SYS"},
                                   {"NODE", "NODE", "SYS", "SYS"},
                                   {"SYS", "SYS", "PIX", "NODE"},
                                   {"SYS", "SYS", "NODE", "NODE"},
                                   {"SYS", "SYS", "NODE", "PIX"},
                                   {"SYS", "SYS", "NODE", "NODE"}});
}

} // namespace

TEST(Advise, NothingToSetWhereNvshmemFindsIt) {
  const Node node = NodeBuilder::hgx(8).node;
  const Mapping optimal = optimal_of(node);
  const std::vector<Advice> all = advise(node, optimal);
  ASSERT_EQ(all.size(), 5U);
  for (World world : {World::node, World::deepep_ht, World::deepep_ll})
    EXPECT_EQ(find(all, "nvshmem", world).lines[0].substr(0, 5), "unset");
  EXPECT_EQ(find(all, "nccl").lines, (std::vector<std::string>{"unset NCCL_IB_HCA"}));
  EXPECT_TRUE(contains(find(all, "ucx").lines[0], "(mlx5_0:1 mlx5_1:1 "));
  expect_confirmed(node, optimal);
}

TEST(Advise, OneListPerRankInHighThroughputMode) {
  const Node node = NodeBuilder::hgx(4, 2, 2).node;
  MappingRequest request;
  request.nvshmem.version = {3, 6, 5};
  const Mapping optimal = optimal_of(node, request);
  const Advice advice = find(advise(node, optimal), "nvshmem", World::deepep_ht);
  ASSERT_EQ(advice.lines.size(), 3U);
  EXPECT_EQ(advice.lines[1], "by_rank=(mlx5_0:1 mlx5_1:1 mlx5_2:1 mlx5_3:1 mlx5_4:1 mlx5_5:1 "
                             "mlx5_6:1 mlx5_7:1)");
  EXPECT_TRUE(contains(advice.lines[2], "SLURM_LOCALID")) << advice.lines[2];
  EXPECT_TRUE(contains(advice.note, "in each rank's process")) << advice.note;
  EXPECT_EQ(advice.settings_per_rank[3].hca_list, "mlx5_3:1");
  expect_confirmed(node, optimal);
}

TEST(Advise, OneSettingForAllRanksWhereTheReleaseHasOne) {
  const Node node = NodeBuilder::hgx(4, 2, 2).node;
  const Mapping optimal = optimal_of(node);
  const Advice advice = find(advise(node, optimal), "nvshmem", World::deepep_ht);
  EXPECT_EQ(advice.lines.back(),
            "export NVSHMEM_NETDEVS_POLICY=EXTERNAL_SHARING_PCIE_SWITCH_NIC_EXCLUSIVE");
  EXPECT_EQ(advice.settings_per_rank.size(), 8U);
  expect_confirmed(node, optimal);
}

TEST(Advise, PeMappingWhereTheDistanceRuleGoesWrong) {
  // Before 2.0 every PE takes the lowest of its nearest NICs.
  const Node node = NodeBuilder::hgx(4, 2, 2).node;
  MappingRequest request;
  request.nvshmem.version = {1, 1, 0};
  const Mapping optimal = optimal_of(node, request);
  const Advice advice = find(advise(node, optimal), "nvshmem");
  ASSERT_EQ(advice.lines.size(), 3U);
  EXPECT_EQ(advice.lines[2],
            "export NVSHMEM_HCA_PE_MAPPING=mlx5_0:1:1,mlx5_1:1:1,mlx5_2:1:1,mlx5_3:1:1,mlx5_4:1:1,"
            "mlx5_5:1:1,mlx5_6:1:1,mlx5_7:1:1");
  expect_confirmed(node, optimal);
}

TEST(Advise, SharedNicsAndShuffledNics) {
  expect_confirmed(h20(), optimal_of(h20()));
  const Node shuffled = NodeBuilder::from_matrix(
      {"mlx5_0", "mlx5_1", "mlx5_2"},
      {{"SYS", "SYS", "PIX"}, {"PIX", "SYS", "SYS"}, {"SYS", "PIX", "SYS"}});
  expect_confirmed(shuffled, optimal_of(shuffled));
}

TEST(Advise, ADefaultThatUsesTheManagementNicIsNotGoodEnough) {
  // 8 H20 with four InfiniBand NICs and one for management, known by their names only.
  const Node node =
      NodeBuilder::from_matrix({"ibp14s0", "ibp71s0", "ibp134s0", "ibp195s0", "rocep32s0f0"},
                               {{"PIX", "NODE", "SYS", "SYS", "NODE"},
                                {"NODE", "NODE", "SYS", "SYS", "NODE"},
                                {"NODE", "PIX", "SYS", "SYS", "NODE"},
                                {"NODE", "NODE", "SYS", "SYS", "NODE"},
                                {"SYS", "SYS", "PIX", "NODE", "SYS"},
                                {"SYS", "SYS", "NODE", "NODE", "SYS"},
                                {"SYS", "SYS", "NODE", "PIX", "SYS"},
                                {"SYS", "SYS", "NODE", "NODE", "SYS"}});
  const Mapping optimal = optimal_of(node);
  const Advice advice = find(advise(node, optimal), "nvshmem");
  EXPECT_EQ(advice.lines.back(), "export NVSHMEM_HCA_LIST=^rocep32s0f0");
  expect_confirmed(node, optimal);
}

TEST(Advise, ManagementNicsAreLeftOut) {
  NodeBuilder builder;
  const int host = builder.host_bridge(0);
  builder.nic_at_root(host, "mlx5_0", {{1, PortState::active, LinkLayer::ethernet, 25}});
  builder.nic_at_root(host, "mlx5_1");
  builder.gpu_at_root(host);
  builder.gpu_at_root(host);
  const Mapping optimal = optimal_of(builder.node);
  const std::vector<Advice> all = advise(builder.node, optimal);
  EXPECT_EQ(find(all, "nccl").lines, (std::vector<std::string>{"export NCCL_IB_HCA==mlx5_1:1"}));
  EXPECT_EQ(find(all, "ucx").lines, (std::vector<std::string>{"export UCX_NET_DEVICES=mlx5_1:1"}));
  EXPECT_EQ(optimal.load_factor, 1.0);
}

TEST(Advise, APrefixThatIbgdaNeeds) {
  NodeBuilder builder = NodeBuilder::hgx(2);
  for (Nic& nic : builder.node.nics)
    nic.name = "ibp" + nic.name.substr(5) + "s0";
  MappingRequest request;
  request.nvshmem.transport = NvshmemTransport::ibgda;
  request.nvshmem.version = {3, 4, 5};
  const Mapping optimal = optimal_of(builder.node, request);
  EXPECT_EQ(find(advise(builder.node, optimal), "nvshmem").lines[0],
            "export NVSHMEM_HCA_PREFIX=ibp");
  expect_confirmed(builder.node, optimal);
}

TEST(Advise, AConflictingPrefixIsUnset) {
  const Node node = NodeBuilder::hgx(2).node;
  MappingRequest request;
  request.nvshmem.transport = NvshmemTransport::ibgda;
  request.nvshmem.hca_prefix = "ibp";
  const Mapping optimal = optimal_of(node, request);
  EXPECT_EQ(find(advise(node, optimal), "nvshmem").lines[0], "unset NVSHMEM_HCA_PREFIX");
  expect_confirmed(node, optimal);
}

TEST(Advise, WhatTheUserLeavesOutStaysOut) {
  const Node node = NodeBuilder::hgx(3).node;
  MappingRequest request;
  request.nvshmem.hca_list = "^mlx5_1";
  const Mapping optimal = optimal_of(node, request);
  const Advice advice = find(advise(node, optimal), "nvshmem");
  ASSERT_FALSE(advice.settings_per_rank.empty()) << advice.note;
  for (const PeMapping& pe : simulated(node, optimal, advice).pes)
    EXPECT_NE(pe.nics[0].nic, 1);
}

TEST(Advise, SaysSoWhereItCannotBeExpressed) {
  const Node node = NodeBuilder::hgx(2).node;
  MappingRequest request;
  request.nvshmem.transport = NvshmemTransport::ucx;
  const Advice advice = find(advise(node, optimal_of(node, request)), "nvshmem");
  EXPECT_TRUE(advice.lines.empty());
  EXPECT_TRUE(advice.settings_per_rank.empty());
  EXPECT_TRUE(contains(advice.note, "cannot express"));
}

TEST(Advise, NothingWithoutNics) {
  NodeBuilder builder;
  builder.gpu_at_root(builder.host_bridge(0));
  EXPECT_TRUE(advise(builder.node, optimal_of(builder.node)).empty());
  EXPECT_TRUE(advise(Node{}, optimal_of(Node{})).empty());
}

TEST(Advise, SixtyFourBySixtyFour) {
  const Node node = NodeBuilder::hgx(16, 4, 4).node;
  expect_confirmed(node, optimal_of(node));
}

TEST(EnvLines, PeMappingCountsAndRepeats) {
  const Node node = NodeBuilder::hgx(4).node;
  Mapping mapping;
  auto value_of = [&](const std::vector<int>& nics) {
    mapping.pes.clear();
    for (int nic : nics)
      mapping.pes.push_back({0, 0, {{nic, 1, {}}}, 1, "", ""});
    return hca_pe_mapping_value(node, mapping);
  };
  EXPECT_EQ(value_of({0, 0, 1, 1}), "mlx5_0:1:2,mlx5_1:1:2");
  EXPECT_EQ(value_of({0, 1, 0, 1}), "mlx5_0:1:1,mlx5_1:1:1");
  EXPECT_EQ(value_of({1, 0}), std::nullopt);
  EXPECT_EQ(value_of({}), std::nullopt);
}

TEST(EnvLines, HostileNamesAreQuoted) {
  EXPECT_EQ(shell_word("mlx5_0:1"), "mlx5_0:1");
  EXPECT_EQ(shell_word("a; rm -rf b"), "'a; rm -rf b'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("a\nb").find('\n'), std::string::npos);
}

} // namespace shmemctl
