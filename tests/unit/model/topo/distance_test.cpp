// nvidia-smi's path classes on hand-made trees.
#include "src/model/topo/distance.h"

#include <gtest/gtest.h>

namespace shmemctl {

namespace {

/// Two NUMA nodes. Node 0 has host bridges 0 and 1, node 1 has host bridge 2.
class Tree {
public:
  Tree() {
    for (int i = 0; i < 3; ++i) {
      HostBridge bridge;
      bridge.bus = static_cast<std::uint8_t>(i * 64);
      bridge.numa = known(i / 2, "test");
      node.host_bridges.push_back(bridge);
    }
  }
  int add(PciKind kind, int parent, int host) {
    PciDevice device;
    device.kind = kind;
    device.parent = parent;
    device.host_bridge = host;
    device.numa = node.host_bridges[static_cast<std::size_t>(host)].numa;
    device.address.bus = static_cast<std::uint8_t>(node.pci.size() + 1);
    node.pci.push_back(device);
    return static_cast<int>(node.pci.size()) - 1;
  }
  int bridge(int parent, int host = 0) { return add(PciKind::bridge, parent, host); }
  int endpoint(int parent, int host = 0) { return add(PciKind::endpoint, parent, host); }
  PathClass between(int left, int right) const {
    const Distance forth = pci_distance(node, left, right);
    EXPECT_EQ(forth, pci_distance(node, right, left)) << "distance is symmetric";
    return *forth.path;
  }
  Node node;
};

} // namespace

TEST(Distance, TwoFunctionsBelowOneRootPortArePix) {
  Tree tree;
  const int port = tree.bridge(-1);
  EXPECT_EQ(tree.between(tree.endpoint(port), tree.endpoint(port)), PathClass::pix);
}

TEST(Distance, OneSwitchIsPixThoughItIsThreeBridges) {
  Tree tree;
  const int upstream = tree.bridge(tree.bridge(-1));
  const int left = tree.endpoint(tree.bridge(upstream));
  const int right = tree.endpoint(tree.bridge(upstream));
  EXPECT_EQ(tree.between(left, right), PathClass::pix);
}

TEST(Distance, SwitchBelowSwitchIsPxb) {
  Tree tree;
  const int top = tree.bridge(tree.bridge(-1));
  const int inner = tree.bridge(tree.bridge(top));
  const int deep = tree.endpoint(tree.bridge(inner));
  const int shallow = tree.endpoint(tree.bridge(top));
  EXPECT_EQ(tree.between(deep, shallow), PathClass::pxb);
}

TEST(Distance, AWholeSwitchOfNcclIsOneSwitch) {
  Tree tree;
  const int top = tree.add(PciKind::whole_switch, -1, 0);
  const int left = tree.add(PciKind::whole_switch, top, 0);
  const int right = tree.add(PciKind::whole_switch, top, 0);
  const int gpu = tree.endpoint(left);
  EXPECT_EQ(tree.between(gpu, tree.endpoint(left)), PathClass::pix);
  EXPECT_EQ(tree.between(gpu, tree.endpoint(right)), PathClass::pxb);
}

TEST(Distance, HostBridgesAndNumaNodes) {
  Tree tree;
  const int here = tree.endpoint(tree.bridge(-1, 0), 0);
  EXPECT_EQ(tree.between(here, tree.endpoint(tree.bridge(-1, 0), 0)), PathClass::phb);
  EXPECT_EQ(tree.between(here, tree.endpoint(tree.bridge(-1, 1), 1)), PathClass::node);
  EXPECT_EQ(tree.between(here, tree.endpoint(tree.bridge(-1, 2), 2)), PathClass::sys);
}

TEST(Distance, DevicesOfOneCpuWithUnknownHostBridgesAreNode) {
  Tree tree;
  tree.node.host_bridges[0].exact = false;
  EXPECT_EQ(tree.between(tree.endpoint(-1, 0), tree.endpoint(-1, 0)), PathClass::node);
}

TEST(Distance, UnknownNumaLeavesItUnknown) {
  Tree tree;
  tree.node.host_bridges[1].numa = unknown<int>("numa_node reads -1");
  const int here = tree.endpoint(tree.bridge(-1, 0), 0);
  const int there = tree.endpoint(tree.bridge(-1, 1), 1);
  const Distance distance = pci_distance(tree.node, here, there);
  EXPECT_FALSE(distance.path);
  EXPECT_EQ(to_string(distance), "?");
  EXPECT_NE(distance.reason.find("numa_node reads -1"), std::string::npos);
}

namespace {

/// Two GPUs with these links on different sockets.
Node two_gpus(std::vector<GpuLink> left, std::vector<GpuLink> right) {
  Tree tree;
  Gpu gpu;
  gpu.pci = tree.endpoint(-1, 0);
  gpu.links = std::move(left);
  tree.node.gpus.push_back(gpu);
  gpu.pci = tree.endpoint(-1, 2);
  gpu.links = std::move(right);
  tree.node.gpus.push_back(gpu);
  return tree.node;
}

GpuLink link_to(LinkTarget target, int count, std::optional<PciAddress> address = std::nullopt) {
  GpuLink link;
  link.target = target;
  link.count = count;
  link.target_address = address;
  return link;
}

} // namespace

TEST(Distance, NvswitchGivesTheSmallerOfBothCounts) {
  EXPECT_EQ(to_string(distance(
                two_gpus({link_to(LinkTarget::nvswitch, 12), link_to(LinkTarget::nvswitch, 6)},
                         {link_to(LinkTarget::nvswitch, 18)}),
                0, 1)),
            "NV18");
  EXPECT_EQ(to_string(distance(
                two_gpus({link_to(LinkTarget::nvswitch, 17)}, {link_to(LinkTarget::nvswitch, 18)}),
                1, 0)),
            "NV17");
}

TEST(Distance, DirectLinksCountFromEitherEnd) {
  const PciAddress right = {0, 2, 0, 0};
  Node node = two_gpus({link_to(LinkTarget::gpu, 2, right)}, {});
  EXPECT_EQ(to_string(distance(node, 0, 1)), "NV2");
  EXPECT_EQ(to_string(distance(node, 1, 0)), "NV2");
  EXPECT_EQ(to_string(distance_by_pcie(node, 0, 1)), "SYS") << "topo -mp";
}

TEST(Distance, ARecordedMatrixWins) {
  Node node = two_gpus({}, {});
  node.recorded = DistanceMatrix(2, std::vector<Distance>(2, *parse_distance("X")));
  (*node.recorded)[0][1] = (*node.recorded)[1][0] = *parse_distance("NV4");
  EXPECT_EQ(to_string(distance(node, 0, 1)), "NV4");
}

TEST(Distance, WordsReadBack) {
  for (const char* word : {"X", "PIX", "PXB", "PHB", "NODE", "SYS", "NV1", "NV18", "?"})
    EXPECT_EQ(to_string(*parse_distance(word)), word);
  for (const char* word : {"", "NV", "NV0", "NV-1", "NVx", "pix", "XX"})
    EXPECT_EQ(parse_distance(word), std::nullopt) << word;
}

TEST(Normalize, GpusComeInBusOrderAndRdmaFirstWithTheirCells) {
  Node node = two_gpus({}, {});
  std::swap(node.gpus[0], node.gpus[1]);
  Nic ethernet;
  ethernet.name = "eth0";
  ethernet.rdma = known(false, "test");
  Nic hca;
  hca.name = "mlx5_0";
  hca.rdma = known(true, "test");
  node.nics = {ethernet, hca};
  node.recorded = DistanceMatrix(4, std::vector<Distance>(4, *parse_distance("SYS")));
  (*node.recorded)[0][2] = *parse_distance("PIX"); // second GPU of the bus order to eth0
  normalize(node);
  EXPECT_LT(node.pci[static_cast<std::size_t>(node.gpus[0].pci)].address,
            node.pci[static_cast<std::size_t>(node.gpus[1].pci)].address);
  EXPECT_EQ(node.gpus[1].index, 1);
  EXPECT_EQ(node.nics[0].name, "mlx5_0");
  EXPECT_EQ(to_string((*node.recorded)[1][3]), "PIX");
}

} // namespace shmemctl
