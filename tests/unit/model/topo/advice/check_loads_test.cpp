// Findings about the load of NICs, for mappings by the rules and for synthetic ones.
#include <gtest/gtest.h>

#include "tests/unit/model/topo/advice/mapping_requests.h"

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
  EXPECT_EQ(collapse->fix, "unset NVSHMEM_HCA_PE_MAPPING NVSHMEM_ENABLE_NIC_PE_MAPPING");
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
  EXPECT_EQ(collapse->fix,
            "export NVSHMEM_NETDEVS_POLICY=EXTERNAL_SHARING_PCIE_SWITCH_NIC_EXCLUSIVE");
}

TEST(MappingCollapse, BeforeNetdevsPolicyEachRankGetsAListThatFailsOutsideOfARank) {
  const Node node = NodeBuilder::hgx(4, 2, 2).node;
  MappingRequest request = request_for(node, World::deepep_ht);
  request.nvshmem.version = {3, 6, 5};
  const Findings findings = checked(node, request);
  const Finding* collapse = find(findings, "mapping-collapse");
  ASSERT_NE(collapse, nullptr) << ids(findings);
  EXPECT_EQ(collapse->fix,
            "by_rank=(mlx5_0:1 mlx5_1:1 mlx5_2:1 mlx5_3:1 mlx5_4:1 mlx5_5:1 mlx5_6:1 mlx5_7:1); "
            "export NVSHMEM_HCA_LIST=${by_rank[${LOCAL_RANK:-${OMPI_COMM_WORLD_LOCAL_RANK:-"
            "${SLURM_STEP_ID:?run this in each rank}*0+$SLURM_LOCALID}}]:?no NIC for this rank}"
            "  # for bash in each rank's own process, not where the job is started");
}

TEST(MappingCollapse, NotInTheNodesOwnWorld) {
  const Node node = NodeBuilder::hgx(8).node;
  EXPECT_EQ(find(checked(node, with_pe_mapping(node, all_eight)), "mapping-collapse"), nullptr);
}

TEST(NicHotspot, AListThatLeavesOneNicIsAnError) {
  const Node node = NodeBuilder::hgx(8).node;
  const Findings findings = checked(node, with_list(node, "mlx5_0:1"));
  EXPECT_EQ(ids(findings), "nic-hotspot(error)");
  EXPECT_EQ(findings[0].fix, "unset NVSHMEM_HCA_LIST");
}

TEST(NicHotspot, PesArePinnedWhereTheReleaseDoesNotFindItByItself) {
  const Node node = NodeBuilder::hgx(4, 2, 2).node;
  MappingRequest request = with_list(node, "mlx5_0:1");
  request.nvshmem.version = {1, 1, 0};
  const Findings findings = checked(node, request);
  EXPECT_EQ(ids(findings), "nic-hotspot(error)");
  EXPECT_TRUE(contains(findings[0].fix, "unset NVSHMEM_HCA_LIST; export "
                                        "NVSHMEM_ENABLE_NIC_PE_MAPPING=1 NVSHMEM_HCA_PE_MAPPING="))
      << findings[0].fix;
}

TEST(NicHotspot, ANicThatTheUserLeavesOutIsNotIdle) {
  const Node node = NodeBuilder::hgx(2).node;
  const Findings findings = checked(node, with_list(node, "^mlx5_1"));
  EXPECT_EQ(ids(findings), "nic-hotspot(info)");
  EXPECT_TRUE(contains(findings[0].message, "1 NIC port that NVSHMEM_HCA_LIST leaves"))
      << findings[0].message;
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
  const Findings findings = check_mapping(node, fake_mapping(node, {0, 0, 0, 1, 2, 2, 3, 3}));
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
  const Findings findings = check_mapping(node, fake_mapping(node, {2, 1, 0, 3}));
  EXPECT_EQ(ids(findings), "nic-far(warning)");
  EXPECT_EQ(findings[0].subject, "PE 0, 2");
  EXPECT_TRUE(
      contains(findings[0].message, "PE 0 uses mlx5_2/1 (SYS) though mlx5_0/1 (PIX) is nearer"))
      << findings[0].message;
  EXPECT_TRUE(contains(findings[0].fix, "NCCL_IB_HCA"));
}

