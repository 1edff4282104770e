// Against recorded facts: real values of the list variables with a verdict each, and what NVSHMEM
// chose, according to its output or its maintainers, on real machines. Skipped if the recordings
// are not present.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "src/base/text.h"
#include "src/model/topo/mapping/nvshmem_mapping.h"
#include "test_paths.h"
#include "tests/unit/model/topo/mapping/nvshmem/machine.h"

namespace shmemctl {

namespace {

const std::filesystem::path topologies = std::filesystem::path(SHMEMCTL_SHARED) / "topologies";

using Row = std::map<std::string, std::string>; ///< column -> cell
std::vector<Row> read_tsv(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::vector<Row> rows;
  std::vector<std::string> header;
  for (std::string line; std::getline(stream, line);) {
    const std::vector<std::string> cells = split(line, '\t');
    if (header.empty()) {
      header = cells;
      continue;
    }
    rows.emplace_back();
    for (std::size_t i = 0; i < header.size(); ++i)
      rows.back()[header[i]] = i < cells.size() ? cells[i] : "";
  }
  return rows;
}

/// The rows of a variable whose value is a literal, not a template or a description.
std::vector<Row> literal_rows(const std::string& variable) {
  std::vector<Row> literal;
  for (Row& row : read_tsv(topologies / "hca-strings" / "strings.tsv")) {
    std::string& value = row["value"];
    const std::string with = " (with ";
    if (value.find(with) != std::string::npos)
      value.resize(value.find(with));
    if (value == "(empty)")
      value.clear();
    if (row["variable"] == variable && value.find_first_of("${\" ") == std::string::npos)
      literal.push_back(row);
  }
  return literal;
}

/// A node whose NICs are those that a list names, in natural order, one for each GPU switch.
Node node_named_by(const std::string& list) {
  std::set<std::string> names;
  for (const HcaListEntry& entry : parse_hca_list(list, 48).entries)
    names.insert(starts_with(entry.name, "^") ? entry.name.substr(1) : entry.name);
  std::vector<std::string> ordered(names.begin(), names.end());
  std::sort(ordered.begin(), ordered.end(), natural_less);
  Machine machine;
  for (const std::string& name : ordered) {
    const std::string below = machine.add_switch();
    machine.add_gpu(below, 0);
    machine.add_nic(below, 0, name);
  }
  return machine.node;
}

struct Asked {
  Node node;
  Mapping mapping;
};
Asked ask(const Row& row, Ask question) {
  const std::string& value = row.at("value");
  (row.at("variable") == "NVSHMEM_HCA_LIST" ? question.hca_list : question.hca_pe_mapping) = value;
  Asked asked;
  asked.node = node_named_by(value);
  asked.mapping = map_nvshmem(asked.node, request_for(asked.node, question));
  return asked;
}

bool recordings_present() {
  return std::filesystem::exists(topologies / "hca-strings" / "strings.tsv");
}

} // namespace

#define NEEDS_RECORDINGS()                                                                         \
  if (!recordings_present())                                                                       \
  GTEST_SKIP() << "no recorded machines at " << topologies

TEST(RecordedStrings, FineOnesHaveNoProblemsAndMatchEverywhere) {
  NEEDS_RECORDINGS();
  int seen = 0;
  for (const char* variable : {"NVSHMEM_HCA_LIST", "NVSHMEM_HCA_PE_MAPPING"})
    for (const Row& row : literal_rows(variable)) {
      if (row.at("verdict") != "ok" && row.at("verdict") != "ok-undocumented")
        continue;
      const Asked asked = ask(row, {.version = {3, 7, 0}});
      EXPECT_TRUE(asked.mapping.table.list.problems.empty()) << row.at("n");
      EXPECT_TRUE(asked.mapping.table.unmatched.empty()) << row.at("n");
      EXPECT_FALSE(asked.mapping.table.list.entries.empty()) << row.at("n");
      ++seen;
    }
  EXPECT_GE(seen, 20);
}

TEST(RecordedStrings, PermutationHasNoEffect) {
  NEEDS_RECORDINGS();
  int seen = 0;
  for (const Row& row : literal_rows("NVSHMEM_HCA_PE_MAPPING")) {
    if (row.at("verdict") != "wrong-intent")
      continue;
    const Asked asked = ask(row, {.mapping = true});
    std::vector<std::string> names;
    for (const PeMapping& pe : asked.mapping.pes)
      names.push_back(asked.node.nics[static_cast<std::size_t>(pe.nics.at(0).nic)].name);
    EXPECT_TRUE(std::is_sorted(names.begin(), names.end(), natural_less)) << row.at("n");
    EXPECT_NE(names.front(), asked.mapping.table.list.entries.front().name) << row.at("n");
    ++seen;
  }
  EXPECT_EQ(seen, 1);
}

TEST(RecordedStrings, CaretInsideAListIsPartOfANameThatNeverMatches) {
  NEEDS_RECORDINGS();
  int seen = 0;
  for (const Row& row : literal_rows("NVSHMEM_HCA_LIST")) {
    const bool inside = row.at("value").find(",^") != std::string::npos;
    if (row.at("verdict") != "wrong" || !inside)
      continue;
    const Asked asked = ask(row, {});
    EXPECT_FALSE(asked.mapping.table.list.problems.empty());
    ASSERT_FALSE(asked.mapping.table.unmatched.empty());
    for (const HcaListEntry& entry : asked.mapping.table.unmatched)
      EXPECT_EQ(entry.name.front(), '^');
    ++seen;
  }
  EXPECT_EQ(seen, 1);
}

TEST(RecordedStrings, NamesWithoutMlx5NeedThePrefix) {
  NEEDS_RECORDINGS();
  int seen = 0;
  for (const Row& row : literal_rows("NVSHMEM_HCA_LIST")) {
    if (row.at("verdict") != "wrong-without-prefix")
      continue;
    const Asked by_gpu = ask(row, {.version = {3, 4, 5}, .transport = NvshmemTransport::ibgda});
    EXPECT_TRUE(by_gpu.mapping.table.entries.empty()) << row.at("n");
    const std::size_t devices = by_gpu.node.nics.size();
    EXPECT_EQ(ask(row, {.version = {3, 4, 5}}).mapping.table.entries.size(), devices);
    MappingRequest with_prefix = by_gpu.mapping.request;
    with_prefix.nvshmem.hca_prefix = "ibp";
    EXPECT_EQ(map_nvshmem(by_gpu.node, with_prefix).table.entries.size(), devices);
    ++seen;
  }
  EXPECT_EQ(seen, 2);
}

TEST(RecordedStrings, EmptyListFiltersNothingAndIsAProblem) {
  NEEDS_RECORDINGS();
  const Node node = switched_machine(4, 1, 1).node;
  int seen = 0;
  for (const Row& row : literal_rows("NVSHMEM_HCA_LIST")) {
    if (!row.at("value").empty())
      continue;
    const Mapping mapping = map_nvshmem(node, request_for(node, {.hca_list = ""}));
    EXPECT_EQ(mapping.table.entries.size(), 4U);
    EXPECT_EQ(mapping.table.list.problems.size(), 1U);
    ++seen;
  }
  EXPECT_EQ(seen, 1);
}

TEST(RecordedStrings, OneBondServesAllPesWhateverItsCount) {
  NEEDS_RECORDINGS();
  int seen = 0;
  for (const Row& row : literal_rows("NVSHMEM_HCA_PE_MAPPING")) {
    if (row.at("verdict") != "suspicious")
      continue;
    Machine machine = switched_machine(8, 1, 0);
    machine.add_nic(machine.add_switch(), 0, "mlx5_bond_0");
    for (const bool mapping : {false, true})
      EXPECT_EQ(first_nics(machine.node, {.mapping = mapping, .hca_pe_mapping = row.at("value")}),
                std::vector<int>(8, 0));
    ++seen;
  }
  EXPECT_EQ(seen, 1);
}

TEST(RecordedStrings, SixNicsServeEightPesUnevenly) {
  NEEDS_RECORDINGS();
  const Node node = switched_machine(8, 1, 1).node;
  int seen = 0;
  for (const Row& row : literal_rows("NVSHMEM_HCA_LIST")) {
    if (row.at("n") != "22")
      continue;
    EXPECT_EQ(first_nics(node, {.mapping = true, .hca_list = row.at("value")}),
              (std::vector<int>{0, 3, 4, 5, 6, 7, 0, 3}));
    ++seen;
  }
  EXPECT_EQ(seen, 1);
}

TEST(RecordedStrings, SecondNodeLacksTwoOfTheNics) {
  NEEDS_RECORDINGS();
  int seen = 0;
  for (const Row& row : literal_rows("NVSHMEM_HCA_PE_MAPPING")) {
    if (row.at("verdict") != "wrong-on-node-2")
      continue;
    Machine machine;
    for (const char* name : {"mlx5_0", "mlx5_5", "mlx5_6", "mlx5_9"})
      machine.add_nic(machine.add_switch(), 0, name);
    const DeviceTable table =
        map_nvshmem(machine.node, request_for(machine.node, {.hca_pe_mapping = row.at("value")}))
            .table;
    ASSERT_EQ(table.unmatched.size(), 2U);
    EXPECT_EQ(table.unmatched[0].name, "mlx5_1");
    EXPECT_EQ(table.unmatched[1].name, "mlx5_7");
    ++seen;
  }
  EXPECT_EQ(seen, 1);
}

TEST(RecordedStrings, PrefixIsOneSubstring) {
  NEEDS_RECORDINGS();
  NvshmemSettings settings;
  settings.transport = NvshmemTransport::ibgda;
  const std::vector<HcaFacts> devices = {{"rocep6s0", {{}}, true}, {"mlx5_0", {{}}, true}};
  int seen = 0;
  for (const Row& row : literal_rows("NVSHMEM_HCA_PREFIX")) {
    settings.hca_prefix = row.at("value");
    EXPECT_EQ(build_device_table(devices, settings).entries.size(), 1U) << row.at("value");
    ++seen;
  }
  EXPECT_GE(seen, 1);
  settings.hca_prefix = "rocep6s0,mlx5_0";
  EXPECT_TRUE(build_device_table(devices, settings).entries.empty());
}

TEST(RecordedTruth, SelectedDevicesOfAnH100Node) {
  NEEDS_RECORDINGS();
  // Only five of eight PEs were visible, and no tree. Device ids 3 and 6 belong to none of them: a
  // node whose third and sixth device are near no GPU that was seen gives the same ids.
  const auto rows = read_tsv(topologies / "nvshmem-ground-truth" / "selected-devices.tsv");
  ASSERT_FALSE(rows.empty());
  const std::vector<int> gpu_of_device = {0, 1, 2, -1, 3, 4, 5, 6, 7, -1};
  Machine machine;
  std::vector<std::string> switches;
  for (int gpu = 0; gpu < 8; ++gpu) {
    switches.push_back(machine.add_switch());
    machine.add_gpu(switches.back(), gpu / 4);
  }
  for (const int gpu : gpu_of_device)
    machine.add_nic(gpu < 0 ? machine.add_switch() : switches[static_cast<std::size_t>(gpu)],
                    gpu < 4 ? 0 : 1);
  const std::vector<int> chosen = first_nics(machine.node, {.version = {3, 2, 5}});
  for (const Row& row : rows)
    EXPECT_EQ(chosen[static_cast<std::size_t>(std::stoi(row.at("local_pe_or_gpu")))],
              std::stoi(row.at("dev_id")));
}

TEST(RecordedTruth, StatementsNameEveryCaseBelow) {
  NEEDS_RECORDINGS();
  std::set<std::string> cases;
  for (const Row& row : read_tsv(topologies / "nvshmem-ground-truth" / "statements.tsv"))
    cases.insert(row.at("case"));
  for (const char* name : {"deepep336-h800", "nvshmem18", "deepep466-gcp", "infrawaves9",
                           "nvshmem44", "deepep386", "deepep202"})
    EXPECT_EQ(cases.count(name), 1U) << name;
}

TEST(RecordedTruth, NormalModeSendsAllRanksToTheFirstNic_deepep336) {
  const Node node = switched_machine(8, 1, 1).node;
  EXPECT_EQ(first_nics(node, {.mapping = true,
                              .hca_pe_mapping = "mlx5_0:1:2,mlx5_1:1:2,mlx5_6:1:2,mlx5_7:1:2",
                              .world = World::deepep_ht}),
            std::vector<int>(8, 0));
}

TEST(RecordedTruth, IndexIsTheLocalPe_nvshmem18) {
  const Node node = switched_machine(2, 1, 1).node;
  EXPECT_EQ(
      first_nics(node, {.mapping = true, .hca_pe_mapping = "mlx5_0:1:1,mlx5_1:1:1", .gpus = {1}}),
      std::vector<int>{0});
}

TEST(RecordedTruth, BothGpusOfASwitchGetItsFirstNic_deepep466) {
  const Node node = switched_machine(4, 2, 2).node;
  const std::vector<int> nics = first_nics(node, {.world = World::deepep_ht});
  EXPECT_EQ(nics[0], 0);
  EXPECT_EQ(nics[1], 0);
}

TEST(RecordedTruth, GpuPairGetsTheSameFourPorts_infrawaves9) {
  Machine machine;
  for (int pair = 0; pair < 4; ++pair) {
    const std::string below = machine.add_switch();
    for (const char* gpu : {"/0000:02:00.0/0000:03:00.0", "/0000:02:01.0/0000:04:00.0"})
      machine.add_gpu(below + gpu, pair / 2);
    for (const char* nic : {"/0000:02:02.0/0000:05:00.0", "/0000:02:03.0/0000:06:00.0"})
      machine.add_nic(below + nic, pair / 2, "", 2);
  }
  const Answer answer = rows_of(machine.node, {.world = World::deepep_ht});
  EXPECT_EQ(answer[0], (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(answer[1], (std::vector<int>{0, 1, 2, 3}));
}

TEST(RecordedTruth, SixteenNamesWithoutPorts_nvshmem44) {
  std::string list = "mlx5_eth0x";
  for (int i = 1; i < 16; ++i)
    list += ",mlx5_eth" + std::to_string(i) + "x";
  const HcaList parsed = parse_hca_list(list, 48);
  ASSERT_EQ(parsed.entries.size(), 16U);
  for (const HcaListEntry& entry : parsed.entries) {
    EXPECT_EQ(entry.port, -1);
    EXPECT_EQ(entry.count, 1);
  }
  EXPECT_EQ(parsed.entries[4].name, "mlx5_eth4x");
}

TEST(RecordedTruth, RenamedAndForeignDevicesAreSkipped_deepep386_deepep202) {
  std::vector<HcaFacts> devices = {{"roce_rail1", {{}}, true}, {"erdma_0", {{}}, false}};
  NvshmemSettings settings;
  settings.transport = NvshmemTransport::ibgda;
  settings.version = {3, 3, 9};
  EXPECT_EQ(build_device_table(devices, settings).exclusions.size(), 2U);
  settings.version = {3, 4, 5};
  settings.hca_prefix = "roce_rail";
  EXPECT_EQ(build_device_table(devices, settings).entries.size(), 1U);
}

} // namespace shmemctl
