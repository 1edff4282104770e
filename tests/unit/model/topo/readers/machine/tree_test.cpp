// Whole machines from a copied /sys and /proc.
#include <gtest/gtest.h>

#include "src/model/topo/distance.h"
#include "src/model/topo/readers/machine.h"
#include "src/model/topo/readers/reader.h"
#include "tests/support/fake_machine.h"

namespace shmemctl {
namespace {

using fake::FakeMachine;

const PciDevice& pci_of(const Node& node, int entry) {
  return node.pci.at(static_cast<std::size_t>(entry));
}
std::string word(const Node& node, int left, int right) {
  return to_string(distance(node, left, right));
}

TEST(CopiedTree, EmptyRootIsAMachineOfWhichNothingIsKnown) {
  const FakeMachine machine;
  const Node node = read_machine(machine.sysroot());
  EXPECT_EQ(node.format, "sysroot");
  EXPECT_EQ(node.hostname, "");
  EXPECT_TRUE(node.packages.empty() && node.numa_nodes.empty() && node.pci.empty());
  EXPECT_TRUE(node.gpus.empty() && node.nics.empty() && node.host_bridges.empty());
}

TEST(CopiedTree, HgxNodeHasPairsBelowSwitches) {
  FakeMachine machine;
  machine.add_hgx_node();
  const Node node = read_machine(machine.sysroot());
  EXPECT_EQ(node.hostname, "hgx");
  ASSERT_EQ(node.packages.size(), 2U);
  EXPECT_EQ(*node.packages[1].model, "Fake CPU 9000");
  ASSERT_EQ(node.numa_nodes.size(), 2U);
  EXPECT_EQ(*node.numa_nodes[1].package, 1);
  EXPECT_EQ(*node.numa_nodes[1].cpus, "2-3");
  EXPECT_EQ(*node.numa_nodes[1].memory_bytes, 1073741824U);
  ASSERT_EQ(node.gpus.size(), 8U);
  ASSERT_EQ(node.nics.size(), 8U);
  EXPECT_EQ(node.host_bridges.size(), 8U);
  EXPECT_EQ(*node.host_bridges[0].numa, 0);
  for (int gpu = 0; gpu < 8; ++gpu)
    for (int nic = 0; nic < 8; ++nic)
      EXPECT_EQ(word(node, gpu, 8 + nic), gpu == nic           ? "PIX"
                                          : gpu / 4 == nic / 4 ? "NODE"
                                                               : "SYS")
          << gpu << " " << nic;
}

TEST(CopiedTree, GpuHasTheFilesOfTheDriver) {
  FakeMachine machine;
  machine.add_hgx_node();
  const Node node = read_machine(machine.sysroot());
  const Gpu& gpu = node.gpus[3];
  EXPECT_EQ(to_string(pci_of(node, gpu.pci).address), FakeMachine::hgx_gpu(3));
  EXPECT_EQ(gpu.vendor, "nvidia");
  EXPECT_EQ(*gpu.name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(*gpu.uuid, FakeMachine::uuid_of(FakeMachine::hgx_gpu(3)));
  EXPECT_EQ(*gpu.numa, 0);
  const PciDevice& function = pci_of(node, gpu.pci);
  EXPECT_EQ(function.sysfs_path, machine.path_of(FakeMachine::hgx_gpu(3)));
  EXPECT_EQ(*function.class_code, 0x030200U);
  EXPECT_EQ(*function.vendor, 0x10deU);
  EXPECT_EQ(*function.subsystem_device, 0x16c1U);
  EXPECT_EQ(*function.link.speed_GTps, 32.0);
  EXPECT_EQ(*function.link.width, 16);
  EXPECT_EQ(function.numa.origin, machine.path_of(FakeMachine::hgx_gpu(3)) + "/numa_node");
}

TEST(CopiedTree, HcaHasItsPortFacts) {
  FakeMachine machine;
  machine.add_hgx_node();
  const Node node = read_machine(machine.sysroot());
  const Nic& nic = node.nics[5];
  EXPECT_EQ(nic.name, "mlx5_5");
  EXPECT_EQ(*nic.rdma, true);
  EXPECT_EQ(*nic.driver, "mlx5_core");
  EXPECT_EQ(*nic.numa, 1);
  EXPECT_EQ(*nic.firmware, "28.39.1002");
  EXPECT_EQ(*nic.node_guid, "0011:2233:4455:6605");
  EXPECT_FALSE(nic.virtual_device);
  EXPECT_FALSE(nic.data_direct);
  EXPECT_NE(nic.data_direct.origin.find("data-direct"), std::string::npos);
  ASSERT_EQ(nic.ports.size(), 1U);
  const NicPort& port = nic.ports[0];
  EXPECT_EQ(*port.state, PortState::active);
  EXPECT_EQ(*port.link_layer, LinkLayer::infiniband);
  EXPECT_EQ(*port.rate_Gbps, 400.0);
  EXPECT_EQ(*port.lid, 6);
  EXPECT_EQ(*port.netdev, "ib5");
  EXPECT_FALSE(port.active_mtu_bytes);
  ASSERT_EQ(port.gids.size(), 1U);
  EXPECT_EQ(*port.gids[0].type, "IB/RoCE v1");
  EXPECT_FALSE(port.gids[0].netdev);
}

// Every path class of `nvidia-smi topo`, from one tree that has them all.
TEST(CopiedTree, DistancesOfEveryClass) {
  FakeMachine machine;
  const std::vector<std::string> port = {"0000:10:01.0", "0000:11:00.0"};
  const auto below = [&port](const std::string& downstream) {
    std::vector<std::string> parents = port;
    parents.push_back(downstream);
    return parents;
  };
  machine.add_gpu("0000:13:00.0", {"0000:10:01.0", "0000:11:00.0", "0000:12:00.0"}, 0);
  machine.add_hca("0000:13:00.1", below("0000:12:00.0"), 0); // same downstream port
  machine.add_hca("0000:14:00.0", below("0000:12:01.0"), 0); // same switch
  machine.add_hca("0000:21:00.0", {"0000:10:02.0"}, 0);      // same host bridge
  machine.add_hca("0000:31:00.0", {"0000:30:01.0"}, 0);      // same NUMA node
  machine.add_hca("0000:41:00.0", {"0000:40:01.0"}, 1);      // other NUMA node
  machine.add_hca("0000:51:00.0", {"0000:50:01.0"}, -1);     // unknown NUMA node
  int number = 0;
  for (const char* address : {"0000:13:00.1", "0000:14:00.0", "0000:21:00.0", "0000:31:00.0",
                              "0000:41:00.0", "0000:51:00.0"})
    machine.add_rdma({.name = fmt::format("mlx5_{}", number++), .pci = address});
  const Node node = read_machine(machine.sysroot());
  ASSERT_EQ(node.nics.size(), 6U);
  const Distance beside = distance(node, 0, 1);
  EXPECT_EQ(to_string(beside), "PIX");
  EXPECT_EQ(word(node, 0, 3), "PHB");
  EXPECT_EQ(word(node, 0, 4), "NODE");
  EXPECT_EQ(word(node, 0, 5), "SYS");
  EXPECT_EQ(word(node, 0, 6), "?");
  EXPECT_EQ(pci_of(node, node.nics[5].pci).numa.origin,
            machine.path_of("0000:51:00.0") + "/numa_node reads \"-1\"");
}

TEST(CopiedTree, DevicesComeInNaturalOrderAndGpusInBusOrder) {
  FakeMachine machine;
  machine.add_gpu("0000:c0:00.0", {"0000:bf:00.0"}, 0);
  machine.add_gpu("0000:0a:00.0", {"0000:09:00.0"}, 0);
  machine.add_gpu("0001:01:00.0", {"0001:00:00.0"}, 0);
  for (int i : {10, 2, 1}) {
    const std::string address = fmt::format("0000:{:02x}:00.0", 0x20 + i);
    machine.add_hca(address, {}, 0);
    machine.add_rdma({.name = fmt::format("mlx5_{}", i), .pci = address});
  }
  const Node node = read_machine(machine.sysroot());
  ASSERT_EQ(node.gpus.size(), 3U);
  EXPECT_EQ(to_string(pci_of(node, node.gpus[0].pci).address), "0000:0a:00.0");
  EXPECT_EQ(to_string(pci_of(node, node.gpus[2].pci).address), "0001:01:00.0");
  ASSERT_EQ(node.nics.size(), 3U);
  EXPECT_EQ(node.nics[0].name, "mlx5_1");
  EXPECT_EQ(node.nics[2].name, "mlx5_10");
}

// On a live machine the order is libibverbs'; devices that it does not list come after.
TEST(CopiedTree, AGivenOrderOfDevicesWins) {
  FakeMachine machine;
  for (const char* name : {"mlx5_0", "mlx5_1", "mlx5_2", "mlx5_10"})
    machine.add_rdma({.name = name});
  const Sysroot sysroot = machine.sysroot();
  Node node;
  PciTree pci(sysroot, node);
  read_rdma_devices(sysroot, {"mlx5_10", "gone", "mlx5_1"}, pci, node);
  std::vector<std::string> names;
  for (const Nic& nic : node.nics)
    names.push_back(nic.name);
  EXPECT_EQ(names, (std::vector<std::string>{"mlx5_10", "mlx5_1", "mlx5_0", "mlx5_2"}));
}

TEST(CopiedTree, DualPortHcaWithOnePortDown) {
  FakeMachine machine;
  machine.add_hca("0000:21:00.0", {"0000:20:01.0"}, 0, 0x020000);
  machine.add_netdev({.name = "eth2", .pci = "0000:21:00.0", .dev_port = "0"});
  machine.add_netdev({.name = "eth3", .pci = "0000:21:00.0", .dev_port = "1"});
  machine.add_rdma({.name = "mlx4_0",
                    .pci = "0000:21:00.0",
                    .ports = {{.number = 1, .link_layer = "Ethernet", .rate = "40 Gb/sec (4X QDR)"},
                              {.number = 2,
                               .state = "1: DOWN",
                               .link_layer = "Ethernet",
                               .rate = "10 Gb/sec (1X QDR)",
                               .phys_state = "3: Disabled"}}});
  const Node node = read_machine(machine.sysroot());
  ASSERT_EQ(node.nics.size(), 1U) << "the netdevs belong to the HCA";
  ASSERT_EQ(node.nics[0].ports.size(), 2U);
  EXPECT_EQ(*node.nics[0].ports[0].state, PortState::active);
  EXPECT_EQ(*node.nics[0].ports[0].netdev, "eth2");
  EXPECT_EQ(*node.nics[0].ports[1].state, PortState::down);
  EXPECT_EQ(*node.nics[0].ports[1].netdev, "eth3");
  EXPECT_EQ(*node.nics[0].ports[1].rate_Gbps, 10.0);
}

TEST(CopiedTree, UnknownLinkSpeedStaysUnknown) {
  FakeMachine machine;
  machine.add_pci({.address = "0000:21:00.0",
                   .speed = "Unknown",
                   .width = "0",
                   .max_speed = "Unknown speed",
                   .max_width = "255"});
  const Node node = read_machine(machine.sysroot());
  ASSERT_EQ(node.gpus.size(), 1U);
  const PcieLink& link = pci_of(node, node.gpus[0].pci).link;
  EXPECT_FALSE(link.speed_GTps);
  EXPECT_NE(link.speed_GTps.origin.find("reads \"Unknown\""), std::string::npos);
  EXPECT_FALSE(link.width);
  EXPECT_FALSE(link.max_speed_GTps);
  EXPECT_FALSE(link.max_width);
}

TEST(CopiedTree, PlainFoldersInsteadOfLinksHaveNoPlaceInTheTree) {
  FakeMachine machine;
  const std::string folder = "/sys/bus/pci/devices/0000:21:00.0/";
  machine.write(folder + "class", "0x030200\n");
  machine.write(folder + "vendor", "0x10de\n");
  machine.write(folder + "numa_node", "1\n");
  const Node node = read_machine(machine.sysroot());
  ASSERT_EQ(node.gpus.size(), 1U);
  const PciDevice& function = pci_of(node, node.gpus[0].pci);
  EXPECT_EQ(function.sysfs_path, "");
  EXPECT_EQ(function.parent, -1);
  EXPECT_EQ(function.host_bridge, -1);
  EXPECT_EQ(*node.gpus[0].numa, 1);
}

TEST(CopiedTree, OtherEndpointsAndTheirBridgesAreLeftOut) {
  FakeMachine machine;
  machine.add_pci({.address = "0000:05:00.0",
                   .parents = {"0000:00:01.0"},
                   .class_code = 0x010802,
                   .vendor = 0x144d});                                                    // NVMe
  machine.add_pci({.address = "0000:06:00.0", .class_code = 0x030000, .vendor = 0x1a03}); // BMC
  machine.add_gpu("0000:21:00.0", {"0000:20:00.0"}, 0);
  machine.add_pci({.address = "0000:31:00.0",
                   .parents = {"0000:30:00.0"},
                   .class_code = 0x068000,
                   .device = 0x22a3}); // NVSwitch
  const Node node = read_machine(machine.sysroot());
  ASSERT_EQ(node.pci.size(), 4U);
  EXPECT_EQ(node.nvswitches, 1);
  EXPECT_EQ(node.gpus.size(), 1U);
  EXPECT_EQ(pci_of(node, 0).kind, PciKind::bridge);
  EXPECT_EQ(to_string(pci_of(node, pci_of(node, node.gpus[0].pci).parent).address), "0000:20:00.0");
}

TEST(CopiedTree, RdmaOnAnUncommonClassBringsItsFunction) {
  FakeMachine machine;
  machine.add_pci({.address = "0000:05:00.0",
                   .parents = {"0000:00:01.0"},
                   .class_code = 0x0c0600,
                   .vendor = 0x15b3}); // InfiniBand as a serial bus
  machine.add_rdma({.name = "mthca0", .pci = "0000:05:00.0"});
  const Node node = read_machine(machine.sysroot());
  ASSERT_EQ(node.nics.size(), 1U);
  EXPECT_EQ(to_string(pci_of(node, node.nics[0].pci).address), "0000:05:00.0");
  EXPECT_EQ(to_string(pci_of(node, pci_of(node, node.nics[0].pci).parent).address), "0000:00:01.0");
}

TEST(CopiedTree, SubFunctionIsOnItsParentFunction) {
  FakeMachine machine;
  const std::string function = machine.add_hca("0000:21:00.0", {}, 0);
  machine.add_rdma({.name = "mlx5_0", .pci = "0000:21:00.0"});
  machine.directory(function + "/mlx5_core.sf.2/infiniband/mlx5_2");
  machine.link(function + "/mlx5_core.sf.2/infiniband/mlx5_2/device", function + "/mlx5_core.sf.2");
  machine.link("/sys/class/infiniband/mlx5_2", function + "/mlx5_core.sf.2/infiniband/mlx5_2");
  const Node node = read_machine(machine.sysroot());
  ASSERT_EQ(node.nics.size(), 2U);
  EXPECT_EQ(node.nics[1].pci, node.nics[0].pci);
  EXPECT_TRUE(node.nics[1].ports.empty());
}

TEST(CopiedTree, GpuVirtualFunctionsAreNoGpus) {
  FakeMachine machine;
  const std::string physical = machine.add_gpu("0000:21:00.0", {}, 0);
  const std::string vf = machine.add_pci({.address = "0000:21:00.4"});
  machine.link(vf + "/physfn", physical);
  const Node node = read_machine(machine.sysroot());
  EXPECT_EQ(node.gpus.size(), 1U);
  ASSERT_EQ(node.notes.size(), 1U);
  EXPECT_NE(node.notes[0].find("0000:21:00.4"), std::string::npos);
}

TEST(CopiedTree, WideDomainsAndSecondHostBridges) {
  FakeMachine machine;
  machine.add_gpu("10000:01:00.0", {"10000:00:01.0"}, 0);
  const Node node = read_machine(machine.sysroot());
  ASSERT_EQ(node.gpus.size(), 1U);
  ASSERT_EQ(node.host_bridges.size(), 1U);
  EXPECT_EQ(node.host_bridges[0].domain, 0x10000U);
}

TEST(CopiedTree, ReadingTwiceGivesTheSameModel) {
  FakeMachine machine;
  machine.add_hgx_node();
  EXPECT_EQ(first_difference(read_machine(machine.sysroot()), read_machine(machine.sysroot())), "");
}

TEST(CopiedTree, MemoryWithoutCpus) {
  FakeMachine machine;
  machine.add_cpu_topology({.packages = 1});
  const std::string folder = "/sys/devices/system/node/";
  for (const auto& [node, kB] : {std::pair{"node2", 4096}, {"node3", 4096}, {"node4", 0}}) {
    machine.write(folder + node + "/cpulist", "\n");
    machine.write(folder + node + "/meminfo", fmt::format("Node 2 MemTotal: {} kB\n", kB));
  }
  machine.write("/proc/driver/nvidia/gpus/0009:01:00.0/numa_status",
                "Node:      3\nStatus:    online\n");
  const Node node = read_machine(machine.sysroot());
  ASSERT_EQ(node.numa_nodes.size(), 3U);
  EXPECT_EQ(node.numa_nodes[0].kind, NumaKind::cpu);
  EXPECT_EQ(node.numa_nodes[1].kind, NumaKind::other_memory);
  EXPECT_EQ(node.numa_nodes[2].kind, NumaKind::gpu_memory);
  EXPECT_EQ(node.remarks,
            std::vector<std::string>{"1 NUMA node without CPUs and memory is left out"});
}

} // namespace
} // namespace shmemctl