TEST(NicFar, NotIfTheOptimumIsEquallyDistant) {
  NodeBuilder builder;
  const int host = builder.host_bridge(0);
  builder.gpu_at_root(host);
  builder.gpu_at_root(host);
  builder.nic_at_root(host, "mlx5_0");
  builder.nic_at_root(builder.host_bridge(1), "mlx5_1");
  EXPECT_EQ(find(check_mapping(builder.node, fake_mapping(builder.node, {1, 0})), "nic-far"),
            nullptr);
}

TEST(NicFar, ADownPortShiftsThePinnedPes) {
  // With mlx5_2 down and PEs pinned, PEs 2 to 6 are all on a wrong NIC.
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
  const Findings findings = check_mapping(builder.node, fake_mapping(builder.node, {0, 2}));
  const Finding* off = find(findings, "nic-off-fabric");
  ASSERT_NE(off, nullptr) << ids(findings);
  EXPECT_EQ(off->severity, Severity::error);
  EXPECT_TRUE(contains(off->message, "PE 1 uses mlx5_2/1 (Ethernet, 25 Gb/s) while the compute "
                                     "fabric is mlx5_0/1 and mlx5_1/1 (InfiniBand, 400 Gb/s)"))
      << off->message;
  EXPECT_EQ(find(check_mapping(builder.node, fake_mapping(builder.node, {0, 1})), "nic-off-fabric"),
            nullptr);
}

TEST(NicOffFabric, IsAWarningWhereOnlyTheNameTells) {
  const Node node = NodeBuilder::from_matrix({"ibp1s0", "ibp2s0", "rocep3s0"},
                                             {{"NODE", "NODE", "NODE"}, {"NODE", "NODE", "NODE"}});
  EXPECT_EQ(find(check_mapping(node, fake_mapping(node, {0, 2})), "nic-off-fabric")->severity,
            Severity::warning);
}

TEST(NicOffFabric, WhereEfaIsTheNetworkAnHcaIsForManagement) {
  NodeBuilder builder;
  const int tree = builder.pcie_switch(builder.host_bridge(0));
  builder.gpu(tree);
  builder.nic(tree, "ibp18s0f0", {});
  const int efa = builder.nic(tree, "rdmap19s0", {});
  builder.pci(builder.node.nics[static_cast<std::size_t>(efa)].pci).vendor =
      known(pci_ids::amazon, "built");
  builder.node.nics[static_cast<std::size_t>(efa)].driver = known(std::string("efa"), "built");
  MappingRequest request = request_for(builder.node);
  request.policy = Policy::optimal;
  const Mapping optimal = map_nics(builder.node, request);
  EXPECT_EQ(optimal.pes[0].nics[0].nic, efa);
  EXPECT_EQ(ids(check_mapping(builder.node, optimal)), "");
  const Findings findings = check_mapping(builder.node, fake_mapping(builder.node, {0}));
  const Finding* off = find(findings, "nic-off-fabric");
  ASSERT_NE(off, nullptr) << ids(findings);
  EXPECT_TRUE(contains(off->message, "while the compute fabric is rdmap19s0/1 (EFA)"))
      << off->message;
}

TEST(NicWithoutGpu, StorageNicsAreNamedTogether) {
  NodeBuilder builder = NodeBuilder::hgx(4);
  builder.nic_at_root(builder.host_bridge(0), "mlx5_4");
  builder.nic_at_root(builder.host_bridge(1), "mlx5_5");
  const Mapping mapping = map_nics(builder.node, request_for(builder.node));
  EXPECT_DOUBLE_EQ(mapping.load_factor, 1.0);
  const Findings findings = checked(builder.node, request_for(builder.node));
  EXPECT_EQ(ids(findings), "nic-without-gpu(info)");
  EXPECT_EQ(findings[0].subject, "mlx5_4 and mlx5_5");
  EXPECT_EQ(findings[0].fix, "export NVSHMEM_HCA_LIST=^mlx5_4,mlx5_5");
  EXPECT_EQ(ids(checked(builder.node, with_list(builder.node, "^mlx5_4,mlx5_5"))), "");
}

