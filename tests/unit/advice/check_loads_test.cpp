// Findings about who carries what, over mappings by the rules and made-up ones.
#include <gtest/gtest.h>

#include "tests/unit/advice/mapping_requests.h"

namespace shmemctl {

TEST(CheckMapping, AHealthyHgxHasNoFindingInAnyWorldAndPolicy) {
  const Node node = NodeBuilder::hgx(8).node;
  for (World world : {World::node, World::deepep_ht, World::deepep_ll})
    for (Policy policy : {Policy::nvshmem, Policy::nccl, Policy::optimal}) {
      MappingRequest request = request_for(node, world);
      request.policy = policy;
      EXPECT_EQ(ids(checked(node, request)), "") << to_string(world) << " " << to_string(policy);
    }
}

TEST(CheckMapping, NothingToSayWithoutGpusAndNics) {
  EXPECT_EQ(ids(checked(Node{}, request_for(Node{}))), "");
}

TEST(MappingCollapse, HighThroughputModeSendsEveryRankToTheFirstNic) {
  const Node node = NodeBuilder::hgx(8).node;
  MappingRequest request = with_pe_mapping(node, all_eight);
  request.world = World::deepep_ht;
  const Findings findings = checked(node, request);
  const Finding* collapse = find(findings, "mapping-collapse");
  ASSERT_NE(collapse, nullptr) << ids(findings);
  EXPECT_EQ(collapse->severity, Severity::error);
  EXPECT_EQ(collapse->subject, "mlx5_0/1");
  EXPECT_TRUE(contains(collapse->message, "GPU 0-7 (PE 0-7) share mlx5_0/1")) << collapse->message;
  EXPECT_TRUE(contains(collapse->message, "1/8 of the bandwidth")) << collapse->message;
  EXPECT_TRUE(contains(collapse->fix, "export NVSHMEM_HCA_LIST=")) << collapse->fix;
  EXPECT_TRUE(contains(collapse->fix, "(mlx5_0:1 mlx5_1:1 ")) << collapse->fix;
  EXPECT_EQ(find(findings, "nic-hotspot"), nullptr);
  EXPECT_EQ(find(findings, "nic-idle"), nullptr);
}

TEST(MappingCollapse, TwoRanksBehindOneSwitchMissTheTwin) {
  const Node node = NodeBuilder::hgx(4, 2, 2).node;
  const Findings findings = checked(node, request_for(node, World::deepep_ht));
  const Finding* collapse = find(findings, "mapping-collapse");
  ASSERT_NE(collapse, nullptr) << ids(findings);
  EXPECT_EQ(collapse->severity, Severity::error);
  EXPECT_TRUE(contains(collapse->message, "GPU 0, 1 (PE 0, 1) share mlx5_0/1"))
      << collapse->message;
  EXPECT_TRUE(contains(collapse->message,
                       "mlx5_1/1, mlx5_3/1, mlx5_5/1 and mlx5_7/1, equally near, "
                       "are idle"))
      << collapse->message;
  EXPECT_TRUE(contains(collapse->message, "half the bandwidth")) << collapse->message;
}

TEST(MappingCollapse, NotInTheNodesOwnWorld) {
  const Node node = NodeBuilder::hgx(8).node;
  EXPECT_EQ(find(checked(node, with_pe_mapping(node, all_eight)), "mapping-collapse"), nullptr);
}

TEST(NicHotspot, AListThatLeavesOneNicIsAnError) {
  const Node node = NodeBuilder::hgx(8).node;
  const Findings findings = checked(node, with_list(node, "mlx5_0:1"));
  EXPECT_EQ(ids(findings), "nic-hotspot(error)");
  EXPECT_TRUE(contains(findings[0].fix, "unset NVSHMEM_HCA_LIST; export "
                                        "NVSHMEM_ENABLE_NIC_PE_MAPPING=1"))
      << findings[0].fix;
}

TEST(NicHotspot, TheDistanceRuleOfTheFirstReleases) {
  const Node node = NodeBuilder::hgx(4, 2, 2).node;
  MappingRequest request = request_for(node);
  request.nvshmem.version = {1, 1, 0};
  const Findings findings = checked(node, request);
  EXPECT_EQ(ids(findings), "nic-hotspot(error)");
  EXPECT_TRUE(contains(findings[0].message, "equally near"));
}

TEST(NicHotspot, UnevenButNotTwiceIsAWarning) {
  const Node node = NodeBuilder::hgx(4, 2, 1).node; // 8 GPUs, 4 NICs: two each at best
  const Findings findings = check_mapping(node, made_up(node, {0, 0, 0, 1, 2, 2, 3, 3}));
  const Finding* hot = find(findings, "nic-hotspot");
  ASSERT_NE(hot, nullptr);
  EXPECT_EQ(hot->severity, Severity::warning);
  EXPECT_EQ(hot->subject, "mlx5_0/1");
}

TEST(NicHotspot, UnavoidableSharingIsInformation) {
  const Node node = NodeBuilder::hgx(4, 2, 1).node;
  const Findings findings = checked(node, request_for(node));
  EXPECT_EQ(ids(findings), "nic-hotspot(info)");
  EXPECT_TRUE(contains(findings[0].message, "8 PEs share 4 NIC ports")) << findings[0].message;
}

TEST(NicIdle, APortThatTheOptimumWouldUse) {
  const Node node = NodeBuilder::hgx(4).node;
  MappingRequest request = request_for(node);
  request.gpus = {0, 1, 2, 3, 0, 1};
  // Two each on three of four ports: as good for the worst, and one is idle.
  Mapping mapping;
  mapping.request = request;
  mapping.request.policy = Policy::nccl;
  for (int pe = 0; pe < 6; ++pe)
    mapping.pes.push_back(
        {pe, request.gpus[static_cast<std::size_t>(pe)], {{pe % 3, 1, {}}}, 1, "nccl", ""});
  fill_loads(node, mapping);
  const Findings findings = check_mapping(node, mapping);
  const Finding* idle = find(findings, "nic-idle");
  ASSERT_NE(idle, nullptr) << ids(findings);
  EXPECT_EQ(idle->severity, Severity::warning);
  EXPECT_EQ(idle->subject, "mlx5_3/1");
}

TEST(NicIdle, TwoPortsPerGpuNeedIbgdaToBeUsed) {
  const Node node = NodeBuilder::hgx(4, 1, 2).node;
  EXPECT_EQ(ids(checked(node, request_for(node))), "nic-idle(info)");
  MappingRequest request = request_for(node);
  request.nvshmem.transport = NvshmemTransport::ibgda;
  request.nvshmem.ibgda_multi_port = true;
  EXPECT_EQ(ids(checked(node, request)), "");
}

TEST(NicFar, APeOnTheOtherSocketsNic) {
  const Node node = NodeBuilder::hgx(4).node;
  const Findings findings = check_mapping(node, made_up(node, {2, 1, 0, 3}));
  EXPECT_EQ(ids(findings), "nic-far(warning)");
  EXPECT_EQ(findings[0].subject, "PE 0, 2");
  EXPECT_TRUE(
      contains(findings[0].message, "PE 0 uses mlx5_2/1 (SYS) though mlx5_0/1 (PIX) is nearer"))
      << findings[0].message;
  EXPECT_TRUE(contains(findings[0].fix, "NCCL_IB_HCA"));
}

TEST(NicFar, NotWhereTheOptimumIsAsFar) {
  NodeBuilder builder;
  const int near_switch = builder.pcie_switch(builder.host_bridge(0));
  builder.gpu(near_switch);
  builder.gpu(near_switch);
  builder.nic(near_switch, "mlx5_0");
  builder.nic_at_root(builder.host_bridge(1), "mlx5_1");
  EXPECT_EQ(find(check_mapping(builder.node, made_up(builder.node, {1, 0})), "nic-far"), nullptr);
}

TEST(NicFar, ADownPortShiftsThePinnedPes) {
  // Research example 2b: with mlx5_2 down and PEs pinned, PEs 2 to 6 are all on a wrong NIC.
  NodeBuilder builder = NodeBuilder::hgx(8);
  builder.node.nics[2].ports[0].state = known(PortState::down, "built");
  MappingRequest request = request_for(builder.node);
  request.nvshmem.enable_nic_pe_mapping = true;
  const Findings findings = checked(builder.node, request);
  const Finding* far = find(findings, "nic-far");
  ASSERT_NE(far, nullptr) << ids(findings);
  EXPECT_TRUE(contains(far->subject, "PE 3-7")) << far->subject; // PE 2 has none near
}

TEST(NicOffFabric, APeOnTheManagementNic) {
  NodeBuilder builder = NodeBuilder::hgx(2);
  builder.nic_at_root(builder.host_bridge(0), "mlx5_2",
                      {{1, PortState::active, LinkLayer::ethernet, 25}});
  const Findings findings = check_mapping(builder.node, made_up(builder.node, {0, 2}));
  const Finding* off = find(findings, "nic-off-fabric");
  ASSERT_NE(off, nullptr) << ids(findings);
  EXPECT_EQ(off->severity, Severity::error);
  EXPECT_TRUE(contains(off->message, "PE 1 uses mlx5_2/1 (Ethernet, 25 Gb/s) while the compute "
                                     "fabric is mlx5_0/1 and mlx5_1/1 (InfiniBand, 400 Gb/s)"))
      << off->message;
  EXPECT_EQ(find(check_mapping(builder.node, made_up(builder.node, {0, 1})), "nic-off-fabric"),
            nullptr);
}

TEST(NicOffFabric, IsAWarningWhereOnlyTheNameTells) {
  const Node node = NodeBuilder::from_matrix({"ibp1s0", "ibp2s0", "rocep3s0"},
                                             {{"NODE", "NODE", "NODE"}, {"NODE", "NODE", "NODE"}});
  EXPECT_EQ(find(check_mapping(node, made_up(node, {0, 2})), "nic-off-fabric")->severity,
            Severity::warning);
}

TEST(MappingDuplicate, APeThatUsesOnePortTwice) {
  const Node node = NodeBuilder::hgx(2, 1, 2).node;
  Mapping mapping = made_up(node, {0, 2});
  mapping.pes[0].nics.push_back(mapping.pes[0].nics[0]);
  mapping.pes[0].used = 2;
  fill_loads(node, mapping);
  EXPECT_EQ(find(check_mapping(node, mapping), "mapping-duplicate")->subject, "PE 0");
}

} // namespace shmemctl
