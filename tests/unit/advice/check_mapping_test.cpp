// Findings about the mapping, over mappings that NVSHMEM's rules give and over made-up ones.
#include <gtest/gtest.h>

#include "src/topo/advice/advice.h"
#include "tests/support/findings.h"
#include "tests/support/node_builder.h"

namespace shmemctl {

using shmemctl::testing::contains;
using shmemctl::testing::expect_well_formed;
using shmemctl::testing::find;
using shmemctl::testing::ids;
using shmemctl::testing::NodeBuilder;

namespace {

MappingRequest request_for(const Node& node, World world = World::node) {
  MappingRequest request;
  request.world = world;
  request.gpus = assign_gpus(node, -1, {});
  return request;
}

Findings checked(const Node& node, const MappingRequest& request) {
  Findings findings = check_mapping(node, map_nics(node, request));
  expect_well_formed(findings);
  return findings;
}

MappingRequest with_list(const Node& node, const std::string& list) {
  MappingRequest request = request_for(node);
  request.nvshmem.hca_list = list;
  return request;
}

MappingRequest with_pe_mapping(const Node& node, const std::string& list, bool enable = true) {
  MappingRequest request = request_for(node);
  request.nvshmem.hca_pe_mapping = list;
  request.nvshmem.enable_nic_pe_mapping = enable;
  return request;
}

/// A mapping as if some policy had given each PE that one NIC.
Mapping made_up(const Node& node, const std::vector<int>& nics) {
  Mapping mapping;
  mapping.request = request_for(node);
  mapping.request.policy = Policy::nccl;
  for (std::size_t pe = 0; pe < nics.size(); ++pe) {
    PeMapping answer;
    answer.pe = static_cast<int>(pe);
    answer.gpu = mapping.request.gpus[pe];
    answer.nics = {
        {nics[pe], 1, distance(node, answer.gpu, static_cast<int>(node.gpus.size()) + nics[pe])}};
    answer.used = 1;
    mapping.pes.push_back(answer);
  }
  fill_loads(node, mapping);
  return mapping;
}

const std::string all_eight = "mlx5_0:1:1,mlx5_1:1:1,mlx5_2:1:1,mlx5_3:1:1,mlx5_4:1:1,mlx5_5:1:1,"
                              "mlx5_6:1:1,mlx5_7:1:1";

} // namespace

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

TEST(MappingIgnored, BothListsSet) {
  const Node node = NodeBuilder::hgx(8).node;
  MappingRequest request = with_pe_mapping(node, all_eight);
  request.nvshmem.hca_list = "^mlx5_9";
  const Findings findings = checked(node, request);
  ASSERT_NE(find(findings, "mapping-ignored"), nullptr) << ids(findings);
  EXPECT_EQ(find(findings, "mapping-ignored")->fix, "unset NVSHMEM_HCA_LIST");
  request.nvshmem.hca_list.reset();
  EXPECT_EQ(ids(checked(node, request)), "");
}

TEST(MappingIgnored, AReleaseThatNeverReadsIt) {
  const Node node = NodeBuilder::hgx(8).node;
  MappingRequest request = with_pe_mapping(node, all_eight);
  request.nvshmem.version = {2, 10, 1};
  EXPECT_TRUE(contains(find(checked(node, request), "mapping-ignored")->message, "2.10.1"));
}

TEST(MappingNotPinned, WithoutTheSwitchItOnlyFilters) {
  const Node node = NodeBuilder::hgx(8).node;
  const Findings findings = checked(node, with_pe_mapping(node, all_eight, false));
  EXPECT_EQ(ids(findings), "mapping-not-pinned(warning)");
  EXPECT_EQ(findings[0].fix, "export NVSHMEM_ENABLE_NIC_PE_MAPPING=1");
}

TEST(MappingOrder, TheWrittenOrderHasNoEffect) {
  const Node node = NodeBuilder::hgx(2).node;
  const Findings findings = checked(node, with_pe_mapping(node, "mlx5_1:1:1,mlx5_0:1:1"));
  const Finding* order = find(findings, "mapping-order");
  ASSERT_NE(order, nullptr) << ids(findings);
  EXPECT_TRUE(contains(order->message, "PE 0 gets mlx5_0/1 and not mlx5_1/1")) << order->message;
  EXPECT_TRUE(contains(order->fix, "(mlx5_1:1 mlx5_0:1)")) << order->fix;
}

TEST(MappingOrder, NotForAFilterAndNotInOrder) {
  const Node node = NodeBuilder::hgx(4).node;
  EXPECT_EQ(find(checked(node, with_list(node, "mlx5_3,mlx5_2,mlx5_1,mlx5_0")), "mapping-order"),
            nullptr);
  EXPECT_EQ(
      find(checked(node, with_pe_mapping(node, "mlx5_0,mlx5_1,mlx5_2,mlx5_3")), "mapping-order"),
      nullptr);
}

TEST(MappingCount, UnderAndOver) {
  const Node node = NodeBuilder::hgx(4).node;
  const Findings under = checked(node, with_pe_mapping(node, "mlx5_0:1:1,mlx5_1:1:1"));
  ASSERT_NE(find(under, "mapping-count"), nullptr);
  EXPECT_TRUE(contains(find(under, "mapping-count")->message, "add up to 2 for 4 PEs"));
  const Findings over =
      checked(node, with_pe_mapping(node, "mlx5_0:1:2,mlx5_1:1:2,mlx5_2:1:2,mlx5_3:1:2"));
  ASSERT_NE(find(over, "mapping-count"), nullptr);
  EXPECT_TRUE(contains(find(over, "mapping-count")->message, "add up to 8 for 4 PEs"));
  const Findings exact = checked(node, with_pe_mapping(node, "mlx5_0,mlx5_1,mlx5_2,mlx5_3"));
  EXPECT_EQ(ids(exact), "");
}

TEST(MappingCount, MoreRowsThanNvshmemHolds) {
  const Node node = NodeBuilder::hgx(4).node;
  const Findings findings = checked(node, with_pe_mapping(node, "mlx5_0:1:40"));
  EXPECT_EQ(find(findings, "mapping-count")->severity, Severity::error);
}

TEST(MappingDuplicate, TheLastCountWins) {
  const Node node = NodeBuilder::hgx(4).node;
  const Findings findings =
      checked(node, with_pe_mapping(node, "mlx5_0:1:1,mlx5_0:1:2,mlx5_1,mlx5_2"));
  const Finding* twice = find(findings, "mapping-duplicate");
  ASSERT_NE(twice, nullptr) << ids(findings);
  EXPECT_EQ(twice->severity, Severity::warning);
  EXPECT_EQ(twice->fix, "export NVSHMEM_HCA_PE_MAPPING=mlx5_0:1:3,mlx5_1,mlx5_2");
}

TEST(MappingDuplicate, TwoPortsOfOneDeviceAreNone) {
  NodeBuilder builder;
  const int tree = builder.pcie_switch(builder.host_bridge(0));
  builder.gpu(tree);
  builder.gpu(tree);
  builder.nic(tree, "mlx5_0", {{1}, {2}});
  const Findings findings =
      checked(builder.node, with_pe_mapping(builder.node, "mlx5_0:1,mlx5_0:2"));
  EXPECT_EQ(ids(findings), "");
}

TEST(MappingDuplicate, APeThatUsesOnePortTwice) {
  const Node node = NodeBuilder::hgx(2, 1, 2).node;
  Mapping mapping = made_up(node, {0, 2});
  mapping.pes[0].nics.push_back(mapping.pes[0].nics[0]);
  mapping.pes[0].used = 2;
  fill_loads(node, mapping);
  EXPECT_EQ(find(check_mapping(node, mapping), "mapping-duplicate")->subject, "PE 0");
}

TEST(MappingMalformed, SaysTheColumn) {
  const Node node = NodeBuilder::hgx(4).node;
  const Findings findings = checked(node, with_list(node, "mlx5_0,mlx5_1, mlx5_2,mlx5_3"));
  const Finding* malformed = find(findings, "mapping-malformed");
  ASSERT_NE(malformed, nullptr) << ids(findings);
  EXPECT_EQ(malformed->severity, Severity::error); // mlx5_2 is lost
  EXPECT_TRUE(contains(malformed->message, "column 15")) << malformed->message;
  EXPECT_EQ(malformed->fix, "export NVSHMEM_HCA_LIST=mlx5_0,mlx5_1,mlx5_2,mlx5_3");
  EXPECT_EQ(find(findings, "hca-unknown"), nullptr);
}

TEST(MappingMalformed, AnEmptyItemIsNotWorse) {
  const Node node = NodeBuilder::hgx(2).node;
  EXPECT_EQ(ids(checked(node, with_list(node, "mlx5_0,mlx5_1,"))), "mapping-malformed(info)");
  EXPECT_EQ(ids(checked(node, with_list(node, "mlx5_0,mlx5_1"))), "");
}

TEST(HcaUnknown, WithTheNearestSpelling) {
  const Node node = NodeBuilder::hgx(4).node;
  const Findings findings = checked(node, with_list(node, "mlx5_0,mlx5_1,mlx5_2,mlx_3"));
  const Finding* unknown_name = find(findings, "hca-unknown");
  ASSERT_NE(unknown_name, nullptr) << ids(findings);
  EXPECT_EQ(unknown_name->severity, Severity::error);
  EXPECT_TRUE(contains(unknown_name->message, "mlx_3 (column 22), did you mean mlx5_3?"))
      << unknown_name->message;
  EXPECT_EQ(unknown_name->fix, "export NVSHMEM_HCA_LIST=mlx5_0,mlx5_1,mlx5_2,mlx5_3");
}

TEST(HcaUnknown, ExcludingAStrangerIsAWarning) {
  const Node node = NodeBuilder::hgx(4).node;
  EXPECT_EQ(ids(checked(node, with_list(node, "^ibp12s0"))), "hca-unknown(warning)");
}

TEST(HcaUnknown, ADeviceThatThePrefixHides) {
  NodeBuilder builder = NodeBuilder::hgx(2);
  for (Nic& nic : builder.node.nics)
    nic.name = "ibp" + nic.name.substr(5) + "s0";
  MappingRequest request = with_list(builder.node, "ibp0s0,ibp1s0");
  request.nvshmem.transport = NvshmemTransport::ibgda;
  request.nvshmem.version = {3, 4, 5};
  const Findings findings = checked(builder.node, request);
  const Finding* unknown_name = find(findings, "hca-unknown");
  ASSERT_NE(unknown_name, nullptr) << ids(findings);
  EXPECT_TRUE(contains(unknown_name->message, "NVSHMEM_HCA_PREFIX")) << unknown_name->message;
}

TEST(PortUnknown, APortThatTheDeviceDoesNotHave) {
  const Node node = NodeBuilder::hgx(2).node;
  const Findings findings = checked(node, with_list(node, "mlx5_0:1,mlx5_1:2"));
  const Finding* port = find(findings, "port-unknown");
  ASSERT_NE(port, nullptr) << ids(findings);
  EXPECT_EQ(port->severity, Severity::error);
  EXPECT_EQ(port->subject, "mlx5_1/2");
  EXPECT_EQ(find(checked(node, with_list(node, "mlx5_0:1,mlx5_1:1")), "port-unknown"), nullptr);
}

TEST(NicNotRdma, AListThatNamesAnInterface) {
  NodeBuilder builder = NodeBuilder::hgx(2);
  builder.plain_nic(builder.host_bridge(0), "eno1");
  builder.node.nics[1].ports[0].netdev = known(std::string("ibs1"), "built");
  const Findings findings = checked(builder.node, with_list(builder.node, "mlx5_0,ibs1,eno1"));
  const Finding* plain = find(findings, "nic-not-rdma");
  ASSERT_NE(plain, nullptr) << ids(findings);
  EXPECT_TRUE(contains(plain->message, "ibs1 is the network interface of mlx5_1"));
  EXPECT_TRUE(contains(plain->message, "eno1 is no RDMA device"));
  EXPECT_EQ(plain->fix, "export NVSHMEM_HCA_LIST=mlx5_0,mlx5_1");
}

TEST(MappingEmpty, AListOrAPrefixThatLeavesNothing) {
  NodeBuilder builder = NodeBuilder::hgx(2);
  const Findings excluded = checked(builder.node, with_list(builder.node, "^mlx5_0,mlx5_1"));
  EXPECT_EQ(ids(excluded), "mapping-empty(error)");
  EXPECT_EQ(excluded[0].fix, "unset NVSHMEM_HCA_LIST");
  for (Nic& nic : builder.node.nics)
    nic.name = "ibp" + nic.name.substr(5) + "s0";
  MappingRequest request = request_for(builder.node);
  request.nvshmem.transport = NvshmemTransport::ibgda;
  request.nvshmem.version = {3, 4, 5};
  const Findings hidden = checked(builder.node, request);
  EXPECT_EQ(ids(hidden), "mapping-empty(error)");
  EXPECT_EQ(hidden[0].fix, "export NVSHMEM_HCA_PREFIX=ibp");
}

TEST(MappingEmpty, UcxChoosesByItself) {
  const Node node = NodeBuilder::hgx(2).node;
  MappingRequest request = request_for(node);
  request.nvshmem.transport = NvshmemTransport::ucx;
  EXPECT_EQ(ids(checked(node, request)), "");
}

TEST(CheckMapping, AnyBytesGiveWellFormedFindings) {
  const Node node = NodeBuilder::hgx(3).node;
  std::string noise(3000, ',');
  for (std::size_t i = 0; i < noise.size(); ++i)
    noise[i] = static_cast<char>((i * 7919 + i / 13) % 256);
  expect_well_formed(checked(node, with_list(node, noise)));
  expect_well_formed(checked(node, with_pe_mapping(node, noise)));
  expect_well_formed(checked(node, with_pe_mapping(node, "mlx5_0:1:2147483647,mlx5_1:-9:-9")));
}

} // namespace shmemctl
