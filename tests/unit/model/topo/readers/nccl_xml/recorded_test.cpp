// Every recorded NCCL XML: what it names, the distances, and what must be refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "src/base/error.h"
#include "src/model/topo/distance.h"
#include "src/model/topo/readers/reader.h"
#include "src/model/topo/writers/writer.h"
#include "test_paths.h"

namespace shmemctl {
namespace {

namespace fs = std::filesystem;

fs::path shared(const std::string& file) {
  return fs::path(SHMEMCTL_SHARED) / "topologies" / file;
}

std::string slurp(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

std::vector<std::string> parts_of(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);)
    parts.push_back(part);
  return parts;
}

/// From INDEX.md and the folders' SOURCE.md: GPUs, RDMA devices or those known by class only, other
/// network devices, and the cell of GPU0 and GPU1 if links are recorded.
struct Expected {
  std::string file;
  std::size_t gpus;
  std::size_t nics;
  std::size_t others;
  std::string gpu0_gpu1;
};

void PrintTo(const Expected& expected, std::ostream* out) {
  *out << expected.file;
}

const std::vector<Expected>& expected_files() {
  static const std::vector<Expected> files = {
      {"azure-ndv2/ndv2-topo.xml", 8, 1, 0, "NODE"},
      {"azure-ndv2/ndv2-topo.2023-06.xml", 8, 1, 0, "NODE"},
      {"azure-ndv5/msccl-executor-ndv5-topo.xml", 8, 8, 0, "NODE"},
      {"azure-ndv5/msccl-ndv5-topo-new.xml", 8, 8, 0, "NODE"},
      {"azure-ndv5/mscclpp-ndv5-topo.xml", 8, 8, 0, "NODE"},
      {"azure-ndv5/ndv5-topo.2023-06-WRONG-affinity.xml", 8, 8, 0, "NODE"},
      {"azure-ndv5/ndv5-topo.2025-01.xml", 8, 8, 0, "NODE"},
      {"azure-ndv5/superbench-ndv5-topo.xml", 8, 8, 0, "NODE"},
      {"aws-p4d/p4d-24xl-topo.2020.xml", 8, 4, 0, "PIX"},
      {"aws-p4d/p4d-24xl-topo.xml", 8, 4, 0, "PIX"},
      {"aws-p4d/p4de-24xl-topo.xml", 8, 4, 0, "PIX"},
      {"aws-p4d/uccl-p4d-24xl-topo.xml", 8, 4, 0, "PIX"},
      {"aws-p5en/p5en-48xl-topo.xml", 8, 16, 0, "PIX"},
      {"aws-g5-48xl/g5.48xl-topo.xml", 0, 0, 0, ""},
      {"aws-g5-48xl/g5.48xl-topo.2023-no-nic.xml", 0, 0, 0, ""},
      {"oci-h100/BM.GPU.H100.8.xml", 8, 16, 0, "NV18"},
      {"oci-h100/BM.GPU.H100.8.2024-01.xml", 8, 16, 0, "NV18"},
      {"oci-h100/H100-topology.xml", 8, 16, 0, "NV18"},
      {"oci-h100/H100-topology-kubernetes.xml", 8, 16, 0, "NV18"},
      {"crusoe-b300-vm/b300-288gb-sxm-ib-cloud-hypervisor.xml", 8, 8, 0, "NODE"},
      {"h800-hgx/topo_h800.xml", 8, 8, 0, "NV8"},
      {"a6000-eth/topo.xml", 4, 0, 10, "NODE"},
      {"a6000-eth/topo_mod.xml", 2, 0, 10, "NODE"},
      {"simai-a100/topo_1A100_1CX6.xml", 1, 2, 0, ""},
      {"simai-a100/topo_2A100_1CX6.xml", 2, 2, 0, "NV12"},
      {"simai-a100/topo_4A100_2CX6.xml", 4, 3, 0, "NV12"},
      {"simai-a100/topo_8A100_4CX6.xml", 8, 5, 0, "NV12"},
      {"timez-a100-merged/nccl_topo_dump.xml", 2, 2, 0, "NV12"},
      {"timez-a100-merged/nccl_topo_dump_normal.xml", 2, 2, 0, "NV12"},
      {"timez-a100-merged/topo_fail.xml", 2, 2, 0, "NV12"},
      {"timez-a100-merged/topo_real.xml", 2, 2, 0, "NV12"},
      {"rtx-2gpu-cx4/topo.xml", 2, 2, 0, "SYS"},
      {"rtx3090-8x-1nic/topo.xml", 8, 1, 0, "PIX"},
      {"sugarlxn-4090/nccl_topo.xml", 4, 0, 16, "SYS"},
      {"blinkplus-dgx/topology.xml", 8, 0, 3, "NV1"},
      {"rccl-models/topo_4p4h.xml", 16, 16, 0, ""},
      {"rccl-models/topo_16p1h.xml", 16, 8, 0, ""},
      {"rccl-models/topo_16p1h_vm.xml", 16, 8, 0, ""},
      {"rccl-models/topo_8p1h_5.xml", 8, 8, 0, ""},
      {"rccl-models/topo_4p_940.xml", 4, 4, 0, "NV1"},
      {"rccl-models/topo_8p_940.xml", 8, 8, 0, "NV1"},
      {"rccl-models/topo_8p_940vm.xml", 8, 8, 0, "NV1"},
      {"rccl-models/topo_8p_rome_4nics.xml", 8, 4, 0, ""},
      {"rccl-models/topo_8p_ts1_n4_2.xml", 8, 3, 0, ""},
      {"rccl-models/topo_collnet_n4.xml", 8, 4, 0, ""},
      {"rccl-models/topo_8p6l_6nic.xml", 8, 6, 0, ""},
      {"rccl-models/topo_3p_pcie.xml", 3, 1, 0, "SYS"},
      {"rccl-mi300/topo_4p_942.xml", 4, 4, 0, "NV1"},
      {"rccl-mi300/topo_8p_942.xml", 8, 8, 0, "NV1"},
      {"rccl-mi300/topo_8p_942vm.xml", 8, 8, 0, "NV1"},
  };
  return files;
}

std::string word(const Node& node, int left, int right) {
  return to_string(distance(node, left, right));
}

class RecordedXml : public testing::TestWithParam<Expected> {
protected:
  void SetUp() override {
    if (!fs::exists(shared("INDEX.md")))
      GTEST_SKIP() << "the recorded machines are not beside the checkout";
    node_ = read_nccl_xml(slurp(shared(GetParam().file)), GetParam().file);
  }
  Node node_;
};

TEST_P(RecordedXml, HasItsGpusNicsAndLinks) {
  const auto rdma = [](const Nic& nic) { return !nic.rdma || *nic.rdma; };
  const auto nics =
      static_cast<std::size_t>(std::count_if(node_.nics.begin(), node_.nics.end(), rdma));
  EXPECT_EQ(node_.gpus.size(), GetParam().gpus);
  EXPECT_EQ(nics, GetParam().nics);
  EXPECT_EQ(node_.nics.size() - nics, GetParam().others);
  if (!GetParam().gpu0_gpu1.empty()) {
    EXPECT_EQ(word(node_, 0, 1), GetParam().gpu0_gpu1);
  }
  for (const Nic& nic : node_.nics)
    EXPECT_FALSE(nic.name.empty());
}

TEST_P(RecordedXml, DistancesAreSymmetricAndKnown) {
  const DistanceMatrix matrix = distance_matrix(node_);
  for (std::size_t i = 0; i < matrix.size(); ++i)
    for (std::size_t j = 0; j < matrix.size(); ++j) {
      EXPECT_EQ(matrix[i][j], distance(node_, static_cast<int>(j), static_cast<int>(i)));
      const auto placed = [this](std::size_t device) {
        const std::size_t gpus = node_.gpus.size();
        return device < gpus || node_.nics[device - gpus].pci >= 0;
      };
      EXPECT_TRUE(matrix[i][j].path.has_value() || !placed(i) || !placed(j)) << i << " " << j;
    }
}

TEST_P(RecordedXml, WritesAndReadsBackTheSameModel) {
  const std::string xml = write_nccl_xml(node_);
  EXPECT_EQ(first_difference(node_, read_nccl_xml(xml, "written")), "");
}

std::string file_label(const testing::TestParamInfo<Expected>& param) {
  std::string name;
  for (char c : param.param.file)
    name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, RecordedXml, testing::ValuesIn(expected_files()), file_label);

class RecordedFacts : public testing::Test {
protected:
  void SetUp() override {
    if (!fs::exists(shared("INDEX.md")))
      GTEST_SKIP() << "the recorded machines are not beside the checkout";
  }
  static Node read(const std::string& file) { return read_nccl_xml(slurp(shared(file)), file); }
};

/// One line of expected-derived.tsv against the node: the relation, and the nearest NICs.
void check_derived(const Node& node, const std::vector<std::string>& row) {
  const std::string where = row[0] + " " + row[1];
  int gpu = -1;
  for (const Gpu& candidate : node.gpus)
    if (to_string(node.pci[static_cast<std::size_t>(candidate.pci)].address) == row[1])
      gpu = candidate.index;
  ASSERT_GE(gpu, 0) << where;
  EXPECT_EQ(node.gpus[static_cast<std::size_t>(gpu)].numa.value, std::stoi(row[2])) << where;
  std::map<PathClass, std::set<std::string>> names;
  std::map<PathClass, std::set<std::string>> addresses;
  for (std::size_t nic = 0; nic < node.nics.size(); ++nic) {
    if (node.nics[nic].pci < 0)
      continue;
    const PathClass path = *distance(node, gpu, static_cast<int>(node.gpus.size() + nic)).path;
    names[path].insert(node.nics[nic].name);
    addresses[path].insert(
        to_string(node.pci[static_cast<std::size_t>(node.nics[nic].pci)].address));
  }
  ASSERT_FALSE(addresses.empty()) << where;
  const auto& [nearest, nearest_addresses] = *addresses.begin();
  if (row[3] == "shared-pci-ancestor") {
    EXPECT_LE(nearest, PathClass::pxb) << where;
  } else {
    EXPECT_EQ(nearest, row[3] == "NODE" ? PathClass::node : PathClass::sys) << where;
  }
  std::set<std::string> expected;
  for (const std::string& address : parts_of(row[5], ','))
    expected.insert(address);
  // topo_4p4h lists switch c5 (and e6) once per GPU. NCCL takes each for a switch of its own, the
  // table takes them for one.
  if (row[0] == "topo_4p4h.xml") {
    EXPECT_TRUE(std::includes(expected.begin(), expected.end(), nearest_addresses.begin(),
                              nearest_addresses.end()))
        << where;
    return;
  }
  // PIX and PXB do not count the switches on the path, but the table does.
  if (nearest == PathClass::pxb) {
    EXPECT_TRUE(std::includes(nearest_addresses.begin(), nearest_addresses.end(), expected.begin(),
                              expected.end()))
        << where;
  } else {
    EXPECT_EQ(nearest_addresses, expected) << where;
  }
  for (std::string name : parts_of(row[6], ',')) {
    std::replace(name.begin(), name.end(), '+', '|'); // NCCL's name of several merged devices
    for (const std::string& each : parts_of(name, '|'))
      EXPECT_TRUE(each == "-" || names[nearest].count(each) == 1) << where << " " << each;
  }
}

TEST_F(RecordedFacts, NearestNicsAgreeWithTheDerivedTables) {
  std::map<std::string, Node> nodes;
  for (const Expected& expected : expected_files())
    nodes[expected.file] = read(expected.file);
  std::size_t rows = 0;
  for (const auto& entry : fs::directory_iterator(shared(""))) {
    std::istringstream in(slurp(entry.path() / "expected-derived.tsv"));
    for (std::string line; std::getline(in, line);) {
      const std::vector<std::string> row = parts_of(line, '\t');
      if (row.size() < 7)
        continue;
      const auto node = nodes.find(entry.path().filename().string() + "/" + row[0]);
      if (node == nodes.end())
        continue;
      check_derived(node->second, row);
      ++rows;
    }
  }
  EXPECT_GT(rows, 300U);
}

TEST_F(RecordedFacts, NvlinksOfTheCubeMesh) {
  // DGX-1: one row of nvidia-smi's matrix, according to the file's direct links.
  const Node node = read("blinkplus-dgx/topology.xml");
  const std::vector<std::string> row = {"X", "NV1", "NV1", "NV2", "NV2", "SYS", "SYS", "SYS"};
  for (int j = 0; j < 8; ++j)
    EXPECT_EQ(word(node, 0, j), row[static_cast<std::size_t>(j)]) << j;
  EXPECT_EQ(node.nvswitches, 0);
}

TEST_F(RecordedFacts, NvswitchesAreCounted) {
  EXPECT_EQ(read("h800-hgx/topo_h800.xml").nvswitches, 4);
  EXPECT_EQ(read("oci-h100/H100-topology.xml").nvswitches, 4);
}

TEST_F(RecordedFacts, TwoNamesOnOneFunctionAreTwoDevicesWithPortOneEach) {
  const Node node = read("oci-h100/H100-topology.xml");
  EXPECT_EQ(node.nics[0].name, "mlx5_0");
  EXPECT_EQ(node.nics[1].name, "mlx5_1");
  EXPECT_EQ(node.nics[2].name, "mlx5_3");
  EXPECT_EQ(node.nics[0].pci, node.nics[1].pci);
  ASSERT_EQ(node.nics[1].ports.size(), 1U);
  EXPECT_EQ(node.nics[1].ports[0].number, 1) << "port=\"2\" there counts devices, not ports";
  EXPECT_EQ(node.nics[1].ports[0].rate_Gbps.value, 180.0);
}

TEST_F(RecordedFacts, MergedNicsAreTheDevicesOfTheDumpWithoutMerging) {
  const Node merged = read("timez-a100-merged/topo_real.xml");
  const Node plain = read("timez-a100-merged/nccl_topo_dump_normal.xml");
  ASSERT_EQ(merged.nics.size(), plain.nics.size());
  for (std::size_t i = 0; i < plain.nics.size(); ++i) {
    EXPECT_EQ(merged.nics[i].name, plain.nics[i].name);
    EXPECT_EQ(merged.nics[i].ports.at(0).rate_Gbps.value,
              plain.nics[i].ports.at(0).rate_Gbps.value);
  }
}

TEST_F(RecordedFacts, MadeUpNamesFollowTheFile) {
  const Node node = read("aws-p5en/p5en-48xl-topo.xml");
  for (std::size_t i = 0; i < node.nics.size(); ++i)
    EXPECT_TRUE(node.nics[i].unnamed && node.nics[i].name == "nic" + std::to_string(i));
  EXPECT_EQ(node.nics[0].rdma.value, true) << "EFA by its PCI id";
  EXPECT_FALSE(read("aws-p4d/p4d-24xl-topo.2020.xml").nics[0].rdma.known());
  EXPECT_EQ(read("azure-ndv2/ndv2-topo.xml").nics[0].rdma.value, true) << "class InfiniBand";
}

TEST_F(RecordedFacts, FunctionsWithoutClassAreNoted) {
  const Node node = read("aws-g5-48xl/g5.48xl-topo.xml");
  ASSERT_EQ(node.notes.size(), 1U);
  EXPECT_NE(node.notes[0].find("(9, the first in line 14)"), std::string::npos) << node.notes[0];
}

TEST_F(RecordedFacts, DriverIndicesThatSkipAreKept) {
  const Node node = read("sugarlxn-4090/nccl_topo.xml");
  EXPECT_FALSE(node.gpus[1].driver_index.known());
  EXPECT_EQ(node.gpus[2].driver_index.value, 3);
  EXPECT_EQ(node.gpus[3].driver_index.value, 4);
}

TEST_F(RecordedFacts, VirtualInterfacesHaveNoPlace) {
  const Node node = read("sugarlxn-4090/nccl_topo.xml");
  for (const Nic& nic : node.nics) {
    EXPECT_EQ(nic.rdma.value, false) << nic.name;
    EXPECT_EQ(nic.virtual_device, nic.name != "enp34s0f0") << nic.name;
    EXPECT_EQ(nic.numa.known(), nic.name == "enp34s0f0") << nic.name;
  }
}

TEST_F(RecordedFacts, AMachineOfAmdHasXgmiLinks) {
  const Node node = read("rccl-mi300/topo_8p_942.xml");
  for (const Gpu& gpu : node.gpus) {
    EXPECT_EQ(gpu.vendor, "amd");
    ASSERT_EQ(gpu.links.size(), 7U);
    EXPECT_EQ(gpu.links[0].kind, GpuLinkKind::xgmi);
    EXPECT_EQ(gpu.links[0].target, LinkTarget::gpu);
  }
}

TEST_F(RecordedFacts, ASpeedThatNoPortHasIsNotBelieved) {
  const Node node = read("rccl-mi300/topo_4p_942.xml"); // cxi: 200000000 "Mbit/s"
  EXPECT_EQ(node.nics.at(0).name, "cxi0");
  EXPECT_FALSE(node.nics.at(0).ports.at(0).rate_Gbps.known());
}

/// The message of the refusal.
std::string refusal(const std::string& file) {
  try {
    read_nccl_xml(slurp(shared(file)), file);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.message();
  }
  ADD_FAILURE() << file << " was accepted";
  return "";
}

TEST_F(RecordedFacts, GraphAndTruncatedFilesAreRefusedWithTheirLine) {
  EXPECT_NE(refusal("rtx3090-8x-1nic/graph.xml").find("line 1, column 1: this is an NCCL graph"),
            std::string::npos);
  EXPECT_NE(refusal("h200-vm-flat/host-nccl-topo.TRUNCATED.xml").find("line "), std::string::npos);
  EXPECT_NE(refusal("h200-vm-flat/vm-nccl-topo.TRUNCATED.xml").find("line "), std::string::npos);
  EXPECT_NE(refusal("llnl-pascal/cts1-pascal.xml").find("not <system>"), std::string::npos);
}

TEST_F(RecordedFacts, AGuestWithoutNumaSeesEverythingAtTheSameDistance) {
  // The author truncated the file: with closing tags added, it has a GPU and a NIC of a flat guest.
  const Node node = read_nccl_xml(slurp(shared("h200-vm-flat/vm-nccl-topo.TRUNCATED.xml")) +
                                      "\n  </cpu>\n</system>\n",
                                  "closed");
  ASSERT_EQ(node.gpus.size(), 1U);
  EXPECT_FALSE(node.gpus[0].numa.known());
  EXPECT_EQ(word(node, 0, 1), "?") << "neither host bridges nor NUMA nodes are told";
  ASSERT_EQ(node.gpus[0].links.size(), 1U);
  EXPECT_EQ(node.gpus[0].links[0].target, LinkTarget::nvswitch);
  EXPECT_FALSE(node.gpus[0].links[0].target_address.has_value());
  EXPECT_EQ(node.gpus[0].links[0].count, 18);
  EXPECT_EQ(node.nvswitches, 0) << "the guest does not see any";
}

} // namespace
} // namespace shmemctl
