// Every recorded machine in hwloc's XML, read in place.
#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <set>

#include "src/base/input.h"
#include "src/base/text.h"
#include "src/model/topo/distance.h"
#include "src/model/topo/node.h"
#include "src/model/topo/pcie.h"
#include "src/model/topo/readers/reader.h"
#include "src/model/topo/writers/writer.h"
#include "test_paths.h"

namespace shmemctl {

namespace {

struct Machine {
  const char* file;
  int gpus;
  int rdma; ///< NICs known to be RDMA devices
  const char* first_rdma;
};

constexpr Machine machines[] = {
    {"azure-ndv2/lstopo-nd40rs_v2.xml", 8, 1, "mlx5_ib0"},
    {"aws-p4d-lstopo/p4d.24xl-topo.xml", 8, 4, "rdmap16s27"},
    {"aws-p5en/p5en.48xl-lstopo.xml", 8, 16, "rdmap85s0"},
    {"aws-g5-48xl/g5.48xl-lstopo.xml", 8, 1, "rdmap0s21"},
    {"aws-g6-48xl/g6.48xl-topo.xml", 8, 1, "rdmap150s0"},
    {"aws-p3dn/p3dn.24xl-topo.xml", 8, 1, "rdmap0s21"},
    {"aws-p3dn/c5n.18xl-topo.xml", 0, 1, "rdmap0s31"},
    {"aws-g4dn-metal/g4dnmetal.xml", 8, 1, "rdmap197s0"},
    {"gcp-v100-virtio/lstopo.xml", 8, 0, ""},
    {"dgx2-hwloc/nvidiaDGX2.xml", 16, 0, ""},
    {"power8-minsky/coral-ea-hwloc1.xml", 4, 2, "mlx5_0"},
    {"power8-minsky/power8gpudistances.xml", 4, 0, ""},
    {"llnl-pascal/cts1-pascal.xml", 2, 1, "mlx5_0"},
    {"amd-corona-tioga/epyc-corona.xml", 4, 1, "mlx5_0"},
    {"amd-corona-tioga/epyc-corona-p2.xml", 8, 1, "mlx5_0"},
    {"amd-corona-tioga/rsmi_corona240.xml", 8, 1, "mlx5_0"},
    {"amd-corona-tioga/eas-tioga.xml", 8, 0, ""},
    {"mi300a-elcap/tuo.SPX.xml", 4, 0, ""},
    {"mi300a-elcap/tuo.TPX.xml", 4, 0, ""},
    {"mi300a-elcap/tuo.CPX.xml", 4, 0, ""},
    {"chimera-multi-gpu/chimera.xml", 2, 0, ""},
    // SOURCE.md speaks of three Fermi GPUs; the fourth display function is the board's ES1000,
    // which the folder's expected-derived.tsv counts as well.
    {"hwloc-pci-old/24em64t-2n6c2t-pci.xml", 4, 1, "mlx4_0"},
    {"hwloc-pci-old/32em64t-2n8c2t-pci-wholeio.xml", 4, 1, "mlx5_0"},
    {"hwloc-pci-old/96em64t-4n4d3ca2co-pci.xml", 1, 0, ""},
    {"hwloc-pci-old/16intel64-manyVFs.xml", 0, 3, "usnic_0"},
    {"hwloc-i40iw/topo.xml", 0, 4, "i40iw0"},
};

const std::filesystem::path shared = std::filesystem::path(SHMEMCTL_SHARED) / "topologies";

Node read(const std::string& file) {
  return read_hwloc_xml(read_input((shared / file).string()), file);
}

int rdma_count(const Node& node) {
  return static_cast<int>(std::count_if(node.nics.begin(), node.nics.end(),
                                        [](const Nic& nic) { return nic.rdma && *nic.rdma; }));
}

struct Nearest {
  std::string relation; ///< as in expected-derived.tsv
  std::set<std::string> nics;
};

Nearest nearest_rdma(const Node& node, int gpu) {
  std::map<PathClass, std::set<std::string>> by_class;
  for (std::size_t i = 0; i < node.nics.size(); ++i) {
    const Distance way = distance(node, gpu, static_cast<int>(node.gpus.size() + i));
    if (node.nics[i].rdma && *node.nics[i].rdma && way.path) {
      // The table uses one value for everything that shares a bridge.
      const PathClass path = *way.path == PathClass::pxb ? PathClass::pix : *way.path;
      by_class[path].insert(node.nics[i].name);
    }
  }
  if (by_class.empty())
    return {"NONE", {}};
  const auto& [path, nics] = *by_class.begin();
  return {path == PathClass::pix ? "shared-pci-ancestor" : to_string(path), nics};
}

struct Expected {
  std::string file;
  PciAddress gpu;
  Nearest nearest;
  std::set<std::string> addresses;
};

std::vector<Expected> expectations(const std::filesystem::path& table) {
  std::vector<Expected> rows;
  for (const std::string& line : split(read_input(table.string()), '\n')) {
    const std::vector<std::string> cells = split(line, '\t');
    const auto address = cells.size() == 7 ? parse_pci_address(cells[1]) : std::nullopt;
    if (!address)
      continue;
    Expected row{cells[0], *address, {cells[3], {}}, {}};
    if (cells[6] != "-")
      for (const std::string& name : split(cells[6], ','))
        row.nearest.nics.insert(name);
    rows.push_back(row);
  }
  return rows;
}

class Recorded : public testing::Test {
protected:
  void SetUp() override {
    if (!std::filesystem::exists(shared))
      GTEST_SKIP() << "no recorded machines at " << shared;
  }
};

} // namespace

TEST_F(Recorded, HaveTheDevicesThatTheIndexSays) {
  for (const Machine& machine : machines) {
    const Node node = read(machine.file);
    EXPECT_EQ(node.gpus.size(), static_cast<std::size_t>(machine.gpus)) << machine.file;
    EXPECT_EQ(rdma_count(node), machine.rdma) << machine.file;
    if (machine.rdma > 0) {
      EXPECT_EQ(node.nics.at(0).name, machine.first_rdma) << machine.file;
    }
    EXPECT_EQ(shape_problem(node), "") << machine.file;
    EXPECT_FALSE(node.packages.empty()) << machine.file;
    for (const Gpu& gpu : node.gpus)
      EXPECT_NE(synthesized_sysfs_path(node, gpu.pci), "") << machine.file;
  }
}

TEST_F(Recorded, AreAllInTheTable) {
  std::set<std::string> known;
  for (const Machine& machine : machines)
    known.insert((shared / machine.file).string());
  for (const auto& entry : std::filesystem::recursive_directory_iterator(shared)) {
    if (entry.path().extension() != ".xml")
      continue;
    const std::string text = read_input(entry.path().string());
    if (text.find("<topology") != std::string::npos) {
      EXPECT_EQ(known.count(entry.path().string()), 1U) << entry.path();
    }
  }
}

TEST_F(Recorded, ReadBackFromADumpAsTheyWere) {
  for (const Machine& machine : machines) {
    const Node node = read(machine.file);
    EXPECT_EQ(first_difference(node, read_hwloc_xml(write_hwloc_xml(node), "dump.xml")), "")
        << machine.file;
  }
}

TEST_F(Recorded, HaveTheNearestNicsThatWereDerivedFromTheTree) {
  int compared = 0;
  for (const auto& folder : std::filesystem::directory_iterator(shared)) {
    const auto table = folder.path() / "expected-derived.tsv";
    if (!std::filesystem::exists(table))
      continue;
    std::map<std::string, Node> nodes;
    for (const Expected& row : expectations(table)) {
      const std::string file = folder.path().filename().string() + "/" + row.file;
      const bool ours = std::any_of(std::begin(machines), std::end(machines),
                                    [&](const Machine& machine) { return file == machine.file; });
      if (!ours)
        continue;
      if (nodes.count(file) == 0)
        nodes[file] = read(file);
      const Node& node = nodes[file];
      const auto gpu = std::find_if(node.gpus.begin(), node.gpus.end(), [&](const Gpu& each) {
        return node.pci[static_cast<std::size_t>(each.pci)].address == row.gpu;
      });
      ASSERT_NE(gpu, node.gpus.end()) << file << " " << to_string(row.gpu);
      const Nearest found = nearest_rdma(node, gpu->index);
      std::string relation = row.nearest.relation;
      // The table calls two NUMA nodes of one package NODE; by nvidia-smi's definition, which
      // requires the same NUMA node, they are SYS. This machine has four per package.
      if (row.file == "epyc-corona.xml" && relation == "NODE")
        relation = "SYS";
      EXPECT_EQ(found.relation, relation) << file << " " << to_string(row.gpu);
      EXPECT_EQ(found.nics, row.nearest.nics) << file << " " << to_string(row.gpu);
      ++compared;
    }
  }
  EXPECT_GT(compared, 80);
}

TEST_F(Recorded, P5enHasFourNicsAtEverySwitch) {
  const Node node = read("aws-p5en/p5en.48xl-lstopo.xml");
  for (int gpu = 0; gpu < 8; ++gpu) {
    int pix = 0;
    for (int nic = 0; nic < 16; ++nic)
      pix += to_string(distance(node, gpu, 8 + nic)) == "PIX" ? 1 : 0;
    EXPECT_EQ(pix, 4) << gpu;
  }
}

TEST_F(Recorded, FlatCloudMachinesDoNotKnowTheirNumaNode) {
  for (const char* file : {"aws-p3dn/p3dn.24xl-topo.xml", "aws-g5-48xl/g5.48xl-lstopo.xml"}) {
    const Node node = read(file);
    EXPECT_FALSE(node.gpus.at(0).numa) << file;
    EXPECT_FALSE(node.nics.at(0).numa) << file;
    EXPECT_EQ(to_string(distance(node, 0, 8)), "PHB") << file; // one host bridge, all the same
  }
}

TEST_F(Recorded, NvlinksComeFromTheBandwidthMatrix) {
  const Node dgx2 = read("dgx2-hwloc/nvidiaDGX2.xml");
  EXPECT_EQ(dgx2.nvswitches, 12);
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 16; ++j)
      EXPECT_EQ(to_string(distance(dgx2, i, j)), i == j ? "X" : "NV6");
  const Node minsky = read("power8-minsky/power8gpudistances.xml");
  EXPECT_EQ(to_string(distance(minsky, 0, 1)), "NV2"); // 40 GB/s of NVLink 1
  EXPECT_EQ(to_string(distance(minsky, 0, 2)), "SYS");
  EXPECT_EQ(minsky.gpus[0].links.at(1).target, LinkTarget::cpu);
}

