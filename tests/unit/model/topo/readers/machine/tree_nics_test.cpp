// NICs of machines from a copied /sys and /proc.
#include <gtest/gtest.h>

#include "src/model/topo/distance.h"
#include "src/model/topo/readers/machine.h"
#include "src/model/topo/readers/reader.h"
#include "tests/support/fake_machine.h"

namespace shmemctl {
namespace {

using fake::FakeMachine;

const PciDevice& pci_at(const Node& node, int entry) {
  return node.pci.at(static_cast<std::size_t>(entry));
}
const Nic& nic_named(const Node& node, const std::string& name) {
  for (const Nic& nic : node.nics)
    if (nic.name == name)
      return nic;
  throw std::runtime_error("no NIC " + name);
}

TEST(CopiedTreeNics, RoceGidsNameTypeAndInterface) {
  FakeMachine machine;
  machine.add_hca("0000:21:00.0", {}, 0, 0x020000);
  machine.add_netdev({.name = "eth2", .pci = "0000:21:00.0"});
  machine.add_netdev({.name = "vf0", .pci = "0000:21:00.0"});
  machine.write("/sys/class/net/vf0/phys_port_name", "pf0vf0\n");
  machine.add_rdma(
      {.name = "mlx5_bond_0",
       .pci = "0000:21:00.0",
       .ports = {{.link_layer = "Ethernet",
                  .gids = {{0, "fe80:0000:0000:0000:0011:2233:4455:6677", "IB/RoCE v1", "bond0"},
                           {1, "0000:0000:0000:0000:0000:ffff:0a00:0001", "RoCE v2", "bond0"},
                           {2, "0000:0000:0000:0000:0000:0000:0000:0000", "", ""},
                           {10, "0000:0000:0000:0000:0000:ffff:0a00:0002", "RoCE v2", ""}}}}});
  const Node node = read_machine(machine.sysroot());
  ASSERT_EQ(node.nics.size(), 1U);
  const NicPort& port = node.nics[0].ports.at(0);
  EXPECT_EQ(*port.netdev, "bond0");
  ASSERT_EQ(port.gids.size(), 3U) << "empty slots are left out";
  EXPECT_EQ(port.gids[1].index, 1);
  EXPECT_EQ(*port.gids[1].type, "RoCE v2");
  EXPECT_EQ(port.gids[2].index, 10);
  EXPECT_FALSE(port.gids[2].netdev);
}

TEST(CopiedTreeNics, VirtioNicIsItsPciAncestorAndHasNoRate) {
  FakeMachine machine;
  machine.add_pci({.address = "0000:00:03.0",
                   .class_code = 0x020000,
                   .vendor = 0x1af4,
                   .device = 0x1041,
                   .numa = -1,
                   .speed = "",
                   .width = "",
                   .max_speed = "",
                   .max_width = "",
                   .driver = "virtio-pci"});
  machine.add_netdev(
      {.name = "eth0", .pci = "0000:00:03.0", .below = "virtio2", .speed = "-1", .mtu = "9000"});
  machine.add_netdev({.name = "lo"});
  machine.add_netdev({.name = "bond0"});
  const Node node = read_machine(machine.sysroot());
  ASSERT_EQ(node.nics.size(), 1U);
  const Nic& nic = node.nics[0];
  EXPECT_EQ(nic.name, "eth0");
  EXPECT_EQ(*nic.rdma, false);
  EXPECT_EQ(to_string(pci_at(node, nic.pci).address), "0000:00:03.0");
  EXPECT_FALSE(nic.numa);
  EXPECT_FALSE(nic.ports.at(0).rate_Gbps);
  EXPECT_EQ(nic.ports[0].rate_Gbps.origin, "/sys/class/net/eth0/speed reads \"-1\"");
  EXPECT_EQ(*nic.ports[0].state, PortState::active);
  EXPECT_EQ(*nic.ports[0].link_layer, LinkLayer::ethernet);
}

TEST(CopiedTreeNics, EthernetNicsFollowRdmaDevices) {
  FakeMachine machine;
  machine.add_pci(
      {.address = "0000:04:00.0", .class_code = 0x020000, .vendor = 0x8086, .driver = "ixgbe"});
  machine.add_netdev(
      {.name = "eno1", .pci = "0000:04:00.0", .speed = "10000", .operstate = "down"});
  machine.add_hca("0000:21:00.0", {}, 0);
  machine.add_rdma({.name = "mlx5_0", .pci = "0000:21:00.0"});
  const Node node = read_machine(machine.sysroot());
  ASSERT_EQ(node.nics.size(), 2U);
  EXPECT_EQ(node.nics[0].name, "mlx5_0");
  EXPECT_EQ(node.nics[1].name, "eno1");
  EXPECT_EQ(*node.nics[1].driver, "ixgbe");
  EXPECT_EQ(*node.nics[1].ports.at(0).rate_Gbps, 10.0);
  EXPECT_EQ(*node.nics[1].ports[0].state, PortState::down);
}

TEST(CopiedTreeNics, SoftRoceIsWhereItsNetdevIs) {
  FakeMachine machine;
  machine.add_pci({.address = "0000:04:00.0",
                   .parents = {"0000:00:02.0"},
                   .class_code = 0x020000,
                   .vendor = 0x8086,
                   .numa = 1});
  machine.add_netdev({.name = "eno1", .pci = "0000:04:00.0"});
  machine.add_rdma(
      {.name = "rxe0", .parent_netdev = "eno1", .ports = {{.link_layer = "Ethernet"}}});
  const Node node = read_machine(machine.sysroot());
  const Nic nic = nic_named(node, "rxe0");
  EXPECT_EQ(to_string(pci_at(node, nic.pci).address), "0000:04:00.0");
  EXPECT_FALSE(nic.virtual_device);
  EXPECT_EQ(*nic.driver, "rdma_rxe");
  EXPECT_EQ(*nic.numa, 1);
  EXPECT_EQ(*nic.ports.at(0).netdev, "eno1");
  EXPECT_EQ(node.nics.size(), 1U) << "its netdev is no NIC of its own";
}

TEST(CopiedTreeNics, SoftRoceOnAVirtualNetdevIsVirtual) {
  FakeMachine machine;
  machine.add_netdev({.name = "bond0"});
  machine.add_rdma({.name = "rxe0", .parent_netdev = "bond0"});
  machine.add_rdma({.name = "rxe1", .parent_netdev = "gone"});
  machine.add_rdma({.name = "rxe2", .parent_netdev = "../../etc"});
  const Node node = read_machine(machine.sysroot());
  ASSERT_EQ(node.nics.size(), 3U);
  for (const Nic& nic : node.nics) {
    EXPECT_EQ(nic.pci, -1);
    EXPECT_TRUE(nic.virtual_device);
    EXPECT_FALSE(nic.numa);
  }
}

TEST(CopiedTreeNics, SiwIsFoundThroughItsGids) {
  FakeMachine machine;
  machine.add_pci({.address = "0000:04:00.0", .class_code = 0x020000, .vendor = 0x8086});
  machine.add_netdev({.name = "eno1", .pci = "0000:04:00.0"});
  machine.add_rdma({.name = "siw0",
                    .ports = {{.link_layer = "Ethernet",
                               .gids = {{0, "0242:ac11:0002:0000:0000:0000:0000:0000", "IB/RoCE v1",
                                         "eno1"}}}}});
  machine.write("/sys/class/infiniband/siw0/node_type", "4: RNIC\n");
  const Node node = read_machine(machine.sysroot());
  const Nic nic = nic_named(node, "siw0");
  EXPECT_EQ(*nic.driver, "siw");
  EXPECT_FALSE(nic.virtual_device);
  EXPECT_EQ(to_string(pci_at(node, nic.pci).address), "0000:04:00.0");
}

TEST(CopiedTreeNics, EfaIsNeitherInfinibandNorEthernet) {
  FakeMachine machine;
  machine.add_pci({.address = "0000:10:1b.0",
                   .class_code = 0x020000,
                   .vendor = 0x1d0f,
                   .device = 0xefa2,
                   .driver = "efa"});
  machine.add_rdma({.name = "rdmap16s27",
                    .pci = "0000:10:1b.0",
                    .ports = {{.link_layer = "Unknown", .rate = "100 Gb/sec (4X EDR)"}}});
  const Node node = read_machine(machine.sysroot());
  EXPECT_EQ(*nic_named(node, "rdmap16s27").ports.at(0).link_layer, LinkLayer::other);
  EXPECT_EQ(*node.nics[0].driver, "efa");
}

} // namespace
} // namespace shmemctl
