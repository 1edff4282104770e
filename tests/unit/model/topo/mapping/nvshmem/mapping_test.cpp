// From a node to NVSHMEM's inputs and back: map_nvshmem(), compare_versions().
#include <gtest/gtest.h>

#include <algorithm>

#include "src/model/topo/distance.h"
#include "src/model/topo/mapping/nvshmem_mapping.h"
#include "src/model/topo/mapping/ports.h"
#include "src/model/topo/mapping/request.h"
#include "tests/unit/model/topo/mapping/nvshmem/machine.h"

namespace shmemctl {

namespace {

Mapping simulate(const Node& node, const Ask& ask) {
  return map_nvshmem(node, request_for(node, ask));
}

Distance cell(PathClass path) {
  return {path, 0, ""};
}

/// One GPU and the NICs of a recorded row.
Node recorded(const std::vector<Distance>& to_nics) {
  Node node;
  node.gpus.emplace_back();
  node.recorded = DistanceMatrix(1 + to_nics.size(), std::vector<Distance>(1 + to_nics.size()));
  for (std::size_t i = 0; i < to_nics.size(); ++i) {
    Nic nic;
    nic.name = "mlx5_" + std::to_string(i);
    node.nics.push_back(nic);
    (*node.recorded)[0][1 + i] = (*node.recorded)[1 + i][0] = to_nics[i];
  }
  return node;
}

} // namespace

TEST(Enumerate, NicsWithoutRdmaAreLeftOut) {
  Machine machine = switched_machine(3, 1, 1);
  machine.node.nics[1].rdma = known(false, "test");
  machine.node.nics[2].rdma = unknown<bool>("test");
  const Enumeration enumeration = enumerate_hcas(machine.node);
  EXPECT_EQ(enumeration.nics, (std::vector<int>{0, 2}));
  const Mapping mapping = simulate(machine.node, {});
  EXPECT_EQ(mapping.table_nics, (std::vector<int>{0, 2}));
  EXPECT_EQ(mapping.pes[2].nics[0].nic, 2);
}

TEST(Enumerate, UnknownPortFactsAreWhatNvshmemAccepts) {
  Node node;
  node.nics.resize(2);
  NicPort port;
  port.number = 3;
  node.nics[1].ports = {port};
  const Enumeration enumeration = enumerate_hcas(node);
  ASSERT_EQ(enumeration.devices[0].ports.size(), 1U);
  EXPECT_EQ(enumeration.devices[0].ports[0].number, 1);
  EXPECT_EQ(enumeration.devices[1].ports[0].number, 3);
  EXPECT_TRUE(enumeration.devices[1].ports[0].active);
}

TEST(Enumerate, PortsThatAreNotActiveAreNot) {
  Node node;
  node.nics.resize(1);
  for (const PortState state : {PortState::down, PortState::init, PortState::armed}) {
    NicPort port;
    port.state = known(state, "test");
    node.nics[0].ports = {port};
    EXPECT_FALSE(enumerate_hcas(node).devices[0].ports[0].active);
  }
}

TEST(Enumerate, Mlx5ByDriverNameOrVendor) {
  Node node;
  node.nics.resize(5);
  node.pci.resize(2);
  node.pci[0].vendor = known<std::uint16_t>(pci_ids::amazon, "test");
  node.pci[1].vendor = known<std::uint16_t>(pci_ids::mellanox, "test");
  node.nics[0].name = "ibp1";
  node.nics[0].driver = known<std::string>("mlx5_core", "test");
  node.nics[1].name = "rdmap1";
  node.nics[1].driver = known<std::string>("efa", "test");
  node.nics[2].name = "nic2";
  node.nics[2].pci = 0;
  node.nics[3].name = "nic3";
  node.nics[3].pci = 1;
  node.nics[4].name = "nic4";
  std::vector<bool> mlx5;
  for (const HcaFacts& device : enumerate_hcas(node).devices)
    mlx5.push_back(device.mlx5);
  EXPECT_EQ(mlx5, (std::vector<bool>{true, false, false, true, true}));
}

TEST(Simulate, SaysWhoChose) {
  const Node node = switched_machine(2, 1, 1).node;
  EXPECT_EQ(simulate(node, {}).pes[0].chosen_by, "distance");
  EXPECT_EQ(simulate(node, {.mapping = true}).pes[0].chosen_by, "ENABLE_NIC_PE_MAPPING");
  EXPECT_EQ(simulate(node, {.hca_list = "mlx5_1"}).pes[0].chosen_by, "only device");
}

TEST(Simulate, DistanceIsNvidiaSmisAndNotNvshmems) {
  Machine machine;
  const std::string below = machine.add_switch();
  machine.add_gpu(below, 0);
  machine.add_nic(below, 0);
  const Mapping mapping = simulate(machine.node, {});
  EXPECT_EQ(mapping.pes[0].nics[0].distance, distance(machine.node, 0, 1));
}

TEST(Simulate, PeWithoutGpuGetsNothingAndTakesNoShare) {
  const Node node = switched_machine(2, 1, 2).node;
  const Mapping mapping = simulate(node, {.gpus = {0, -1, 1, 7}});
  EXPECT_TRUE(mapping.pes[1].nics.empty());
  EXPECT_EQ(mapping.pes[1].reason, "it has no GPU");
  EXPECT_EQ(mapping.pes[3].reason, "the node has no GPU7");
  EXPECT_EQ(mapping.pes[1].used, 0);
  EXPECT_EQ(mapping.pes[0].nics.size(), 2U);
  EXPECT_EQ(mapping.pes[2].nics.size(), 2U);
}

TEST(Simulate, SeveralPesOnOneGpu) {
  const Node node = switched_machine(1, 1, 2).node;
  EXPECT_EQ(first_nics(node, {.gpus = {0, 0}}), (std::vector<int>{1, 0}));
}

TEST(Simulate, WorldsAreOneOrOneForEachPe) {
  const Node node = switched_machine(4, 2, 2).node;
  EXPECT_EQ(rows_of(node, {.world = World::deepep_ll}), rows_of(node, {}));
  EXPECT_EQ(first_nics(node, {.world = World::deepep_ht}),
            (std::vector<int>{0, 0, 2, 2, 4, 4, 6, 6}));
  EXPECT_EQ(first_nics(node, {.mapping = true, .world = World::deepep_ht}), std::vector<int>(8, 0));
}

TEST(Simulate, OnlyMultiPortTransportsUseMoreThanTheFirst) {
  const Node node = switched_machine(2, 1, 2).node;
  MappingRequest request = request_for(node, {.transport = NvshmemTransport::ibgda});
  EXPECT_EQ(map_nvshmem(node, request).pes[0].used, 1);
  request.nvshmem.ibgda_multi_port = true;
  EXPECT_EQ(map_nvshmem(node, request).pes[0].used, 2);
  request.nvshmem.transport = NvshmemTransport::ibrc;
  EXPECT_EQ(map_nvshmem(node, request).pes[0].used, 1);
  request.nvshmem.transport = NvshmemTransport::libfabric;
  EXPECT_EQ(map_nvshmem(node, request).pes[0].used, 1);
  request.nvshmem.version = {3, 6, 5};
  EXPECT_EQ(map_nvshmem(node, request).pes[0].used, 2);
}

TEST(Simulate, LibfabricUsesAtMost16) {
  const Node node = switched_machine(1, 1, 20).node;
  const Ask ask{.version = {3, 7, 0}, .transport = NvshmemTransport::libfabric};
  EXPECT_EQ(simulate(node, ask).pes[0].nics.size(), 20U);
  EXPECT_EQ(simulate(node, ask).pes[0].used, 16);
}

TEST(Simulate, EmptyTableAndUcxSayWhy) {
  const Node node = switched_machine(2, 1, 1).node;
  EXPECT_NE(simulate(node, {.hca_list = "mlx5_9"}).pes[0].reason.find("empty"), std::string::npos);
  EXPECT_NE(simulate(node, {.transport = NvshmemTransport::ucx}).pes[0].reason.find("UCX"),
            std::string::npos);
}

TEST(Simulate, RecordedMatrixDecidesDirectly) {
  const Node node = recorded({cell(PathClass::node), cell(PathClass::phb), cell(PathClass::sys)});
  EXPECT_EQ(rows_of(node, {}), (Answer{{1}}));
  EXPECT_EQ(simulate(node, {}).pes[0].reason, "");
}

TEST(Simulate, UnknownRecordedCellCountsAsSysAndSaysSo) {
  Node node = recorded(
      {Distance{std::nullopt, 0, "missing"}, cell(PathClass::nvlink), cell(PathClass::node)});
  EXPECT_EQ(rows_of(node, {}), (Answer{{2}}));
  EXPECT_EQ(simulate(node, {}).pes[0].reason,
            "the recorded distance from GPU0 to mlx5_0, mlx5_1 is unknown; taken as SYS");
  node.recorded->resize(1);
  (*node.recorded)[0].resize(2);
  EXPECT_EQ(rows_of(node, {}), (Answer{{0, 1, 2}}));
}

TEST(Simulate, VirtualNicHasNoPathAndSaysSo) {
  Machine machine;
  machine.add_gpu(machine.add_switch(), 0);
  machine.add_nic_at("", -1, "rxe0");
  machine.add_nic(machine.add_switch(), 0);
  EXPECT_EQ(rows_of(machine.node, {}), (Answer{{1}}));
  EXPECT_EQ(simulate(machine.node, {}).pes[0].reason,
            "rxe0 has no PCI path: NODE or SYS by NUMA node");
  // Without NUMA both read -1, which is equal.
  EXPECT_EQ(nic_location(machine.node, 0, true).numa, -1);
  machine.node.pci[0].numa = unknown<int>("numa_node reads -1");
  EXPECT_EQ(first_nics(machine.node, {}), std::vector<int>{0});
}

TEST(Simulate, NumaOfTheKernelsTreeIsTakenByItsWord) {
  Machine machine;
  machine.add_nic(machine.add_switch(), -1);
  machine.node.host_bridges.push_back({0, 0, known(1, "test"), unknown<int>("test"), true});
  machine.node.pci[0].host_bridge = 0;
  machine.node.nics[0].numa = known(1, "test");
  EXPECT_EQ(nic_location(machine.node, 0, false).numa, -1);
  machine.node.pci[0].sysfs_path.clear();
  EXPECT_EQ(nic_location(machine.node, 0, false).numa, 1);
  machine.node.nics[0].numa = unknown<int>("test");
  EXPECT_EQ(nic_location(machine.node, 0, false).numa, 1);
}

TEST(Simulate, DataDirectFunctionThatIsNotInTheModelIsSaid) {
  Machine machine = switched_machine(2, 1, 1);
  machine.node.nics[0].data_direct = known(PciAddress{0xff, 1, 0, 0}, "test");
  EXPECT_NE(simulate(machine.node, {}).pes[0].reason.find("00ff:01:00.0"), std::string::npos);
  EXPECT_EQ(simulate(machine.node, {.version = {3, 3, 20}}).pes[0].reason, "");
}

TEST(Simulate, ExclusiveCountsNvidiaGpusOnly) {
  Node node = switched_machine(1, 4, 8).node;
  node.gpus[3].vendor = "amd";
  node.gpus[2].vendor = "";
  MappingRequest request =
      request_for(node, {.version = {3, 7, 0}, .world = World::deepep_ht, .gpus = {0, 2, 3}});
  request.nvshmem.netdevs_policy = "EXTERNAL_SHARING_PCIE_SWITCH_NIC_EXCLUSIVE";
  Mapping mapping = map_nvshmem(node, request);
  EXPECT_EQ(mapping.pes[0].nics.size(), 2U); // 8 over 3 GPUs
  EXPECT_EQ(mapping.pes[1].nics.size(), 2U);
  EXPECT_TRUE(mapping.pes[2].nics.empty());
  EXPECT_NE(mapping.pes[2].reason.find("nvidia driver"), std::string::npos);
  for (const NvshmemVersion version : {NvshmemVersion{3, 6, 5}, NvshmemVersion{3, 7, 0}}) {
    request.nvshmem.version = version;
    request.nvshmem.netdevs_policy = version.minor == 7 ? "no such policy" : "exclusive";
    EXPECT_EQ(map_nvshmem(node, request).pes[0].nics.size(), 8U); // as AUTO
  }
}

TEST(Simulate, KeepsTheRequestAndTheExclusions) {
  Machine machine = switched_machine(2, 1, 1);
  machine.node.nics[1].ports[0].state = known(PortState::down, "test");
  const Mapping mapping = simulate(machine.node, {.version = {2, 2, 1}});
  EXPECT_EQ(mapping.request.nvshmem.version, (NvshmemVersion{2, 2, 1}));
  ASSERT_EQ(mapping.table.exclusions.size(), 1U);
  EXPECT_EQ(mapping.table.exclusions[0].device, 1);
}

TEST(Simulate, AnEmptyNodeGivesAResult) {
  const Mapping mapping = simulate(Node{}, {.gpus = {-1, -1}});
  EXPECT_EQ(mapping.pes.size(), 2U);
  EXPECT_TRUE(simulate(Node{}, {}).pes.empty());
}

TEST(CompareVersions, GroupsEqualAnswers) {
  const Node node = switched_machine(4, 2, 2).node;
  const auto differences = compare_versions(node, request_for(node, {}));
  ASSERT_EQ(differences.size(), 3U); // A, B, and all from C on
  EXPECT_EQ(differences[0].versions, (std::vector<NvshmemVersion>{{1, 1, 3}}));
  EXPECT_EQ(differences[1].versions, (std::vector<NvshmemVersion>{{2, 2, 1}}));
  EXPECT_EQ(differences[2].versions.front(), (NvshmemVersion{2, 4, 1}));
  EXPECT_EQ(differences[2].versions.back(), (NvshmemVersion{3, 7, 0}));
}

TEST(CompareVersions, OneGroupWhereAllAgree) {
  const Node node = switched_machine(8, 1, 1).node;
  EXPECT_EQ(compare_versions(node, request_for(node, {})).size(), 1U);
}

TEST(CompareVersions, ShowsReleasesThatIgnoreTheMapping) {
  const Node node = switched_machine(2, 1, 1).node;
  const auto differences =
      compare_versions(node, request_for(node, {.hca_pe_mapping = "mlx5_1:1:2"}));
  ASSERT_EQ(differences.size(), 2U);
  EXPECT_EQ(differences[1].versions, (std::vector<NvshmemVersion>{{2, 10, 1}}));
}

TEST(CompareVersions, AsksTheRequestedReleaseToo) {
  NvshmemSettings settings;
  settings.version = {3, 0, 6};
  settings.transport = NvshmemTransport::ibgda;
  const auto versions = compared_versions(settings);
  EXPECT_EQ(versions.front(), (NvshmemVersion{2, 8, 0}));
  EXPECT_EQ(std::count(versions.begin(), versions.end(), settings.version), 1);
  EXPECT_TRUE(std::is_sorted(versions.begin(), versions.end()));
}

TEST(Versions, Parse) {
  EXPECT_EQ(parse_nvshmem_version("3.4.5"), (NvshmemVersion{3, 4, 5}));
  EXPECT_EQ(parse_nvshmem_version("2.11"), (NvshmemVersion{2, 11, 0}));
  EXPECT_EQ(parse_nvshmem_version("2.10.1-3"), (NvshmemVersion{2, 10, 1}));
  for (const char* text : {"", "3", "3.", ".5", "3.4.5.6", "3.x", "-3.4", "3.4-", "3.4 ", " 3.4",
                           "3.+4", "99999.1", "3.4.5-rc1"})
    EXPECT_EQ(parse_nvshmem_version(text), std::nullopt) << text;
}

TEST(Versions, ToStringIsWhatParseReads) {
  for (const NvshmemVersion& version : representative_versions())
    EXPECT_EQ(parse_nvshmem_version(to_string(version)), version);
}

} // namespace shmemctl
