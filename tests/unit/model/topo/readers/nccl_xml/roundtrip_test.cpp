// Everything that the model holds survives the XML.
#include <gtest/gtest.h>

#include <sstream>

#include "src/base/error.h"
#include "src/base/xml_text.h"
#include "src/model/topo/distance.h"
#include "src/model/topo/readers/reader.h"
#include "src/model/topo/readers/xml.h"
#include "src/model/topo/writers/writer.h"
#include "tests/support/random_node.h"

namespace shmemctl {
namespace {

/// NCCL's limits: 16 attributes per element, values below 255 bytes.
void check_limits(const XmlElement& element) {
  EXPECT_LE(element.attributes.size(), 16U) << element.position();
  for (const auto& [key, value] : element.attributes)
    EXPECT_LT(xml_escape(value).size(), 254U) << element.position() << " " << key;
  for (const XmlElement& child : element.children)
    check_limits(child);
}

void expect_identity(const Node& node, const std::string& what) {
  const std::string xml = write_nccl_xml(node);
  const Node back = read_nccl_xml(xml, what);
  ASSERT_EQ(first_difference(node, back), "") << what << "\n" << xml;
  ASSERT_EQ(write_nccl_xml(back), xml) << what;
  check_limits(parse_xml(xml, what));
}

TEST(NcclRoundTrip, AnyRandomNodeComesBack) {
  std::mt19937_64 random(20240611);
  for (int i = 0; i < 400; ++i) {
    expect_identity(test::random_node(random), "random node " + std::to_string(i));
    if (HasFatalFailure())
      return;
  }
}

PciDevice pci_entry(const char* address, PciKind kind, int parent, std::uint32_t class_code) {
  PciDevice entry;
  entry.address = *parse_pci_address(address);
  entry.kind = kind;
  entry.parent = parent;
  entry.host_bridge = 0;
  entry.class_code = known(class_code, "test");
  entry.vendor = known<std::uint16_t>(class_code >> 16 == 0x03 ? pci_ids::nvidia : 0x1000, "test");
  entry.link.speed_GTps = known(2.5, "an idle link");
  entry.link.max_speed_GTps = known(32.0, "test");
  return entry;
}

/// As sysfs and hwloc show a machine: every port of a switch is a bridge.
///   00:01.0 root port - 10:00.0 upstream - 11:00.0 downstream - 12:00.0 GPU
///                                        - 11:01.0 downstream - 13:00.0 NIC
///   00:02.0 root port - 20:00.0 NIC
Node bridge_tree() {
  Node node;
  node.host_bridges.push_back({0, 0, known(0, "test"), unknown<int>("test"), true});
  node.pci = {pci_entry("00:01.0", PciKind::bridge, -1, 0x060400),
              pci_entry("10:00.0", PciKind::bridge, 0, 0x060400),
              pci_entry("11:00.0", PciKind::bridge, 1, 0x060400),
              pci_entry("12:00.0", PciKind::endpoint, 2, 0x030200),
              pci_entry("11:01.0", PciKind::bridge, 1, 0x060400),
              pci_entry("13:00.0", PciKind::endpoint, 4, 0x020700),
              pci_entry("00:02.0", PciKind::bridge, -1, 0x060400),
              pci_entry("20:00.0", PciKind::endpoint, 6, 0x020700)};
  Gpu gpu;
  gpu.pci = 3;
  gpu.vendor = "nvidia";
  node.gpus.push_back(gpu);
  for (int entry : {5, 7}) {
    Nic nic;
    nic.name = "mlx5_" + std::to_string(node.nics.size());
    nic.pci = entry;
    nic.rdma = known(true, "test");
    node.nics.push_back(nic);
  }
  return node;
}

TEST(NcclRoundTrip, ATreeOfBridgesComesBack) {
  expect_identity(bridge_tree(), "bridge tree");
}

/// What NCCL reads of an XML: none of our elements.
std::string without_extras(const std::string& xml) {
  std::string out;
  std::istringstream in(xml);
  for (std::string line; std::getline(in, line);)
    if (line.find("<shmemctl ") == std::string::npos)
      out += line + "\n";
  return out;
}

TEST(NcclWriter, NcclSeesOneSwitchWhereThereAreThreeBridges) {
  const Node node = bridge_tree();
  const std::string plain = without_extras(write_nccl_xml(node));
  const Node seen = read_nccl_xml(plain, "plain");
  // As NCCL's own dump: the switch by its upstream port, and no root port.
  ASSERT_EQ(seen.pci.size(), 4U) << plain;
  EXPECT_EQ(to_string(seen.pci[0].address), "0000:10:00.0");
  EXPECT_EQ(distance(node, 0, 1), distance(seen, 0, 1));
  EXPECT_EQ(to_string(distance(seen, 0, 1)), "PIX");
  EXPECT_EQ(to_string(distance(seen, 0, 2)), "NODE");
  EXPECT_EQ(seen.nics[0].name, "mlx5_0");
  EXPECT_NE(plain.find("link_speed=\"32.0 GT/s PCIe\""), std::string::npos)
      << "an idle link's speed would mislead NCCL";
}

TEST(NcclRoundTrip, ARecordedMatrixWithoutATreeComesBack) {
  Node node;
  for (int i = 0; i < 2; ++i) {
    Gpu gpu;
    gpu.index = i;
    node.gpus.push_back(gpu);
  }
  Nic nic;
  nic.name = "NIC0";
  node.nics.push_back(nic);
  const Distance self{PathClass::self, 0, ""};
  const Distance link{PathClass::nvlink, 18, ""};
  const Distance none{std::nullopt, 0, "not told"};
  node.recorded = DistanceMatrix{{self, link, none}, {link, self, none}, {none, none, self}};
  expect_identity(node, "matrix");
}

TEST(NcclRoundTrip, ReasonsAndNotesComeBack) {
  Node node = bridge_tree();
  node.notes = {"note; one", ""};
  node.nics[0].firmware = unknown<std::string>("not = told; 100%");
  node.pci[3].numa = unknown<int>("");
  const Node back = read_nccl_xml(write_nccl_xml(node), "reasons");
  EXPECT_EQ(back.notes, node.notes);
  EXPECT_EQ(back.nics[0].firmware.origin, "not = told; 100%");
  EXPECT_EQ(back.pci[3].numa.origin, "");
}

TEST(NcclRoundTrip, AnEmptyNodeComesBack) {
  expect_identity(Node(), "empty");
}

TEST(NcclRoundTrip, TextsOfAnyBytesAndLengthComeBack) {
  Node node = bridge_tree();
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte)
    bytes += static_cast<char>(byte);
  node.hostname = bytes;
  node.gpus[0].name = known(std::string(1000, 'x') + bytes, "test");
  node.gpus[0].uuid = known<std::string>("", "test");
  node.gpus[0].cpus = known<std::string>("-", "test");
  node.nics[0].name = std::string(300, '&');
  node.nics[1].name = bytes;
  expect_identity(node, "bytes");
}

TEST(NcclRoundTrip, DevicesThatLookAlikeComeBack) {
  Node node = bridge_tree();
  node.nics[1].name = node.nics[0].name;     // one name on two cards
  node.pci[1].address = node.pci[0].address; // one id for two bridges
  node.gpus.push_back(node.gpus[0]);         // two GPUs on one function
  node.gpus[1].index = 1;
  node.gpus[1].name = known<std::string>("second", "test");
  node.pci.push_back(node.pci[3]); // one address for two GPU functions
  Gpu third = node.gpus[0];
  third.index = 2;
  third.pci = 8;
  node.gpus.push_back(third);
  expect_identity(node, "alike");
}

TEST(NcclRoundTrip, ADeepChainOfSwitchesComesBack) {
  Node node;
  node.host_bridges.push_back({0, 0, unknown<int>("test"), unknown<int>("test"), false});
  for (int i = 0; i < 400; ++i)
    node.pci.push_back(pci_entry("01:00.0", PciKind::whole_switch, i - 1, 0x060400));
  expect_identity(node, "deep");
}

TEST(NcclWriter, AnEditedFileIsReadAsEdited) {
  std::string xml = write_nccl_xml(bridge_tree());
  const std::string from = "link_speed=\"32.0 GT/s PCIe\"";
  for (std::size_t at = 0; (at = xml.find(from, at)) != std::string::npos;)
    xml.replace(at, from.size(), "link_speed=\"16.0 GT/s PCIe\"");
  const Node node = read_nccl_xml(xml, "edited");
  EXPECT_EQ(node.pci[static_cast<std::size_t>(node.gpus[0].pci)].link.max_speed_GTps.value, 16.0);
}

} // namespace
} // namespace shmemctl