TEST_F(Recorded, ManyVirtualFunctionsAreNotOffered) {
  const Node node = read("hwloc-pci-old/16intel64-manyVFs.xml");
  EXPECT_EQ(node.nics.size(), 6U); // three usnic devices, three more network devices
  ASSERT_EQ(node.remarks.size(), 1U);
  EXPECT_EQ(node.remarks[0],
            "12 virtual functions without a device of the operating system are left out");
}

TEST_F(Recorded, Mi300aPartitionsAreOneGpuPerPciFunction) {
  const Node node = read("mi300a-elcap/tuo.CPX.xml");
  EXPECT_EQ(node.gpus.at(1).driver_index.value, 6); // rsmi6, the first of six
  EXPECT_FALSE(node.gpus[1].uuid);                  // AMDUUID is all zero
  EXPECT_EQ(node.notes.at(0), "0000:02:00.0 is 6 devices of its driver; it counts as one GPU here");
  for (const Nic& nic : node.nics)
    EXPECT_EQ(nic.rdma.value, false) << nic.name; // Slingshot without a verbs device
}

TEST_F(Recorded, PersistentMemoryIsNoCpuNode) {
  const Node node = read("hwloc-i40iw/topo.xml");
  int other = 0;
  for (const NumaNode& numa : node.numa_nodes)
    other += numa.kind == NumaKind::other_memory ? 1 : 0;
  EXPECT_EQ(other, 3);
  EXPECT_EQ(node.nics.at(0).numa.value, 0);
}

} // namespace shmemctl
