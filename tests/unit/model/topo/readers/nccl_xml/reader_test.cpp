// The reader on our own XML: what each element means, and what must be refused.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "src/base/error.h"
#include "src/model/topo/distance.h"
#include "src/model/topo/readers/reader.h"
#include "src/model/topo/writers/writer.h"
#include "test_paths.h"

namespace shmemctl {
namespace {

std::string fixture(const std::string& name) {
  std::ifstream in(std::string(SHMEMCTL_TEST_DATA) + "/nccl/" + name, std::ios::binary);
  EXPECT_TRUE(in.good()) << name;
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

Node small() {
  return read_nccl_xml(fixture("small.xml"), "small.xml");
}

std::string word(const Node& node, int left, int right) {
  return to_string(distance(node, left, right));
}

std::string refusal(const std::string& text) {
  try {
    read_nccl_xml(text, "file");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_FALSE(error.fix().empty());
    return error.message();
  }
  ADD_FAILURE() << "accepted: " << text;
  return "";
}

std::string cpu(const std::string& inside) {
  return "<system version=\"1\">\n<cpu numaid=\"0\">\n" + inside + "\n</cpu></system>";
}

TEST(NcclXml, GpusComeInBusOrderAndKeepNcclsNumber) {
  const Node node = small();
  ASSERT_EQ(node.gpus.size(), 2U);
  EXPECT_EQ(to_string(node.pci[static_cast<std::size_t>(node.gpus[0].pci)].address),
            "0000:02:00.0");
  EXPECT_FALSE(node.gpus[0].driver_index.known()) << "dev 0 is index 0";
  const Node swapped =
      read_nccl_xml(cpu("<pci busid=\"0:2:0.0\" class=\"0x030200\"><gpu dev=\"1\"/></pci>"
                        "<pci busid=\"0:1:0.0\" class=\"0x030200\"><gpu dev=\"4\"/></pci>"),
                    "file");
  EXPECT_EQ(swapped.gpus[0].driver_index.value, 4);
  EXPECT_FALSE(swapped.gpus[1].driver_index.known());
}

TEST(NcclXml, DistancesComeFromSwitchesCpusAndLinks) {
  const Node node = small(); // GPU 02, GPU 12; mlx5_2, mlx5_10, mlx5_11, docker0, eno1
  EXPECT_EQ(word(node, 0, 1), "NV6") << "the smaller of 6 and 9 links to NVSwitches";
  EXPECT_EQ(word(node, 1, 3), "PIX");
  EXPECT_EQ(word(node, 0, 3), "NODE");
  EXPECT_EQ(word(node, 0, 2), "SYS");
  EXPECT_EQ(word(node, 3, 4), "PIX") << "two devices of one function";
  EXPECT_EQ(word(node, 0, 5), "?") << "an interface without a place";
}

TEST(NcclXml, NicsAreSortedAsTheVerbsLibraryEnumeratesThem) {
  std::vector<std::string> names;
  for (const Nic& nic : small().nics)
    names.push_back(nic.name);
  EXPECT_EQ(names, (std::vector<std::string>{"mlx5_2", "mlx5_10", "mlx5_11", "docker0", "eno1"}));
}

TEST(NcclXml, NetsTellRdmaPortsAndRates) {
  const Node node = small();
  EXPECT_EQ(node.nics[0].rdma.value, true);
  EXPECT_EQ(node.nics[2].ports.at(0).number, 1);
  EXPECT_EQ(node.nics[2].ports.at(0).rate_Gbps.value, 400.0);
  EXPECT_EQ(node.nics[3].rdma.value, false);
  EXPECT_TRUE(node.nics[3].virtual_device);
  EXPECT_EQ(node.nics[4].rdma.value, false);
  EXPECT_FALSE(node.nics[4].virtual_device);
  EXPECT_EQ(node.nics[4].ports.at(0).netdev.value, "eno1");
  EXPECT_FALSE(node.nics[0].node_guid.known()) << "the guid is the system image's";
}

TEST(NcclXml, TwoPortsOfOneNameAreOneDevice) {
  const Node node = read_nccl_xml(cpu("<pci busid=\"0:1:0.0\" class=\"0x0207\"><nic>"
                                      "<net name=\"mlx4_0\" port=\"1\" speed=\"40000\"/>"
                                      "<net name=\"mlx4_0\" port=\"2\" speed=\"10000\"/>"
                                      "</nic></pci>"),
                                  "file");
  ASSERT_EQ(node.nics.size(), 1U);
  ASSERT_EQ(node.nics[0].ports.size(), 2U);
  EXPECT_EQ(node.nics[0].ports[1].number, 2);
  EXPECT_EQ(node.nics[0].ports[1].rate_Gbps.value, 10.0);
}

TEST(NcclXml, CpusGroupButAreNoExactHostBridges) {
  const Node node = small();
  ASSERT_EQ(node.host_bridges.size(), 2U);
  EXPECT_FALSE(node.host_bridges[0].exact);
  EXPECT_EQ(node.host_bridges[1].numa.value, 1);
  ASSERT_EQ(node.numa_nodes.size(), 2U);
  EXPECT_EQ(node.numa_nodes[0].cpus.value, "0-3,32-47");
  EXPECT_EQ(node.gpus[0].cpus.value, "0-3,32-47");
  EXPECT_EQ(node.numa_nodes[1].cpus.value, "16-31");
  EXPECT_EQ(node.nvswitches, 2);
}

TEST(NcclXml, LinksToTheCpuAreNotNvlinkDistances) {
  const Node node = small();
  ASSERT_EQ(node.gpus[1].links.size(), 3U);
  const GpuLink& c2c = node.gpus[1].links[2];
  EXPECT_EQ(c2c.kind, GpuLinkKind::c2c);
  EXPECT_EQ(c2c.target, LinkTarget::cpu);
  EXPECT_EQ(c2c.bandwidth_GBps.value, 22.5);
  EXPECT_EQ(c2c.count, 10);
}

TEST(NcclXml, MadeUpSwitchesHaveNoIdsAndNoLink) {
  const Node node = small();
  for (const PciDevice& device : node.pci)
    if (device.address.domain == 0xffff) {
      EXPECT_EQ(device.kind, PciKind::whole_switch);
      EXPECT_FALSE(device.vendor.known());
      EXPECT_FALSE(device.link.max_speed_GTps.known());
      return;
    }
  FAIL() << "the switch is missing";
}

TEST(NcclXml, LinkSpeedIsWhatBothEndsCanDo) {
  const Node node = small();
  const PciDevice& gpu = node.pci[static_cast<std::size_t>(node.gpus[0].pci)];
  EXPECT_EQ(gpu.link.max_speed_GTps.value, 32.0);
  EXPECT_EQ(gpu.link.max_width.value, 16);
  EXPECT_FALSE(gpu.link.speed_GTps.known());
}

TEST(NcclXml, HintFilesAreReadByClass) {
  const Node node = read_nccl_xml(fixture("hint.xml"), "hint.xml");
  ASSERT_EQ(node.gpus.size(), 1U);
  ASSERT_EQ(node.nics.size(), 2U);
  EXPECT_EQ(node.nics[0].name, "nic0");
  EXPECT_TRUE(node.nics[0].unnamed && node.nics[1].unnamed);
  EXPECT_EQ(node.nics[0].rdma.value, true);
  EXPECT_FALSE(node.nics[1].rdma.known()) << "an Ethernet function may be RoCE";
  EXPECT_EQ(node.gpus[0].vendor, "");
  EXPECT_FALSE(node.gpus[0].numa.known());
  ASSERT_EQ(node.notes.size(), 1U);
  EXPECT_NE(node.notes[0].find("line 6"), std::string::npos);
}

TEST(NcclXml, XgmiLinksCountAsLinks) {
  const Node node = read_nccl_xml(fixture("xgmi.xml"), "xgmi.xml");
  EXPECT_EQ(node.gpus.at(0).vendor, "amd");
  EXPECT_EQ(node.gpus.at(0).links.at(0).kind, GpuLinkKind::xgmi);
  EXPECT_EQ(word(node, 0, 1), "NV2");
}

TEST(NcclXml, OnlyTheFirstHostOfAnNvlinkDomainIsRead) {
  const Node node = read_nccl_xml(
      "<system version=\"1\">"
      "<cpu host_hash=\"0x1\" numaid=\"0\"><pci busid=\"0:1:0.0\" class=\"0x030200\"/></cpu>"
      "<cpu host_hash=\"0x2\" numaid=\"0\"><pci busid=\"0:1:0.0\" class=\"0x030200\"/></cpu>"
      "</system>",
      "file");
  EXPECT_EQ(node.gpus.size(), 1U);
  EXPECT_EQ(node.notes.size(), 1U);
}

TEST(NcclXml, SwitchesMayShareAnIdButGpusMayNot) {
  const std::string same = "<pci busid=\"ffff:ff:01.0\" class=\"0x060400\">";
  const Node node = read_nccl_xml(cpu(same + "<pci busid=\"0:1:0.0\" class=\"0x030200\"/></pci>" +
                                      same + "<pci busid=\"0:2:0.0\" class=\"0x030200\"/></pci>"),
                                  "file");
  EXPECT_EQ(word(node, 0, 1), "NODE") << "two switches, though of one id";
  EXPECT_NE(refusal(cpu("<pci busid=\"0:1:0.0\" class=\"0x030200\"/>\n"
                        "<pci busid=\"0:1:0.0\" class=\"0x030200\"/>"))
                .find("line 4, column 1: a second <pci> of 0000:01:00.0"),
            std::string::npos);
}

/// A <pci> with one <net> of these attributes.
std::string nic_on(const std::string& busid, const std::string& net) {
  return "<pci busid=\"" + busid + "\" class=\"0x020700\"><nic><net " + net + "/></nic></pci>\n";
}

std::vector<std::string> names_of(const Node& node) {
  std::vector<std::string> names;
  for (const Nic& nic : node.nics)
    names.push_back(nic.name);
  return names;
}

TEST(NcclXml, NamesOfDataDirectAreThoseOfTheirVerbsDevices) {
  const Node node =
      read_nccl_xml(cpu(nic_on("0:1:0.0", "name=\"mlx5_4_dma\" dev=\"0\" port=\"1\"") +
                        nic_on("0:2:0.0", "name=\"mlx5_5\" dev=\"1\" port=\"1\"") +
                        nic_on("0:3:0.0", "name=\"mlx5_5_dma\" dev=\"2\" port=\"1\"")),
                    "file");
  EXPECT_EQ(names_of(node), (std::vector<std::string>{"mlx5_4", "mlx5_5"}));
  EXPECT_EQ(node.nics[0].data_direct.value, parse_pci_address("0:1:0.0"));
  EXPECT_EQ(node.nics[1].data_direct.value, parse_pci_address("0:3:0.0"));
  EXPECT_EQ(node.pci[static_cast<std::size_t>(node.nics[1].pci)].address,
            *parse_pci_address("0:2:0.0"))
      << "its own place is in the file";
  ASSERT_EQ(node.remarks.size(), 1U);
  EXPECT_NE(node.remarks[0].find("mlx5_4 in line 3"), std::string::npos) << node.remarks[0];
}

TEST(NcclXml, MergedDevicesAreSeveralWithAShareOfTheSpeedEach) {
  const Node node = read_nccl_xml(
      cpu("<pci busid=\"0:1:0.0\" class=\"0x0207\"><nic>"
          "<net name=\"mlx5_0_dma+mlx5_1_dma\" dev=\"0\" port=\"1\" speed=\"800000\"/>"
          "<net name=\"mlx5_2\" dev=\"1\" port=\"2\" speed=\"400000\"/></nic></pci>"),
      "file");
  EXPECT_EQ(names_of(node), (std::vector<std::string>{"mlx5_0", "mlx5_1", "mlx5_2"}));
  for (const Nic& nic : node.nics) {
    ASSERT_EQ(nic.ports.size(), 1U);
    EXPECT_EQ(nic.ports[0].number, 1) << nic.name;
    EXPECT_EQ(nic.ports[0].rate_Gbps.value, 400.0) << nic.name;
  }
  EXPECT_EQ(node.remarks.size(), 2U);
}

TEST(NcclXml, AnInterfaceMayHaveAnyName) {
  const Node node =
      read_nccl_xml(cpu(nic_on("0:1:0.0", "name=\"en0_dma\" port=\"0\" guid=\"0x1\"")), "file");
  EXPECT_EQ(node.nics.at(0).name, "en0_dma");
}

TEST(NcclXml, RdmaDevicesStandInTheOrderOfDev) {
  const Node node = read_nccl_xml(cpu(nic_on("0:1:0.0", "name=\"mlx5_0\" dev=\"2\" port=\"1\"") +
                                      nic_on("0:2:0.0", "name=\"mlx5_1\" dev=\"0\" port=\"1\"") +
                                      nic_on("0:3:0.0", "name=\"mlx5_2\" dev=\"1\" port=\"1\"")),
                                  "file");
  EXPECT_EQ(names_of(node), (std::vector<std::string>{"mlx5_1", "mlx5_2", "mlx5_0"}));
  EXPECT_TRUE(node.remarks.empty());
  const Node twice = read_nccl_xml(cpu(nic_on("0:1:0.0", "name=\"mlx5_1\" dev=\"0\" port=\"1\"") +
                                       nic_on("0:2:0.0", "name=\"mlx5_0\" dev=\"0\" port=\"1\"")),
                                   "file");
  EXPECT_EQ(names_of(twice), (std::vector<std::string>{"mlx5_0", "mlx5_1"}));
  EXPECT_EQ(twice.remarks.size(), 1U) << "dev orders nothing";
}

TEST(NcclXml, PartitionsOfOneGpuAreGpus) {
  const std::string link = "<nvlink target=\"fffffff:ff:ff.0\" count=\"18\" tclass=\"0x068000\"/>";
  const std::string gpu = "<gpu dev=\"0\">" + link + "</gpu>";
  const Node node =
      read_nccl_xml(cpu("<pci busid=\"0:1:0.0\" class=\"0x030200\">" + gpu + gpu + "</pci>\n" +
                        "<pci busid=\"0:2:0.0\" class=\"0x030200\">" + gpu + gpu + gpu + "</pci>"),
                    "file");
  ASSERT_EQ(node.gpus.size(), 5U);
  for (int i = 0; i < 5; ++i)
    for (int j = 0; j < i; ++j)
      EXPECT_EQ(word(node, i, j), "NV18");
  EXPECT_EQ(node.gpus[1].pci, node.gpus[0].pci);
  EXPECT_EQ(first_difference(node, read_nccl_xml(write_nccl_xml(node), "again")), "");
  std::string many;
  for (int i = 0; i < 1100; ++i)
    many += "<gpu dev=\"0\"/>";
  EXPECT_NE(refusal(cpu("<pci busid=\"0:1:0.0\" class=\"0x030200\">" + many + "</pci>"))
                .find("more than 1024 GPUs"),
            std::string::npos);
}

TEST(NcclXml, ALinkWithoutTargetIsCountedWhereItsClassTells) {
  const std::string start = "<pci busid=\"0:1:0.0\" class=\"0x030200\"><gpu dev=\"0\">";
  const Node node =
      read_nccl_xml(cpu(start + "<nvlink count=\"4\" tclass=\"0x068000\"/></gpu></pci>"
                                "<pci busid=\"0:2:0.0\" class=\"0x030200\"><gpu dev=\"1\">"
                                "<nvlink count=\"6\" tclass=\"0x068000\"/></gpu></pci>"),
                    "file");
  EXPECT_EQ(word(node, 0, 1), "NV4");
  EXPECT_TRUE(node.notes.empty());
  const Node nowhere =
      read_nccl_xml(cpu(start + "<nvlink count=\"4\" tclass=\"0x030200\"/></gpu></pci>"), "file");
  ASSERT_EQ(nowhere.notes.size(), 1U);
  EXPECT_NE(nowhere.notes[0].find("does not say to which GPU (1, the first in line 3)"),
            std::string::npos)
      << nowhere.notes[0];
}

TEST(NcclXml, ElementsOfOthersAreNotedOrRefused) {
  const Node node =
      read_nccl_xml("<system version=\"1\">\n<cpu numaid=\"0\">\n"
                    "<box><pci busid=\"0:1:0.0\" class=\"0x030200\"/></box></cpu></system>",
                    "file");
  ASSERT_EQ(node.notes.size(), 1U);
  EXPECT_NE(node.notes[0].find("(1, the first <box> in line 3)"), std::string::npos)
      << node.notes[0];
  EXPECT_NE(refusal("<system version=\"2\">\n<rack><cpu numaid=\"0\"/></rack></system>")
                .find("line 2, column 1: <rack> in <system> and no <cpu>"),
            std::string::npos);
}

TEST(NcclXmlRefuses, InvalidValuesWithTheirLine) {
  EXPECT_NE(refusal(cpu("<pci class=\"0x030200\"/>")).find("line 3, column 1: <pci> without busid"),
            std::string::npos);
  EXPECT_NE(refusal(cpu("<pci busid=\"gpu7\"/>")).find("busid gpu7 is not a PCI address"),
            std::string::npos);
  EXPECT_NE(refusal(cpu("<pci busid=\"0:1:0.0\" class=\"net\"/>")).find("class is net"),
            std::string::npos);
  EXPECT_NE(refusal("<system version=\"1\"><cpu numaid=\"x\"/></system>").find("not a NUMA node"),
            std::string::npos);
  EXPECT_NE(refusal("<system version=\"1\"><cpu numaid=\"0\" affinity=\"zz\"/></system>")
                .find("not a CPU mask"),
            std::string::npos);
  const std::string gpu = "<pci busid=\"0:1:0.0\" class=\"0x030200\"><gpu>";
  EXPECT_NE(refusal(cpu(gpu + "<nvlink target=\"0:2:0.0\" tclass=\"0x0302\"/></gpu></pci>"))
                .find("count of <nvlink> is"),
            std::string::npos);
  EXPECT_NE(refusal(cpu(gpu + "<nvlink target=\"x\" count=\"1\"/></gpu></pci>"))
                .find("target x is not a PCI address"),
            std::string::npos);
}

TEST(NcclXmlRefuses, OtherFiles) {
  EXPECT_NE(refusal("<graphs version=\"1\"/>").find("line 1, column 1: this is an NCCL graph file"),
            std::string::npos);
  EXPECT_NE(refusal("<topology/>").find("<topology>, not <system>"), std::string::npos);
  EXPECT_NE(refusal("").find("line 1"), std::string::npos);
}

TEST(NcclXmlRefuses, EveryTruncation) {
  const std::string text = fixture("small.xml");
  const std::size_t end = text.rfind("</system>") + std::string("</system>").size();
  for (std::size_t size = 0; size < end; ++size)
    EXPECT_NE(refusal(text.substr(0, size)).find("line "), std::string::npos) << size;
}

TEST(NcclXmlRefuses, MoreDevicesThanAnyMachineHas) {
  std::string gpus;
  for (int i = 0; i < 1100; ++i)
    gpus += "<pci busid=\"" + to_string(PciAddress{static_cast<std::uint32_t>(i), 0, 0, 0}) +
            "\" class=\"0x030200\"/>";
  EXPECT_NE(refusal(cpu(gpus)).find("more than 1024 GPUs and NICs"), std::string::npos);
  std::string switches;
  for (int i = 0; i < 17000; ++i)
    switches += "<pci busid=\"0:0:0.0\" class=\"0x060400\"/>\n";
  EXPECT_NE(refusal(cpu(switches)).find("line 16387, column 1: more than 16384 PCI functions"),
            std::string::npos);
}

TEST(NcclXmlRefuses, DamagedFieldsOfOurOwn) {
  const std::string start = "<system version=\"1\">\n<shmemctl ";
  const std::string end = "/></system>";
  EXPECT_NE(refusal(start + "value=\"1\"" + end).find("line 2, column 1: <shmemctl> without a key"),
            std::string::npos);
  for (const char* field :
       {"key=\"packages\" value=\"4000000000\"", "key=\"packages\" value=\"1\"",
        "key=\"pci\" value=\"a b\"", "key=\"gpus\" value=\"a a a a a a a a a a a a a a a a\"",
        "key=\"recorded\" value=\"3\"", "key=\"hostname\"", "key=\"nvswitches\" value=\"x\"",
        "key=\"hostname\" value=\"%zz\""})
    EXPECT_NE(refusal(start + field + end).find("line 2, column 1: the field "), std::string::npos)
        << field;
  EXPECT_NE(refusal(start + "key=\"nvswitches\" value=\"-1\"" + end)
                .find("line 1, column 1: a number of NVSwitches that cannot be"),
            std::string::npos);
}

} // namespace
} // namespace shmemctl
