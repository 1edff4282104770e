#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/text.h"
#include "src/model/topo/distance.h"
#include "src/model/topo/node.h"
#include "src/model/topo/readers/reader.h"
#include "src/model/topo/writers/writer.h"
#include "tests/support/random_node.h"

namespace shmemctl {

namespace {

std::string message_of(const std::string& text) {
  try {
    read_hwloc_xml(text, "dump.xml");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.message();
  }
  return "no error";
}

/// A node with one of everything, so that a test can name it.
Node small_node() {
  Node node;
  node.hostname = "a\nb";
  node.packages.push_back({0, known<std::string>("CPU", "")});
  NumaNode numa;
  numa.package = known(0, "");
  numa.cpus = known<std::string>("0-3", "");
  node.numa_nodes.push_back(numa);
  HostBridge bridge;
  bridge.bus = 0x10;
  bridge.numa = known(0, "");
  node.host_bridges.push_back(bridge);
  PciDevice entry;
  entry.address = {0, 0x10, 1, 0};
  entry.kind = PciKind::bridge;
  entry.host_bridge = 0;
  node.pci.push_back(entry);
  entry.address = {0, 0x11, 0, 0};
  entry.kind = PciKind::endpoint;
  entry.parent = 0;
  entry.class_code = known<std::uint32_t>(0x030200, "");
  entry.vendor = known<std::uint16_t>(0x10de, "");
  entry.device = known<std::uint16_t>(0x2330, "");
  entry.subsystem_vendor = known<std::uint16_t>(0x10de, "");
  entry.subsystem_device = known<std::uint16_t>(1, "");
  node.pci.push_back(entry);
  Gpu gpu;
  gpu.pci = 1;
  gpu.vendor = "nvidia";
  gpu.links.push_back(
      {GpuLinkKind::nvlink, LinkTarget::nvswitch, std::nullopt, 18, known(26.5625, "")});
  node.gpus.push_back(gpu);
  Nic nic;
  nic.name = "mlx5_0";
  nic.rdma = known(true, "");
  nic.firmware = unknown<std::string>("not = told; 100%");
  NicPort port;
  port.gids.push_back({3, "fe80::1", known<std::string>("RoCE v2", ""), {}});
  nic.ports.push_back(port);
  node.nics.push_back(nic);
  return node;
}

} // namespace

TEST(HwlocDump, ReadingBackARandomNodeIsTheIdentity) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    std::mt19937_64 random(seed);
    const Node node = test::random_node(random);
    ASSERT_EQ(shape_problem(node), "") << "seed " << seed;
    const std::string text = write_hwloc_xml(node);
    const Node again = read_hwloc_xml(text, "dump.xml");
    ASSERT_EQ(first_difference(node, again), "") << "seed " << seed;
    ASSERT_EQ(write_hwloc_xml(again), text) << "seed " << seed; // reasons and notes survive too
    EXPECT_EQ(again.format, "hwloc-xml");
  }
}

TEST(HwlocDump, KeepsReasonsAndNotes) {
  Node node = small_node();
  node.notes = {"note; one", "two"};
  const Node again = read_hwloc_xml(write_hwloc_xml(node), "dump.xml");
  EXPECT_EQ(again.nics.at(0).firmware.origin, "not = told; 100%");
  EXPECT_EQ(again.notes, node.notes);
  EXPECT_EQ(again.hostname, "a\nb");
}

TEST(HwlocDump, AnEmptyNodeIsADumpToo) {
  EXPECT_EQ(first_difference(read_hwloc_xml(write_hwloc_xml({}), "dump.xml"), {}), "");
}

/// `xml` with the value of one of our infos replaced.
std::string with_field(const std::string& xml, const std::string& key, const std::string& value) {
  const std::string start = "\"shmemctl:" + key + "\" value=\"";
  const std::size_t at = xml.find(start);
  EXPECT_NE(at, std::string::npos) << key;
  const std::size_t from = at + start.size();
  return std::string(xml).replace(from, xml.find('"', from) - from, value);
}

