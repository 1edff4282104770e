// Worked examples of NIC mapping, in every release family to which they apply.
#include <gtest/gtest.h>

#include "src/model/topo/mapping/nvshmem_mapping.h"
#include "tests/unit/model/topo/mapping/nvshmem/machine.h"

namespace shmemctl {

namespace {

void expect_in(const std::vector<ReleaseFamily>& families, const Node& node, Ask ask,
               const Answer& expected) {
  for (const ReleaseFamily family : families) {
    ask.version = newest(family);
    EXPECT_EQ(rows_of(node, ask), expected) << "family " << generation_letter(family);
  }
}

Node one_pair_per_switch() {
  return switched_machine(8, 1, 1).node;
}

std::vector<std::string> unmatched_texts(const Node& node, const Ask& ask) {
  std::vector<std::string> texts;
  for (const HcaListEntry& entry : map_nvshmem(node, request_for(node, ask)).table.unmatched)
    texts.push_back(entry.text);
  return texts;
}

std::vector<std::string> table_names(const Node& node, const Ask& ask) {
  const Mapping mapping = map_nvshmem(node, request_for(node, ask));
  std::vector<std::string> names;
  for (const TableEntry& entry : mapping.table.entries)
    names.push_back(node.nics[static_cast<std::size_t>(
                                  mapping.table_nics[static_cast<std::size_t>(entry.device)])]
                        .name);
  return names;
}

const std::vector<ReleaseFamily> d_to_f = {ReleaseFamily::v2_11, ReleaseFamily::v3_5,
                                           ReleaseFamily::v3_7};
const std::vector<ReleaseFamily> e_and_f = {ReleaseFamily::v3_5, ReleaseFamily::v3_7};

} // namespace

TEST(WorkedExample, OnePairPerSwitchIsTheIdentityInAllReleases) {
  expect_in(all_families, one_pair_per_switch(), {}, singles({0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(WorkedExample, DownPortLeavesTheTableAndItsPeGetsAnother) {
  Node node = one_pair_per_switch();
  node.nics[2].ports[0].state = known(PortState::down, "test");
  EXPECT_EQ(table_names(node, {}), (std::vector<std::string>{"mlx5_0", "mlx5_1", "mlx5_3", "mlx5_4",
                                                             "mlx5_5", "mlx5_6", "mlx5_7"}));
  for (const ReleaseFamily family : all_families) {
    const int of_pe2 = family == ReleaseFamily::v2_0 ? 3 : 0;
    EXPECT_EQ(first_nics(node, {newest(family)}), (std::vector<int>{0, 1, of_pe2, 3, 4, 5, 6, 7}))
        << generation_letter(family);
    EXPECT_EQ(first_nics(node, {newest(family), true}), (std::vector<int>{0, 1, 3, 4, 5, 6, 7, 0}))
        << generation_letter(family);
  }
  expect_in(all_families, node, {.mapping = true}, singles({0, 1, 2, 3, 4, 5, 6, 0}));
}

TEST(WorkedExample, TwoPairsPerSwitchAreSwappedSince2_4) {
  const Node node = switched_machine(4, 2, 2).node;
  expect_in({ReleaseFamily::v1_0}, node, {}, singles({0, 0, 2, 2, 4, 4, 6, 6}));
  expect_in({ReleaseFamily::v2_0}, node, {}, singles({0, 1, 2, 3, 4, 5, 6, 7}));
  expect_in(families_since_2_4, node, {}, singles({1, 0, 3, 2, 5, 4, 7, 6}));
}

TEST(WorkedExample, TwoNicsForEightGpusServeASocketEach) {
  Machine machine;
  for (int gpu = 0; gpu < 8; ++gpu) {
    const std::string below = machine.add_switch();
    machine.add_gpu(below, gpu / 4);
    if (gpu % 4 == 0)
      machine.add_nic(below, gpu / 4);
  }
  expect_in(all_families, machine.node, {}, singles({0, 0, 0, 0, 1, 1, 1, 1}));
}

TEST(WorkedExample, FourGpusAndEightNicsOnTwoSwitches) {
  const Node node = switched_machine(2, 2, 4).node;
  expect_in({ReleaseFamily::v1_0}, node, {}, singles({0, 0, 4, 4}));
  expect_in({ReleaseFamily::v2_0}, node, {}, singles({0, 1, 4, 5}));
  expect_in({ReleaseFamily::v2_4}, node, {}, singles({1, 0, 2, 4}));
  expect_in({ReleaseFamily::v2_5}, node, {}, singles({1, 0, 5, 4}));
  expect_in({ReleaseFamily::v2_11}, node, {}, {{2, 3}, {0, 1}, {4, 5}, {4, 5}});
  expect_in(e_and_f, node, {}, {{2, 3}, {0, 1}, {6, 7}, {4, 5}});
}

TEST(WorkedExample, HypervisorPrefixMakesAllPairsPxb) {
  Machine machine;
  const std::string prefix =
      "/sys/devices/LNXSYSTM:00/LNXSYBUS:00/ACPI0004:00/MSFT1000:00/5620e0c7-8062/pci0001:00";
  for (int gpu = 0; gpu < 8; ++gpu)
    machine.add_gpu_at(prefix + "/0001:00:0" + std::to_string(gpu) + ".0/0001:01:00.0", 0);
  for (int nic = 0; nic < 8; ++nic)
    machine.add_nic_at(prefix + "/0001:00:1" + std::to_string(nic) + ".0/0001:02:00.0", 0);
  expect_in({ReleaseFamily::v1_0}, machine.node, {}, singles({0, 0, 0, 0, 0, 0, 0, 0}));
  expect_in({ReleaseFamily::v2_0}, machine.node, {}, singles({0, 1, 2, 3, 4, 5, 6, 7}));
  expect_in(families_since_2_4, machine.node, {}, singles({1, 2, 3, 4, 5, 6, 7, 0}));
}

TEST(WorkedExample, FourNicsPerGpu) {
  const Node node = switched_machine(8, 1, 4).node;
  expect_in({ReleaseFamily::v2_5}, node, {}, singles({0, 4, 8, 12, 16, 20, 24, 28}));
  Answer fours;
  for (int pe = 0; pe < 8; ++pe)
    fours.push_back({4 * pe, 4 * pe + 1, 4 * pe + 2, 4 * pe + 3});
  expect_in(d_to_f, node, {}, fours);
}

TEST(WorkedExample, ListOrderAndUnknownNamesDoNotMatter) {
  const Node node = one_pair_per_switch();
  Ask ask;
  ask.hca_list = "mlx5_5,mlx5_1:1,mlx5_9,mlx5_3:2, mlx5_6";
  EXPECT_EQ(table_names(node, ask), (std::vector<std::string>{"mlx5_1", "mlx5_5"}));
  EXPECT_EQ(rows_of(node, ask), singles({0, 0, 0, 0, 1, 1, 1, 1}));
  EXPECT_EQ(unmatched_texts(node, ask),
            (std::vector<std::string>{"mlx5_9", "mlx5_3:2", " mlx5_6"}));
  ask.mapping = true;
  EXPECT_EQ(rows_of(node, ask), singles({0, 1, 0, 1, 0, 1, 0, 1}));
}

TEST(WorkedExample, CaretAtTheBeginningExcludesAll) {
  const Node node = one_pair_per_switch();
  EXPECT_EQ(first_nics(node, {.mapping = true, .hca_list = "^mlx5_1,mlx5_3"}),
            (std::vector<int>{0, 2, 4, 5, 6, 7, 0, 2}));
  EXPECT_EQ(first_nics(node, {.hca_list = "mlx5_1,^mlx5_3"}), std::vector<int>(8, 1));
  EXPECT_EQ(rows_of(node, {.hca_list = "^"}), singles({0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(WorkedExample, CountsReplicateInEnumerationOrderAndDoNotPin) {
  const Node node = one_pair_per_switch();
  Ask ask;
  ask.hca_pe_mapping = "mlx5_4:1:2,mlx5_0:1:3,mlx5_1:1:3";
  EXPECT_EQ(first_nics(node, ask), (std::vector<int>{0, 1, 0, 0, 4, 4, 4, 4}));
  ask.mapping = true;
  EXPECT_EQ(first_nics(node, ask), (std::vector<int>{0, 0, 0, 1, 1, 1, 4, 4}));
  EXPECT_EQ(table_names(node, {.hca_pe_mapping = "mlx5_0:1:2,mlx5_0:1:5"}),
            std::vector<std::string>(5, "mlx5_0"));
  EXPECT_EQ(table_names(node, {.hca_pe_mapping = "mlx5_0:1:2,mlx5_1:1:0,mlx5_2"}),
            (std::vector<std::string>{"mlx5_0", "mlx5_0", "mlx5_2"}));
}

TEST(WorkedExample, TheIndicesOfReplicas) {
  // Table: mlx5_0 three times (0-2), mlx5_1 three times (3-5), mlx5_4 twice (6, 7).
  const std::vector<int> owners = {0, 0, 0, 1, 1, 1, 4, 4};
  std::vector<std::vector<PathClass>> classes(8);
  for (int pe = 0; pe < 8; ++pe)
    for (const int owner : owners)
      classes[static_cast<std::size_t>(pe)].push_back(pe == owner           ? PathClass::pix
                                                      : pe / 4 == owner / 4 ? PathClass::node
                                                                            : PathClass::sys);
  EXPECT_EQ(choose_rows(ReleaseFamily::v3_5, 8, classes, false), singles({1, 3, 2, 0, 7, 7, 6, 6}));
}

TEST(WorkedExample, BothListsSetIgnoresTheMapping) {
  const Node node = one_pair_per_switch();
  const Ask ask{.hca_list = "mlx5_3", .hca_pe_mapping = "mlx5_0:1:8"};
  EXPECT_EQ(table_names(node, ask), std::vector<std::string>{"mlx5_3"});
  const Mapping mapping = map_nvshmem(node, request_for(node, ask));
  EXPECT_TRUE(mapping.table.pe_mapping_ignored);
  EXPECT_EQ(mapping.table.list_name, "HCA_LIST");
}

TEST(WorkedExample, SecondPortOfAnothersHca) {
  Machine machine;
  for (int i = 0; i < 2; ++i) {
    const std::string below = machine.add_switch();
    machine.add_gpu(below, i);
    machine.add_nic(below, i, "", 2);
  }
  expect_in({ReleaseFamily::v2_11, ReleaseFamily::v3_5}, machine.node, {}, {{0, 1}, {2, 3}});
  const Mapping mapped = map_nvshmem(machine.node, request_for(machine.node, {.mapping = true}));
  EXPECT_EQ(mapped.pes[1].nics[0].nic, 0);
  EXPECT_EQ(mapped.pes[1].nics[0].port, 2);
}

TEST(WorkedExample, AlonePeOfDeepEpNormalMode) {
  const Node node = one_pair_per_switch();
  Ask ask{.world = World::deepep_ht, .gpus = {5}};
  expect_in(d_to_f, node, ask, {{5}});
  ask.gpus.clear();
  ask.mapping = true;
  expect_in(all_families, node, ask, singles(std::vector<int>(8, 0)));
}

TEST(WorkedExample, DataDirectPathsDecideIfTheyAreUsed) {
  Machine machine;
  std::vector<std::string> near_gpu;
  for (int i = 0; i < 2; ++i) {
    near_gpu.push_back(machine.add_switch());
    machine.add_gpu(near_gpu.back(), 0);
  }
  for (int i = 0; i < 2; ++i) {
    machine.add_nic(machine.add_switch(), 0);
    machine.add_data_direct(near_gpu[static_cast<std::size_t>(i)], 0);
  }
  const Ask reversed{.gpus = {1, 0}};
  EXPECT_EQ(rows_of(machine.node, reversed), singles({1, 0}));
  EXPECT_EQ(rows_of(machine.node, {.gpus = {0, 1}}), singles({0, 1}));
  MappingRequest disabled = request_for(machine.node, reversed);
  disabled.nvshmem.disable_data_direct = true;
  Mapping mapping = map_nvshmem(machine.node, disabled);
  EXPECT_EQ(mapping.pes[0].nics[0].nic, 1);
  EXPECT_EQ(mapping.pes[1].nics[0].nic, 0);
  // Only the balancing does this: the other order of GPUs gets the same.
  disabled.gpus = {0, 1};
  mapping = map_nvshmem(machine.node, disabled);
  EXPECT_EQ(mapping.pes[0].nics[0].nic, 1);
}

TEST(WorkedExample, PeExchangesItsPixNicForAPxbOne) {
  Machine machine;
  const std::string root = machine.add_switch();
  std::vector<std::string> switches;
  for (const char* port : {"/0000:a0:00.0/0000:a1:00.0", "/0000:a0:01.0/0000:a2:00.0",
                           "/0000:a0:02.0/0000:a3:00.0", "/0000:a0:03.0/0000:a4:00.0"})
    switches.push_back(root + port);
  for (int i = 0; i < 3; ++i) {
    machine.add_gpu(switches[static_cast<std::size_t>(i)], 0);
    machine.add_nic(switches[static_cast<std::size_t>(i)], 0);
  }
  machine.add_nic(switches[3], 0);
  for (int i = 0; i < 2; ++i)
    machine.add_nic(machine.add_switch(), 1);
  expect_in(e_and_f, machine.node, {}, {{3, 1}, {1, 0}, {2, 0}});
}

TEST(WorkedExample, StorageNicThatEnumeratesFirstShiftsEveryone) {
  Machine machine;
  machine.add_nic("/sys/devices/pci0000:00/0000:00:1c.0", 0);
  for (int i = 0; i < 8; ++i) {
    const std::string below = machine.add_switch();
    machine.add_gpu(below, i / 4);
    machine.add_nic(below, i / 4);
  }
  EXPECT_EQ(first_nics(machine.node, {.mapping = true}),
            (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
  const std::vector<int> own = {1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(first_nics(machine.node, {}), own);
  EXPECT_EQ(first_nics(machine.node, {.mapping = true, .hca_list = "^mlx5_0"}), own);
}

TEST(WorkedExample, OneNicServesAllAndNoNicServesNone) {
  Machine machine = switched_machine(4, 1, 0);
  expect_in(all_families, machine.node, {}, Answer(4));
  machine.add_nic(machine.add_switch(), 0);
  expect_in(all_families, machine.node, {}, singles({0, 0, 0, 0}));
}

TEST(WorkedExample, ClassQuirks) {
  const std::string shallow = "/sys/devices/pci0000:15/0000:15:01.0/0000:16:00.";
  EXPECT_EQ(
      nvshmem_path_class(shallow + "0", "/sys/devices/pci0000:15/0000:15:02.0/0000:17:00.0", true),
      PathClass::phb);
  EXPECT_EQ(nvshmem_path_class(shallow + "0", shallow + "1", true), PathClass::pxb);
  const std::string deep = "/sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/";
  EXPECT_EQ(nvshmem_path_class(deep + "0000:17:00.0/0000:18:00.0",
                               deep + "0000:17:01.0/0000:19:00.0", true),
            PathClass::pix);
  EXPECT_EQ(nvshmem_path_class(deep + "0000:17:00.0/0000:18:00.0",
                               deep + "0000:17:00.0/0000:18:00.1", true),
            PathClass::pxb);
  Machine machine;
  machine.add_gpu(machine.add_switch(), -1);
  machine.add_nic(machine.add_switch(), 1);
  machine.add_nic(machine.add_switch(), -1);
  // NUMA unknown on both is NODE, and so nearer than the NIC that names one.
  EXPECT_EQ(rows_of(machine.node, {}), (Answer{{1}}));
}

TEST(WorkedExample, FourGpusAndTwoNicsOnOneSwitch) {
  const Node node = switched_machine(1, 4, 2).node;
  expect_in({ReleaseFamily::v1_0}, node, {}, singles({0, 0, 0, 0}));
  expect_in({ReleaseFamily::v2_0}, node, {}, singles({0, 1, 0, 1}));
  expect_in(families_since_2_4, node, {}, singles({1, 1, 0, 0}));
}

TEST(WorkedExample, FourSwitchesOfTwoGpusAndFourNics) {
  const Node node = switched_machine(4, 2, 4).node;
  const Answer of_eight = {{2, 3}, {0, 1}, {6, 7}, {4, 5}, {10, 11}, {8, 9}, {14, 15}, {12, 13}};
  expect_in(e_and_f, node, {}, of_eight);
  expect_in(e_and_f, node, {.world = World::deepep_ht, .gpus = {0, 1}},
            {{0, 1, 2, 3}, {0, 1, 2, 3}});
  for (const char* policy : {"EXTERNAL_SHARING_PCIE_SWITCH_NIC_EXCLUSIVE",
                             "external_sharing_pcie_switch_nic_exclusive"}) {
    MappingRequest request =
        request_for(node, {.version = {3, 7, 0}, .world = World::deepep_ht, .gpus = {}});
    request.nvshmem.netdevs_policy = policy;
    const Mapping mapping = map_nvshmem(node, request);
    for (std::size_t pe = 0; pe < 8; ++pe) {
      ASSERT_EQ(mapping.pes[pe].nics.size(), 2U);
      for (std::size_t slot = 0; slot < 2; ++slot)
        EXPECT_EQ(mapping.pes[pe].nics[slot].nic, of_eight[pe][slot]) << pe;
    }
  }
}

} // namespace shmemctl
