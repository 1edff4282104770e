#include <gtest/gtest.h>

#include "src/model/topo/advice/advice.h"
#include "tests/support/findings.h"
#include "tests/support/node_builder.h"

namespace shmemctl {

using shmemctl::testing::contains;
using shmemctl::testing::expect_well_formed;
using shmemctl::testing::find;
using shmemctl::testing::ids;
using shmemctl::testing::NodeBuilder;

namespace {

Findings checked(const NodeBuilder& builder) {
  Findings findings = check_node(builder.node);
  expect_well_formed(findings);
  return findings;
}

void set_state(NodeBuilder& builder, std::size_t nic, PortState state) {
  builder.node.nics[nic].ports[0].state = known(state, "built");
}

} // namespace

TEST(CheckNode, AHealthyHgxHasNoFinding) {
  NodeBuilder builder = NodeBuilder::hgx(8);
  for (const Gpu& gpu : builder.node.gpus)
    builder.link(gpu.pci, 32, 16, 32, 16);
  for (const Nic& nic : builder.node.nics)
    builder.link(nic.pci, 32, 16, 32, 16);
  EXPECT_EQ(ids(checked(builder)), "");
}

TEST(CheckNode, ALaptopHasOnlyInformation) {
  NodeBuilder builder;
  const int host = builder.host_bridge(0);
  builder.plain_nic(host, "eno1");
  builder.plain_nic(host, "wlan0");
  EXPECT_EQ(ids(checked(builder)), "nic-not-rdma(info)");
}

TEST(CheckNode, AnEmptyNodeHasNoFinding) {
  EXPECT_EQ(ids(check_node(Node{})), "");
}

TEST(PortDown, NamesEveryPortOnce) {
  NodeBuilder builder = NodeBuilder::hgx(8);
  set_state(builder, 2, PortState::down);
  set_state(builder, 5, PortState::init);
  const Findings findings = checked(builder);
  const Finding* down = find(findings, "port-down");
  ASSERT_NE(down, nullptr);
  EXPECT_EQ(down->severity, Severity::warning);
  EXPECT_TRUE(contains(down->message, "mlx5_2/1 is DOWN and mlx5_5/1 is INIT")) << down->message;
}

TEST(PortDown, AllOfThemIsAnError) {
  NodeBuilder builder = NodeBuilder::hgx(2);
  set_state(builder, 0, PortState::down);
  set_state(builder, 1, PortState::down);
  const Findings findings = checked(builder);
  EXPECT_EQ(find(findings, "port-down")->severity, Severity::error);
}

TEST(PortDown, ASparePortOfAUsedNicIsInformation) {
  NodeBuilder builder;
  builder.nic_at_root(builder.host_bridge(0), "mlx5_0",
                      {{1, PortState::active}, {2, PortState::down}});
  EXPECT_EQ(ids(checked(builder)), "port-down(info)");
}

TEST(PortDown, TheToolIsThatOfTheVendor) {
  NodeBuilder builder = NodeBuilder::hgx(2);
  set_state(builder, 0, PortState::down);
  EXPECT_TRUE(contains(find(checked(builder), "port-down")->fix, "mlxlink -d mlx5_0 -p 1"));
  builder.node.nics[0].name = "i40iw0";
  builder.node.nics[0].driver = known(std::string("i40e"), "built");
  builder.pci(builder.node.nics[0].pci).vendor = known(pci_ids::intel, "built");
  EXPECT_TRUE(contains(find(checked(builder), "port-down")->fix, "rdma link show i40iw0/1"));
  builder.node.nics[0].ports[0].netdev = known(std::string("ens1f0"), "built");
  const std::string fix = find(checked(builder), "port-down")->fix;
  EXPECT_TRUE(contains(fix, "ethtool ens1f0")) << fix;
  EXPECT_FALSE(contains(fix, "mlxlink")) << fix;
}

TEST(PortDown, TheFixNamesTheInterfaceOrTheSubnetManager) {
  NodeBuilder builder = NodeBuilder::hgx(4);
  set_state(builder, 0, PortState::down);
  builder.node.nics[0].ports[0].netdev = known(std::string("ens1f0"), "built");
  EXPECT_TRUE(contains(find(checked(builder), "port-down")->fix, "ip link set dev ens1f0 up"));
  set_state(builder, 0, PortState::init);
  EXPECT_TRUE(contains(find(checked(builder), "port-down")->fix, "subnet manager"));
}

TEST(PortSlow, BelowItsPeersOfTheSameModel) {
  NodeBuilder builder = NodeBuilder::hgx(8);
  builder.node.nics[3].ports[0].rate_Gbps = known(200.0, "built");
  const Findings findings = checked(builder);
  const Finding* slow = find(findings, "port-slow");
  ASSERT_NE(slow, nullptr);
  EXPECT_EQ(slow->subject, "mlx5_3/1");
  EXPECT_TRUE(contains(slow->message, "200 Gb/s")) << slow->message;
  EXPECT_TRUE(contains(slow->message, "400 Gb/s")) << slow->message;
}

TEST(PortSlow, ASourceWithoutLinkLayersShowsItAsWell) {
  NodeBuilder builder = NodeBuilder::hgx(8);
  for (Nic& nic : builder.node.nics)
    nic.ports[0].link_layer = {};
  builder.node.nics[3].ports[0].rate_Gbps = known(200.0, "built");
  const Findings findings = checked(builder);
  const Finding* slow = find(findings, "port-slow");
  ASSERT_NE(slow, nullptr);
  EXPECT_EQ(slow->subject, "mlx5_3/1");
}

TEST(PortSlow, AnotherModelIsNoPeer) {
  NodeBuilder builder = NodeBuilder::hgx(8);
  builder.node.nics[3].ports[0].rate_Gbps = known(200.0, "built");
  builder.pci(builder.node.nics[3].pci).device = known(std::uint16_t{0x101d}, "built");
  EXPECT_EQ(find(checked(builder), "port-slow"), nullptr);
}

TEST(PcieDegraded, ANicBelowItsMaximum) {
  NodeBuilder builder = NodeBuilder::hgx(4);
  builder.link(builder.node.nics[1].pci, 16, 8, 32, 16);
  const Findings findings = checked(builder);
  const Finding* degraded = find(findings, "pcie-degraded");
  ASSERT_NE(degraded, nullptr);
  EXPECT_EQ(degraded->severity, Severity::warning);
  EXPECT_EQ(degraded->subject, "mlx5_1");
  EXPECT_TRUE(contains(degraded->message, "at 16 of 32 GT/s and on 8 of 16 lanes"))
      << degraded->message;
}

TEST(PcieDegraded, ANicBelowItsSiblings) {
  NodeBuilder builder = NodeBuilder::hgx(4);
  for (std::size_t i = 0; i < 4; ++i) {
    PcieLink& link = builder.pci(builder.node.nics[i].pci).link;
    link.width = known(i == 2 ? 8 : 16, "built");
    link.speed_GTps = known(32.0, "built");
  }
  EXPECT_EQ(find(checked(builder), "pcie-degraded")->subject, "mlx5_2");
}

TEST(PcieDegraded, AnIdleGpusSpeedIsInformationItsWidthIsNot) {
  NodeBuilder builder = NodeBuilder::hgx(4);
  builder.link(builder.node.gpus[0].pci, 2.5, 16, 32, 16);
  builder.link(builder.node.gpus[2].pci, 2.5, 16, 32, 16);
  builder.link(builder.node.gpus[3].pci, 2.5, 16, 32, 16);
  const Findings idle = checked(builder);
  EXPECT_EQ(ids(idle), "pcie-degraded(info)");
  EXPECT_TRUE(contains(idle[0].message, "GPU 0, 2, 3 at 2.5 of 32 GT/s")) << idle[0].message;
  builder.link(builder.node.gpus[1].pci, 32, 8, 32, 16);
  EXPECT_EQ(ids(checked(builder)), "pcie-degraded(warning) pcie-degraded(info)");
}

TEST(PcieDegraded, ASlotThatCanDoNoMoreIsInformation) {
  NodeBuilder builder;
  const int root = builder.root_port(builder.host_bridge(0));
  builder.nic(root, "mlx5_0", {{}}, false);
  builder.link(root, 16, 16, 16, 16);
  builder.link(builder.node.nics[0].pci, 16, 16, 32, 16);
  EXPECT_EQ(ids(checked(builder)), "pcie-degraded(info)");
}

TEST(PcieDegraded, ASlowerSlotThanItsPeersIsAWarning) {
  // As sysfs has it: the slot of one of four can do half of what the NIC can.
  NodeBuilder builder = NodeBuilder::hgx(4);
  for (const Nic& nic : builder.node.nics)
    builder.link(nic.pci, 32, 16, 32, 16);
  builder.link(builder.node.nics[3].pci, 16, 16, 32, 16);
  builder.link(builder.pci(builder.node.nics[3].pci).parent, 16, 16, 16, 16);
  Findings findings = checked(builder);
  ASSERT_EQ(ids(findings), "pcie-degraded(warning)");
  EXPECT_TRUE(contains(findings[0].message, "mlx5_3 at 16 of 32 GT/s")) << findings[0].message;
  // As NCCL's dumps have it: only what device and slot can both do.
  builder = NodeBuilder::hgx(4);
  for (const Nic& nic : builder.node.nics) {
    PcieLink& link = builder.pci(nic.pci).link;
    const bool slower = nic.name == "mlx5_1";
    link.max_speed_GTps = known(slower ? 8.0 : 32.0, "built");
    link.max_width = known(slower ? 8 : 16, "built");
  }
  findings = checked(builder);
  ASSERT_EQ(ids(findings), "pcie-degraded(warning)");
  EXPECT_EQ(findings[0].subject, "mlx5_1");
  EXPECT_TRUE(contains(findings[0].message, "at 8 of 32 GT/s and on 8 of 16 lanes"))
      << findings[0].message;
  // Two of four are another kind of slot, and not a fault of one.
  builder.pci(builder.node.nics[0].pci).link = builder.pci(builder.node.nics[1].pci).link;
  EXPECT_EQ(ids(checked(builder)), "");
}

TEST(PcieDegraded, AWidthOfZeroSaysNothing) {
  NodeBuilder builder = NodeBuilder::hgx(2);
  builder.link(builder.node.nics[0].pci, 0, 0, 32, 16);
  EXPECT_EQ(ids(checked(builder)), "");
}

TEST(GpuWithoutNic, OnAnotherSocketThanEveryNic) {
  NodeBuilder builder;
  const int first = builder.pcie_switch(builder.host_bridge(0));
  builder.gpu(first);
  builder.nic(first, "mlx5_0");
  const int second = builder.pcie_switch(builder.host_bridge(1));
  builder.gpu(second);
  builder.gpu(second);
  const Findings findings = checked(builder);
  EXPECT_EQ(ids(findings), "gpu-without-nic(warning)");
  EXPECT_EQ(findings[0].subject, "GPU 1, 2");
}

TEST(GpuWithoutNic, SomeBelowASwitchAndSomeNot) {
  // As on machines with one NIC for every second GPU.
  const Node node = NodeBuilder::from_matrix(
      {"ibp14s0", "ibp71s0"},
      {{"PIX", "NODE"}, {"NODE", "NODE"}, {"NODE", "PIX"}, {"NODE", "NODE"}});
  const Findings findings = check_node(node);
  EXPECT_EQ(ids(findings), "gpu-without-nic(info)");
  EXPECT_EQ(findings[0].subject, "GPU 1, 3");
}

TEST(GpuWithoutNic, AllAlikeIsNoFinding) {
  const Node node =
      NodeBuilder::from_matrix({"mlx5_0", "mlx5_1"}, {{"NODE", "NODE"}, {"NODE", "NODE"}});
  EXPECT_EQ(ids(check_node(node)), "");
}

TEST(GpuWithoutNic, ANicThatIsDownIsANicAllTheSame) {
  NodeBuilder builder = NodeBuilder::hgx(4);
  set_state(builder, 2, PortState::down);
  EXPECT_EQ(ids(checked(builder)), "port-down(warning)");
}

TEST(GpuWithoutNic, NoNicAtAll) {
  NodeBuilder builder;
  builder.gpu_at_root(builder.host_bridge(0));
  EXPECT_EQ(ids(checked(builder)), "gpu-without-nic(warning)");
}

TEST(NicWithoutGpu, IfEveryNicIsFarTheGpusLackOne) {
  NodeBuilder builder;
  builder.gpu_at_root(builder.host_bridge(0));
  builder.nic_at_root(builder.host_bridge(1), "mlx5_0");
  EXPECT_EQ(ids(checked(builder)), "gpu-without-nic(warning)");
}

namespace {

GpuLink to_switch(int count = 18) {
  GpuLink link;
  link.target = LinkTarget::nvswitch;
  link.count = count;
  return link;
}

GpuLink to_gpu(const NodeBuilder& builder, std::size_t gpu) {
  GpuLink link;
  link.target = LinkTarget::gpu;
  link.target_address =
      builder.node.pci[static_cast<std::size_t>(builder.node.gpus[gpu].pci)].address;
  return link;
}

} // namespace

TEST(GpuWithoutNvlink, AnErrorBesideSiblingsOfItsModel) {
  NodeBuilder builder = NodeBuilder::hgx(4);
  for (Gpu& gpu : builder.node.gpus)
    gpu.links = {to_switch()};
  EXPECT_EQ(ids(checked(builder)), "");
  builder.node.gpus[2].links.clear();
  const Findings findings = checked(builder);
  EXPECT_EQ(ids(findings), "gpu-without-nvlink(error)");
  EXPECT_EQ(findings[0].subject, "GPU 2");
  EXPECT_TRUE(contains(findings[0].message, "though GPU 0, 1, 3 have")) << findings[0].message;
  EXPECT_TRUE(contains(findings[0].fix, "nvidia-smi nvlink -s -i 2")) << findings[0].fix;
}

TEST(GpuWithoutNvlink, AnotherModelHasNoneByDesign) {
  NodeBuilder builder = NodeBuilder::hgx(4);
  for (std::size_t gpu = 0; gpu < 3; ++gpu)
    builder.node.gpus[gpu].links = {to_switch()};
  builder.pci(builder.node.gpus[3].pci).device = known(std::uint16_t{0x1fb0}, "built");
  EXPECT_EQ(ids(checked(builder)), "");
}

TEST(GpuWithoutNvlink, GpusBesideABridgedPairHaveNoneByDesign) {
  NodeBuilder builder = NodeBuilder::hgx(4);
  builder.node.gpus[0].links = {to_gpu(builder, 1)};
  builder.node.gpus[1].links = {to_gpu(builder, 0)};
  EXPECT_EQ(ids(checked(builder)), "");
}

TEST(GpuWithoutNvlink, AMatrixTellsNoModels) {
  Node node = NodeBuilder::from_matrix({"mlx5_0"}, {{"PIX"}, {"PIX"}, {"PIX"}, {"PIX"}});
  EXPECT_EQ(ids(check_node(node)), "");
  for (std::size_t other = 0; other < 3; ++other)
    (*node.recorded)[3][other] = (*node.recorded)[other][3] = *parse_distance("SYS");
  EXPECT_EQ(ids(check_node(node)), "gpu-without-nvlink(warning)");
}

TEST(NumaUnknown, OnceForAllDevices) {
  NodeBuilder builder = NodeBuilder::hgx(4);
  for (Gpu& gpu : builder.node.gpus)
    gpu.numa = unknown<int>("numa_node reads -1");
  builder.node.nics[1].numa = unknown<int>("numa_node reads -1");
  const Findings findings = checked(builder);
  const Finding* numa = find(findings, "numa-unknown");
  ASSERT_NE(numa, nullptr);
  EXPECT_EQ(numa->severity, Severity::info); // the tree determines every distance that matters
  EXPECT_TRUE(contains(numa->subject, "GPU 3 and mlx5_1")) << numa->subject;
}

TEST(NumaUnknown, IsAWarningWhereADistanceDependsOnIt) {
  NodeBuilder builder = NodeBuilder::hgx(2);
  for (PciDevice& device : builder.node.pci)
    device.numa = unknown<int>("numa_node reads -1");
  for (HostBridge& bridge : builder.node.host_bridges)
    bridge.numa = unknown<int>("numa_node reads -1");
  for (Gpu& gpu : builder.node.gpus)
    gpu.numa = unknown<int>("numa_node reads -1");
  EXPECT_EQ(find(checked(builder), "numa-unknown")->severity, Severity::warning);
}

TEST(NumaUnknown, DoesNotMatterWithOneNumaNodeOrARecordedMatrix) {
  NodeBuilder builder;
  const int tree = builder.pcie_switch(builder.host_bridge(0));
  builder.gpu(tree);
  builder.nic(tree, "mlx5_0");
  builder.node.gpus[0].numa = unknown<int>("numa_node reads -1");
  EXPECT_EQ(ids(checked(builder)), "");
  EXPECT_EQ(ids(check_node(NodeBuilder::from_matrix({"mlx5_0"}, {{"PIX"}}))), "");
}

TEST(NicNotRdma, IsAWarningWhereThereAreGpus) {
  NodeBuilder builder;
  const int host = builder.host_bridge(0);
  builder.gpu_at_root(host);
  builder.plain_nic(host, "eno1");
  const Findings findings = checked(builder);
  EXPECT_EQ(ids(findings), "nic-not-rdma(warning)");
  EXPECT_TRUE(contains(findings[0].fix, "netdev eno1"));
}

TEST(NicNotRdma, NotBesideAnRdmaDevice) {
  NodeBuilder builder = NodeBuilder::hgx(4);
  builder.plain_nic(builder.host_bridge(0), "eno1");
  EXPECT_EQ(ids(checked(builder)), "");
}

} // namespace shmemctl