TEST(NicWithoutGpu, StorageNicsAreNotHandedToRanks) {
  // One switch with a GPU and a NIC for each GPU, and two NICs with a switch of their own.
  const Node node =
      NodeBuilder::from_matrix({"mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"},
                               {{"PIX", "NODE", "NODE", "NODE"}, {"NODE", "PIX", "NODE", "NODE"}});
  EXPECT_EQ(ids(checked(node, request_for(node))), "nic-without-gpu(info)");
  MappingRequest pinned = request_for(node);
  pinned.gpus = {0, 1, 0, 1};
  pinned.nvshmem.enable_nic_pe_mapping = true; // PE 2 gets mlx5_2, PE 3 mlx5_3
  const Findings findings = checked(node, pinned);
  for (const char* id : {"nic-far", "nic-without-gpu"})
    ASSERT_NE(find(findings, id), nullptr) << id << " not in " << ids(findings);
  EXPECT_EQ(find(findings, "nic-idle"), nullptr) << ids(findings);
  EXPECT_TRUE(contains(find(findings, "nic-far")->fix, "^mlx5_2,mlx5_3") ||
              !contains(find(findings, "nic-far")->fix, "mlx5_2"))
      << find(findings, "nic-far")->fix;
  MappingRequest several = request_for(node);
  several.nvshmem.transport = NvshmemTransport::ibgda;
  several.nvshmem.ibgda_multi_port = true;
  several.policy = Policy::optimal;
  for (const PeMapping& pe : map_nics(node, several).pes)
    EXPECT_EQ(pe.nics.size(), 1U);
}

TEST(NicWithoutGpu, TheNearestNicOfAGpuIsNoneHoweverFar) {
  const Node node =
      NodeBuilder::from_matrix({"mlx5_0", "mlx5_1"}, {{"PIX", "SYS"}, {"SYS", "NODE"}});
  EXPECT_EQ(ids(checked(node, request_for(node))), "");
}

TEST(NicWithoutGpu, ANicThatNoGpuNeedsIsNotIdle) {
  // Two GPUs below one switch with a NIC, and a NIC at the CPU: the pair shares the near one.
  NodeBuilder builder;
  const int host = builder.host_bridge(0);
  builder.nic_at_root(host, "mlx5_bond_0");
  const int tree = builder.pcie_switch(host);
  builder.gpu(tree);
  builder.gpu(tree);
  builder.nic(tree, "mlx5_bond_1");
  const Findings findings = checked(builder.node, request_for(builder.node));
  EXPECT_FALSE(has_error(findings)) << ids(findings);
  EXPECT_EQ(find(findings, "nic-hotspot")->severity, Severity::info) << ids(findings);
  const Findings without = checked(builder.node, with_list(builder.node, "^mlx5_bond_0"));
  EXPECT_EQ(ids(without), "nic-hotspot(info)");
}

TEST(NicWithoutGpu, AFailedPortMakesNoStorageNicAComputeOne) {
  NodeBuilder builder = NodeBuilder::hgx(4);
  builder.nic_at_root(builder.host_bridge(0), "mlx5_4");
  builder.node.nics[0].ports[0].state = known(PortState::down, "built");
  MappingRequest request = request_for(builder.node);
  request.policy = Policy::optimal;
  for (const PeMapping& pe : map_nics(builder.node, request).pes)
    EXPECT_NE(pe.nics[0].nic, 4);
}

TEST(Fixes, DoNotContradictOneAnother) {
  // 8 GPUs, four InfiniBand NICs and one for management, known by their names only.
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
  const Findings findings = checked(node, request_for(node));
  const Finding* off = find(findings, "nic-off-fabric");
  const Finding* storage = find(findings, "nic-without-gpu");
  ASSERT_NE(off, nullptr) << ids(findings);
  ASSERT_NE(storage, nullptr) << ids(findings);
  EXPECT_EQ(off->fix, "export NVSHMEM_HCA_LIST=^rocep32s0f0");
  EXPECT_EQ(storage->fix, off->fix);
}

TEST(MappingDuplicate, APeThatUsesOnePortTwice) {
  const Node node = NodeBuilder::hgx(2, 1, 2).node;
  Mapping mapping = fake_mapping(node, {0, 2});
  mapping.pes[0].nics.push_back(mapping.pes[0].nics[0]);
  mapping.pes[0].used = 2;
  fill_loads(node, mapping);
  EXPECT_EQ(find(check_mapping(node, mapping), "mapping-duplicate")->subject, "PE 0");
}

} // namespace shmemctl
