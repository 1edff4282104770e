#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/base/input.h"
#include "src/model/topo/distance.h"
#include "src/model/topo/pcie.h"
#include "src/model/topo/readers/reader.h"
#include "test_paths.h"

namespace shmemctl {

namespace {

Node fixture(const std::string& name) {
  const std::string path = std::string(SHMEMCTL_TEST_DATA) + "/hwloc/" + name;
  return read_hwloc_xml(read_input(path), name);
}

std::string message_of(const std::string& text) {
  try {
    read_hwloc_xml(text, "x.xml");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_FALSE(error.fix().empty());
    return error.message();
  }
  return "no error";
}

std::string machine(const std::string& inside) {
  return "<topology version=\"2.0\">\n<object type=\"Machine\" cpuset=\"0x1\">\n" + inside +
         "\n</object></topology>";
}

std::string word(const Node& node, int left, int right) {
  return to_string(distance(node, left, right));
}

} // namespace

TEST(HwlocReader, ReadsProcessorsAndMemory) {
  const Node node = fixture("v2-two-sockets.xml");
  EXPECT_EQ(node.hostname, "two-sockets");
  EXPECT_EQ(node.format, "hwloc-xml");
  ASSERT_EQ(node.packages.size(), 2U);
  EXPECT_EQ(node.packages[0].model.value, "Example CPU");
  EXPECT_FALSE(node.packages[1].model);
  ASSERT_EQ(node.numa_nodes.size(), 4U); // by number
  EXPECT_EQ(node.numa_nodes[0].kind, NumaKind::cpu);
  EXPECT_EQ(node.numa_nodes[0].cpus.value, "0-3");
  EXPECT_EQ(node.numa_nodes[0].memory_bytes.value, 1000000U);
  EXPECT_EQ(node.numa_nodes[1].package.value, 1);
  EXPECT_EQ(node.numa_nodes[2].kind, NumaKind::gpu_memory);
  EXPECT_EQ(node.numa_nodes[2].package.value, 0);
  EXPECT_FALSE(node.numa_nodes[2].cpus);
  EXPECT_EQ(node.numa_nodes[3].kind, NumaKind::other_memory); // the CPUs are those of node 1
  EXPECT_FALSE(node.numa_nodes[3].memory_bytes);
}

TEST(HwlocReader, FindsGpusAndNoBmc) {
  const Node node = fixture("v2-two-sockets.xml");
  ASSERT_EQ(node.gpus.size(), 1U); // the ASPEED VGA is not a GPU
  const Gpu& gpu = node.gpus[0];
  EXPECT_EQ(gpu.vendor, "nvidia");
  EXPECT_EQ(gpu.name.value, "NVIDIA A100-SXM4-80GB");
  EXPECT_EQ(gpu.uuid.value, "GPU-11111111-2222-3333-4444-555555555555");
  EXPECT_EQ(gpu.numa.value, 0);
  EXPECT_EQ(gpu.driver_index.value, 1); // nvml1
  EXPECT_EQ(node.nvswitches, 1);
  const PciDevice& device = node.pci[static_cast<std::size_t>(gpu.pci)];
  EXPECT_EQ(device.class_code.value, 0x030200U);
  EXPECT_EQ(device.device.value, 0x20b2);
  EXPECT_EQ(device.subsystem_device.value, 0x1463);
}

TEST(HwlocReader, TellsALinkOnlyWhereTheBandwidthDoes) {
  const Node node = fixture("v2-two-sockets.xml");
  const PcieLink& gpu = node.pci[static_cast<std::size_t>(node.gpus[0].pci)].link;
  EXPECT_EQ(gpu.speed_GTps.value, 32.0); // 63.0 GB/s is 32 GT/s x16 and nothing else
  EXPECT_EQ(gpu.width.value, 16);
  EXPECT_FALSE(gpu.max_speed_GTps);
  const PcieLink& bridge = node.pci[0].link; // 31.5 GB/s: 16 GT/s x16 or 32 GT/s x8
  EXPECT_FALSE(bridge.speed_GTps);
  EXPECT_EQ(bridge.speed_GTps.origin, "hwloc's XML has only the bandwidth, 31.507692 GB/s");
}

TEST(HwlocReader, PutsRdmaDevicesInNaturalOrderThenTheOthers) {
  const Node node = fixture("v2-two-sockets.xml");
  std::vector<std::string> names;
  for (const Nic& nic : node.nics)
    names.push_back(nic.name);
  EXPECT_EQ(names, (std::vector<std::string>{"mlx5_2", "mlx5_10", "rxe0", "nic0", "ens5"}));
  EXPECT_EQ(node.nics[1].rdma.value, true);
  EXPECT_TRUE(node.nics[2].virtual_device);
  EXPECT_EQ(node.nics[2].pci, -1);
  EXPECT_FALSE(node.nics[3].rdma); // an InfiniBand function without a driver
  EXPECT_EQ(node.nics[4].rdma.value, false);
  EXPECT_TRUE(node.nics[3].unnamed) << "nic0 is a label";
  EXPECT_FALSE(node.nics[0].unnamed);
  EXPECT_TRUE(node.notes.empty());
  ASSERT_EQ(node.remarks.size(), 1U);
  EXPECT_EQ(node.remarks[0],
            "2 virtual functions without a device of the operating system are left out");
}

TEST(HwlocReader, ReadsPorts) {
  const Node node = fixture("v2-two-sockets.xml");
  const Nic& nic = node.nics[1]; // mlx5_10
  EXPECT_EQ(nic.node_guid.value, "0015:5dff:fe33:ff1a");
  ASSERT_EQ(nic.ports.size(), 1U);
  const NicPort& port = nic.ports[0];
  EXPECT_EQ(port.number, 1);
  EXPECT_EQ(port.state.value, PortState::active);
  EXPECT_EQ(port.lid.value, 0xdd);
  EXPECT_EQ(port.netdev.value, "ib0");
  EXPECT_EQ(port.link_layer.value, LinkLayer::infiniband); // a 20-octet address
  EXPECT_FALSE(port.rate_Gbps);
  ASSERT_EQ(port.gids.size(), 1U);
  EXPECT_EQ(port.gids[0].value, "fe80:0000:0000:0000:0015:5dff:fd33:ff1a");
  const NicPort& other = node.nics[0].ports.at(0); // mlx5_2
  EXPECT_EQ(other.state.value, PortState::down);
  EXPECT_EQ(other.link_layer.value, LinkLayer::ethernet);
  EXPECT_EQ(other.netdev.value, "eth1");
}

TEST(HwlocReader, TakesTheNumaNodeFromAroundADeviceOrNone) {
  const Node node = fixture("v2-two-sockets.xml");
  EXPECT_EQ(node.nics[0].numa.value, 1);
  EXPECT_FALSE(node.nics[3].numa);
  EXPECT_EQ(node.nics[3].numa.origin, "attached to Machine at line 4, which spans 2 NUMA nodes");
  EXPECT_EQ(node.host_bridges.at(0).package.value, 0);
  EXPECT_FALSE(node.host_bridges.at(2).package);
}

TEST(HwlocReader, GivesDistances) {
  const Node node = fixture("v2-two-sockets.xml");
  // mlx5_10, the other port of the switch to which the GPU is connected
  EXPECT_EQ(word(node, 0, 2), "PIX");
  EXPECT_EQ(word(node, 0, 1), "SYS"); // mlx5_2
  EXPECT_EQ(word(node, 0, 4), "?");   // nic0, attached to the machine
  EXPECT_EQ(word(node, 4, 5), "PHB"); // nic0 and ens5, below one host bridge
}

TEST(HwlocReader, ReadsTheFirstDialect) {
  const Node node = fixture("v1-sockets.xml");
  EXPECT_EQ(node.hostname, "old");
  ASSERT_EQ(node.packages.size(), 2U);
  ASSERT_EQ(node.numa_nodes.size(), 2U);
  EXPECT_EQ(node.numa_nodes[0].package.value, 0);
  EXPECT_EQ(node.numa_nodes[1].cpus.value, "2-3");
  ASSERT_EQ(node.gpus.size(), 1U);
  EXPECT_EQ(node.gpus[0].name.value, "GeForce GTX 1070");
  EXPECT_EQ(node.gpus[0].numa.value, 0);
  const PcieLink& link = node.pci[static_cast<std::size_t>(node.gpus[0].pci)].link;
  EXPECT_EQ(link.speed_GTps.value, 5.0); // 8.0 GB/s is 5 GT/s x16
  ASSERT_EQ(node.nics.size(), 1U);       // class 0c06, known by its OS device
  EXPECT_EQ(node.nics[0].name, "mlx4_0");
  EXPECT_EQ(node.nics[0].numa.value, 1);
  EXPECT_TRUE(node.nics[0].ports.empty());
  EXPECT_EQ(word(node, 0, 1), "SYS");
}

TEST(HwlocReader, ReadsTheThirdDialectAndNvlinks) {
  const Node node = fixture("v3-nvlink.xml");
  EXPECT_EQ(node.hostname, "newest");
  EXPECT_EQ(node.nvswitches, 1);
  ASSERT_EQ(node.gpus.size(), 2U);
  ASSERT_EQ(node.gpus[0].links.size(), 2U);
  EXPECT_EQ(node.gpus[0].links[0].target, LinkTarget::gpu);
  EXPECT_EQ(node.gpus[0].links[0].count, 2); // 50 GB/s at 25 GB/s each
  EXPECT_EQ(node.gpus[0].links[0].bandwidth_GBps.value, 25.0);
  EXPECT_EQ(node.gpus[0].links[1].target, LinkTarget::nvswitch);
  ASSERT_EQ(node.gpus[1].links.size(), 3U);
  EXPECT_EQ(node.gpus[1].links[2].target, LinkTarget::cpu);
  EXPECT_EQ(word(node, 0, 1), "NV2");
  ASSERT_EQ(node.nics.size(), 1U);
  EXPECT_EQ(node.nics[0].name, "mlx5_0");
  const PciDevice& nic = node.pci[static_cast<std::size_t>(node.nics[0].pci)];
  EXPECT_EQ(nic.class_code.value, 0x020002U); // with the programming interface
}

TEST(HwlocReader, LeavesOutNvlinksWhoseCountItCannotTell) {
  const std::string text = read_input(std::string(SHMEMCTL_TEST_DATA) + "/hwloc/v3-nvlink.xml");
  auto with = [&text](const std::string& from, const std::string& to) {
    std::string changed = text;
    for (std::size_t at = 0; (at = changed.find(from, at)) != std::string::npos; at += to.size())
      changed.replace(at, from.size(), to);
    return read_hwloc_xml(changed, "x.xml");
  };
  const Node odd = with("50000 ", "51000 ");
  EXPECT_TRUE(odd.gpus[0].links.empty());
  EXPECT_EQ(odd.notes.at(0),
            "the NVLinks of 2 GPUs are left out: the bandwidth of one is not known");
  const Node other_chip = with("[10de:1db8]", "[10de:2901]");
  EXPECT_TRUE(other_chip.gpus[0].links.empty());
  const Node short_matrix = with("75000 25000 75000 ", "");
  EXPECT_EQ(short_matrix.notes.at(0), "the NVLinkBandwidth matrix is malformed and left out");
}

TEST(HwlocReader, FindsGpusWithoutPci) {
  const Node node =
      read_hwloc_xml(machine("<object type=\"OSDev\" name=\"nvml0\" osdev_type=\"1\"/>"
                             "<object type=\"OSDev\" name=\"nvml1\" osdev_type=\"1\"/>"
                             "<object type=\"OSDev\" name=\"cuda0\" osdev_type=\"5\"/>"
                             "<object type=\"OSDev\" name=\"opencl0d0\" osdev_type=\"5\"/>"),
                     "x.xml");
  ASSERT_EQ(node.gpus.size(), 2U);
  EXPECT_EQ(node.gpus[1].pci, -1);
  EXPECT_EQ(node.gpus[1].vendor, "nvidia");
}

TEST(HwlocReader, RefusesBadInputWithItsPosition) {
  EXPECT_EQ(message_of(""), "x.xml: line 1, column 1: the file is empty");
  EXPECT_EQ(message_of("<system version=\"1\"/>"),
            "x.xml: line 1, column 1: the root element is <system>, not <topology>");
  EXPECT_EQ(message_of("<topology/>"), "x.xml: line 1, column 1: the topology has no object");
  EXPECT_NE(message_of(machine("<object type=\"Bridge\"/>")).find("line 3, column 1: a Bridge"),
            std::string::npos);
  EXPECT_NE(message_of(machine("<object type=\"Bridge\" bridge_type=\"0-1\"/>"))
                .find("line 3, column 1: a host bridge without a valid bridge_pci"),
            std::string::npos);
  EXPECT_NE(message_of(machine("<object type=\"PCIDev\" pci_busid=\"0000:00:20.0\"/>"))
                .find("line 3, column 1: a PCI object without a valid pci_busid"),
            std::string::npos);
  EXPECT_NE(message_of(machine("<object type=\"OSDev\"/>")).find("without a valid osdev_type"),
            std::string::npos);
  EXPECT_NE(message_of(machine("<object type=\"NUMANode\" cpuset=\"0xf...f\"/>"))
                .find("line 3, column 1: cpuset is not a bitmap"),
            std::string::npos);
  EXPECT_NE(message_of(machine("<object type=\"Package\" os_index=\"x\"/>")).find("os_index"),
            std::string::npos);
  const std::string whole = read_input(std::string(SHMEMCTL_TEST_DATA) + "/hwloc/v1-sockets.xml");
  for (std::size_t cut = whole.find('<', 60); cut + 2 < whole.size(); cut += 97)
    EXPECT_NE(message_of(whole.substr(0, cut)).find("line "), std::string::npos) << cut;
}

TEST(HwlocReader, BoundsWhatAFileMayClaim) {
  std::string nics;
  for (int i = 0; i < 1500; ++i)
    nics += "<object type=\"OSDev\" name=\"eth" + std::to_string(i) + "\" osdev_type=\"2\"/>";
  EXPECT_NE(message_of(machine(nics)).find("exceed the limit of 1024"), std::string::npos);
  std::string nodes;
  for (int i = 0; i < 1500; ++i)
    nodes += "<object type=\"NUMANode\" cpuset=\"0x1\"/>";
  EXPECT_NE(message_of(machine(nodes)).find("more than 1024 packages or 1024 NUMA nodes"),
            std::string::npos);
  std::string deep;
  for (int i = 0; i < 300; ++i)
    deep += "<object type=\"Group\">";
  EXPECT_NE(message_of(machine(deep)).find("nested deeper than 200 levels"), std::string::npos);
}

} // namespace shmemctl