TEST(HwlocDump, RefusesFieldsThatDoNotFit) {
  const std::string dump = write_hwloc_xml(small_node());
  const std::string gpu = "pci.0000:11:00.0.";
  const std::vector<std::array<std::string, 3>> cases = {
      {"pci", "0000:10:01.0 0000:12:00.0", "the field pci.0000:12:00.0.address is missing"},
      {"pci", "0000:10:01.0 0000:10:01.0", "the field pci lists an item twice"},
      {gpu + "parent", "7", "the bridge above 0000:11:00.0 does not come before it"},
      {gpu + "kind", "tunnel", "the field pci.0000:11:00.0.kind has the invalid value tunnel"},
      {gpu + "vendor", "65536", "the field pci.0000:11:00.0.vendor has the invalid value 65536"},
      {gpu + "vendor", "", "the field pci.0000:11:00.0.vendor is empty"},
      {"gpus.0.pci", "99", "the PCI function of GPU 0 does not exist"},
      {"gpus.0.links.0.count", "2000000000", "GPU 0 has 2000000000 links"},
      {"gpus.0.links.0.bandwidth_GBps", "inf",
       "the field gpus.0.links.0.bandwidth_GBps has the invalid value inf"},
      {"recorded", "-", "0 rows for 2"},
      {"recorded", "0", "the field recorded.0 is missing"},
      {"nics.mlx5_0.firmware", "?100%2",
       "the field nics.mlx5_0.firmware has the invalid value 100%2"},
      {"nics.mlx5_0.ports.0.gids", "1", "the field nics.mlx5_0.ports.0.gids.1.index is missing"}};
  for (const auto& [key, value, problem] : cases)
    EXPECT_NE(message_of(with_field(dump, key, value)).find(problem), std::string::npos)
        << key << " " << message_of(with_field(dump, key, value));
  EXPECT_EQ(message_of(dump), "no error");
}

TEST(HwlocDump, NamesTheLineOfAFieldThatIsWrong) {
  const std::string dump = with_field(write_hwloc_xml(small_node()), "nvswitches", "many");
  const std::string before = dump.substr(0, dump.find("shmemctl:nvswitches"));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  EXPECT_NE(message_of(dump).find("line " + std::to_string(line) + ", column"), std::string::npos)
      << message_of(dump);
}

TEST(HwlocDump, WithoutOurInfosItIsWhatLstopoWouldSay) {
  const Node node = small_node();
  std::string native;
  for (const std::string& line : split(write_hwloc_xml(node), '\n'))
    if (line.find("shmemctl:") == std::string::npos)
      native += line + "\n";
  const Node again = read_hwloc_xml(native, "native.xml");
  ASSERT_EQ(again.gpus.size(), 1U);
  ASSERT_EQ(again.nics.size(), 1U);
  EXPECT_EQ(again.nics[0].name, "mlx5_0");
  EXPECT_EQ(again.gpus[0].numa.value, 0);
  EXPECT_EQ(again.pci.size(), 2U);
  EXPECT_EQ(again.host_bridges.at(0).bus, 0x10);
  EXPECT_EQ(again.packages.at(0).model.value, "CPU");
  EXPECT_EQ(again.numa_nodes.at(0).cpus.value, "0-3");
}

TEST(HwlocDump, LstopoLoadsIt) {
  if (std::system("lstopo-no-graphics --version >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "lstopo-no-graphics is not installed";
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("shmemctl-dump-" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  const std::string in = (folder / "in.xml").string();
  const std::string out = (folder / "out.xml").string();
  for (std::uint64_t seed = 0; seed <= 120; ++seed) {
    std::mt19937_64 random(seed);
    const Node node = seed == 120 ? small_node() : test::random_node(random);
    std::ofstream(in) << write_hwloc_xml(node);
    const std::string log = (folder / "log").string();
    const std::string command = "HWLOC_DEBUG_CHECK=1 lstopo-no-graphics -i " + in +
                                " --whole-io -f --of xml " + out + " >" + log + " 2>&1";
    ASSERT_EQ(std::system(command.c_str()), 0) << "seed " << seed;
    std::ifstream said(log);
    const std::string words((std::istreambuf_iterator<char>(said)), {});
    ASSERT_EQ(words, "") << "seed " << seed;
    std::ifstream file(out);
    const std::string passed((std::istreambuf_iterator<char>(file)), {});
    // hwloc keeps our infos, so that even its own copy of the dump is a dump.
    EXPECT_EQ(first_difference(node, read_hwloc_xml(passed, out)), "") << "seed " << seed;
  }
  std::filesystem::remove_all(folder);
}

TEST(HwlocDump, ReadsWhatLstopoSaysAboutThisMachine) {
  const std::filesystem::path file = std::filesystem::temp_directory_path() /
                                     ("shmemctl-live-" + std::to_string(::getpid()) + ".xml");
  const std::string command =
      "lstopo-no-graphics --whole-io -f --of xml " + file.string() + " >/dev/null 2>&1";
  if (std::system(command.c_str()) != 0)
    GTEST_SKIP() << "lstopo-no-graphics is not installed";
  std::ifstream written(file);
  const std::string text((std::istreambuf_iterator<char>(written)), {});
  std::filesystem::remove(file);
  const Node node = read_hwloc_xml(text, "live.xml");
  EXPECT_NE(node.hostname, "");
  ASSERT_FALSE(node.numa_nodes.empty());
  EXPECT_TRUE(node.numa_nodes[0].cpus);
  EXPECT_EQ(first_difference(node, read_hwloc_xml(write_hwloc_xml(node), "dump.xml")), "");
}

} // namespace shmemctl
