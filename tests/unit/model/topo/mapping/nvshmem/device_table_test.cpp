// What becomes a row of NVSHMEM's device table: enumeration, ports, lists, prefixes.
#include <gtest/gtest.h>

#include "src/model/topo/mapping/nvshmem_devices.h"
#include "src/model/topo/mapping/nvshmem_mapping.h"

namespace shmemctl {

namespace {

std::vector<HcaFacts> named(const std::vector<std::string>& names) {
  std::vector<HcaFacts> devices;
  for (const std::string& name : names)
    devices.push_back({name, {{1, true, LinkLayer::infiniband}}, true});
  return devices;
}
HcaFacts dual_port(const std::string& name) {
  return {name, {{1, true, LinkLayer::infiniband}, {2, true, LinkLayer::ethernet}}, true};
}

/// "mlx5_0:1 mlx5_1:2"
std::string rows(const std::vector<HcaFacts>& devices, const DeviceTable& table) {
  std::string text;
  for (const TableEntry& entry : table.entries)
    text += (text.empty() ? "" : " ") + devices[static_cast<std::size_t>(entry.device)].name + ":" +
            std::to_string(entry.port);
  return text;
}
std::string rows(const std::vector<HcaFacts>& devices, const NvshmemSettings& settings) {
  return rows(devices, build_device_table(devices, settings));
}

NvshmemSettings with_list(const std::string& list) {
  NvshmemSettings settings;
  settings.hca_list = list;
  return settings;
}
NvshmemSettings with_mapping(const std::string& mapping) {
  NvshmemSettings settings;
  settings.hca_pe_mapping = mapping;
  return settings;
}
NvshmemSettings with_transport(NvshmemTransport transport, NvshmemVersion version = {}) {
  NvshmemSettings settings;
  settings.transport = transport;
  settings.version = version;
  return settings;
}

std::string reason_of(const DeviceTable& table, int device) {
  for (const TableExclusion& exclusion : table.exclusions)
    if (exclusion.device == device)
      return exclusion.reason;
  return "";
}

} // namespace

TEST(DeviceTable, EnumerationOrderIsKeptAndNamesAreNotSorted) {
  const auto devices = named({"mlx5_2", "mlx5_10", "mlx5_0"});
  EXPECT_EQ(rows(devices, NvshmemSettings{}), "mlx5_2:1 mlx5_10:1 mlx5_0:1");
}

TEST(DeviceTable, PortsFollowEachOther) {
  const std::vector<HcaFacts> devices = {dual_port("mlx5_0"), dual_port("mlx5_1")};
  EXPECT_EQ(rows(devices, NvshmemSettings{}), "mlx5_0:1 mlx5_0:2 mlx5_1:1 mlx5_1:2");
}

TEST(DeviceTable, InactivePortsAreSkippedWhichShiftsTheRest) {
  auto devices = named({"mlx5_0", "mlx5_1", "mlx5_2"});
  devices[1].ports[0].active = false;
  const DeviceTable table = build_device_table(devices, {});
  EXPECT_EQ(rows(devices, table), "mlx5_0:1 mlx5_2:1");
  EXPECT_EQ(reason_of(table, 1), "port is not active");
}

TEST(DeviceTable, EthernetSinceTwoPointZero) {
  const std::vector<HcaFacts> devices = {dual_port("mlx5_0")};
  EXPECT_EQ(rows(devices, with_transport(NvshmemTransport::ibrc, {1, 1, 3})), "mlx5_0:1");
  EXPECT_EQ(rows(devices, with_transport(NvshmemTransport::ibrc, {2, 0, 0})), "mlx5_0:1 mlx5_0:2");
}

TEST(DeviceTable, OtherLinkLayersAreRefused) {
  auto devices = named({"usnic_0"});
  devices[0].ports[0].link_layer = LinkLayer::other;
  const DeviceTable table = build_device_table(devices, {});
  EXPECT_TRUE(table.entries.empty());
  EXPECT_NE(reason_of(table, 0).find("link layer"), std::string::npos);
}

TEST(DeviceTablePrefix, IbrcTakesAnyVendor) {
  auto devices = named({"irdma0", "erdma_0", "smi_0"});
  for (HcaFacts& device : devices)
    device.mlx5 = false;
  EXPECT_EQ(rows(devices, NvshmemSettings{}), "irdma0:1 erdma_0:1 smi_0:1");
}

TEST(DeviceTablePrefix, Mlx5IsFixedBefore345) {
  const auto devices = named({"mlx5_0", "ibp26s0", "bond_mlx5"});
  NvshmemSettings settings = with_transport(NvshmemTransport::ibgda, {3, 3, 20});
  settings.hca_prefix = "ibp";
  const DeviceTable table = build_device_table(devices, settings);
  EXPECT_EQ(rows(devices, table), "mlx5_0:1 bond_mlx5:1");
  EXPECT_NE(reason_of(table, 1).find("mlx5"), std::string::npos);
}

TEST(DeviceTablePrefix, SettingIsASubstringFrom345) {
  const auto devices = named({"mlx5_0", "ibp26s0", "a_ibp"});
  for (const NvshmemTransport transport : {NvshmemTransport::ibgda, NvshmemTransport::ibdevx}) {
    NvshmemSettings settings = with_transport(transport, {3, 4, 5});
    EXPECT_EQ(rows(devices, settings), "mlx5_0:1");
    settings.hca_prefix = "ibp";
    EXPECT_EQ(rows(devices, settings), "ibp26s0:1 a_ibp:1");
    settings.hca_prefix = "mlx5_0,ibp26s0"; // one substring, no list
    EXPECT_EQ(rows(devices, settings), "");
    settings.hca_prefix = "";
    EXPECT_EQ(rows(devices, settings), "mlx5_0:1 ibp26s0:1 a_ibp:1");
  }
}

TEST(DeviceTablePrefix, NewestAcceptsAllButSmi) {
  const auto devices = named({"mlx5_0", "ibp26s0", "smi_0", "mlx5_smi1"});
  NvshmemSettings settings = with_transport(NvshmemTransport::ibgda, {3, 5, 19});
  EXPECT_EQ(rows(devices, settings), "mlx5_0:1 ibp26s0:1");
  settings.hca_prefix = "^mlx5";
  EXPECT_EQ(rows(devices, settings), "ibp26s0:1 smi_0:1");
  settings.hca_prefix = "^";
  EXPECT_EQ(rows(devices, settings), "");
  // Before that, ^ is an ordinary character.
  settings.version = {3, 5, 18};
  settings.hca_prefix = "^mlx5";
  EXPECT_EQ(rows(devices, settings), "");
}

TEST(DeviceTablePrefix, Mlx5FeaturesAreNeededAsWell) {
  auto devices = named({"ibp26s0", "mlx5_0"});
  devices[0].mlx5 = false;
  const DeviceTable table = build_device_table(devices, with_transport(NvshmemTransport::ibgda));
  EXPECT_EQ(rows(devices, table), "mlx5_0:1");
  EXPECT_EQ(reason_of(table, 0), "IBGDA needs an mlx5 device");
}

TEST(DeviceTablePrefix, FilteredDeviceDoesNotMatchAnEntry) {
  const auto devices = named({"mlx5_0", "ibp26s0"});
  NvshmemSettings settings = with_transport(NvshmemTransport::ibgda, {3, 4, 5});
  settings.hca_list = "mlx5_0,ibp26s0";
  ASSERT_EQ(build_device_table(devices, settings).unmatched.size(), 1U);
  settings.transport = NvshmemTransport::ibrc;
  EXPECT_TRUE(build_device_table(devices, settings).unmatched.empty());
}

TEST(DeviceTableReplicas, FollowEachOther) {
  const std::vector<HcaFacts> devices = {dual_port("mlx5_0"), dual_port("mlx5_1")};
  EXPECT_EQ(rows(devices, with_mapping("mlx5_1:2:2,mlx5_0::1,mlx5_0:1:3")),
            "mlx5_0:1 mlx5_0:1 mlx5_0:1 mlx5_1:2 mlx5_1:2");
  EXPECT_EQ(rows(devices, with_mapping("mlx5_1:-1:2")), "mlx5_1:1 mlx5_1:1 mlx5_1:2 mlx5_1:2");
}

TEST(DeviceTableLibfabric, UniqueNamesWithoutListOrPortsOrReplicas) {
  std::vector<HcaFacts> devices = {dual_port("rdmap0"), dual_port("rdmap1"), dual_port("rdmap0")};
  devices[1].ports[0].active = false;
  NvshmemSettings settings = with_transport(NvshmemTransport::libfabric);
  settings.hca_list = "^rdmap0";
  settings.hca_pe_mapping = "rdmap1:1:4";
  const DeviceTable table = build_device_table(devices, settings);
  EXPECT_EQ(rows(devices, table), "rdmap0:1 rdmap1:1");
  EXPECT_EQ(table.list_name, "");
  EXPECT_EQ(reason_of(table, 2), "libfabric lists each name once");
}

TEST(DeviceTableUcx, HasNoDevices) {
  const auto devices = named({"mlx5_0", "mlx5_1"});
  const DeviceTable table = build_device_table(devices, with_transport(NvshmemTransport::ucx));
  EXPECT_TRUE(table.entries.empty());
  EXPECT_EQ(table.exclusions.size(), 2U);
}

TEST(DeviceTableCapacity, MoreThan32RowsOverrunTheArrays) {
  const auto devices = named({"mlx5_0", "mlx5_1"});
  EXPECT_FALSE(build_device_table(devices, with_mapping("mlx5_0:1:32")).overruns);
  EXPECT_TRUE(build_device_table(devices, with_mapping("mlx5_0:1:33")).overruns);
  const DeviceTable huge =
      build_device_table(devices, with_mapping("mlx5_0:1:2147483647,mlx5_1:1:2147483647"));
  EXPECT_EQ(huge.entries.size(), 1024U);
  EXPECT_NE(reason_of(huge, 1).find("full"), std::string::npos);
}

TEST(DeviceTableHcaList, NamesMatchExactly) {
  const auto devices = named({"mlx5_1", "mlx5_10", "MLX5_1"});
  EXPECT_EQ(rows(devices, with_list("mlx5_1")), "mlx5_1:1");
  EXPECT_EQ(rows(devices, with_list("mlx5_")), "");
  EXPECT_EQ(rows(devices, with_list(" mlx5_1")), "");
  EXPECT_EQ(rows(devices, with_list(std::string(80, 'm'))), "");
}

TEST(DeviceTableHcaList, CountsOfHcaListAreIgnored) {
  const auto devices = named({"mlx5_0", "mlx5_1"});
  EXPECT_EQ(rows(devices, with_list("mlx5_0:1:4,mlx5_1:1:0")), "mlx5_0:1 mlx5_1:1");
}

TEST(DeviceTableHcaList, WrittenOrderIsIrrelevant) {
  const auto devices = named({"mlx5_0", "mlx5_1", "mlx5_2"});
  EXPECT_EQ(rows(devices, with_list("mlx5_2,mlx5_0")), "mlx5_0:1 mlx5_2:1");
  EXPECT_EQ(rows(devices, with_mapping("mlx5_2,mlx5_0:1:2")), "mlx5_0:1 mlx5_0:1 mlx5_2:1");
}

TEST(DeviceTableHcaList, ExclusionAppliesToAllEntriesAndToPorts) {
  const std::vector<HcaFacts> devices = {dual_port("mlx5_0"), dual_port("mlx5_1")};
  const DeviceTable table = build_device_table(devices, with_list("^mlx5_0:2,mlx5_1"));
  EXPECT_EQ(rows(devices, table), "mlx5_0:1");
  EXPECT_TRUE(table.unmatched.empty());
  ASSERT_EQ(table.exclusions.size(), 3U);
  EXPECT_EQ(table.exclusions[0].port, 2);
  EXPECT_EQ(table.exclusions[0].reason, "excluded by NVSHMEM_HCA_LIST (\"mlx5_0:2\")");
}

TEST(DeviceTableHcaList, BareCaretAndEmptyListAllowEverything) {
  const auto devices = named({"mlx5_0", "mlx5_1"});
  for (const char* list : {"^", "", ",", ":1"})
    EXPECT_EQ(rows(devices, with_list(list)), "mlx5_0:1 mlx5_1:1") << list;
  EXPECT_EQ(build_device_table(devices, with_list("")).list_name, "");
  EXPECT_EQ(build_device_table(devices, with_list("")).list.problems.size(), 1U);
}

TEST(DeviceTablePeMapping, CaretAtItsBeginningHasNoMeaning) {
  const auto devices = named({"mlx5_0", "mlx5_1"});
  EXPECT_EQ(rows(devices, with_mapping("^mlx5_1:1:2")), "mlx5_1:1 mlx5_1:1");
}

TEST(DeviceTablePeMapping, LastMatchWins) {
  const auto devices = named({"mlx5_0"});
  EXPECT_EQ(rows(devices, with_mapping("mlx5_0:1:3,mlx5_0:1:2")), "mlx5_0:1 mlx5_0:1");
  EXPECT_EQ(rows(devices, with_mapping("mlx5_0:1:3,mlx5_0")), "mlx5_0:1");
  EXPECT_EQ(rows(devices, with_mapping("mlx5_0:1:3,mlx5_0:2:2")), "mlx5_0:1 mlx5_0:1 mlx5_0:1");
}

TEST(DeviceTablePeMapping, CountZeroMatchesAndRemoves) {
  const auto devices = named({"mlx5_0", "mlx5_1"});
  const DeviceTable table = build_device_table(devices, with_mapping("mlx5_0:1:x,mlx5_1"));
  EXPECT_EQ(rows(devices, table), "mlx5_1:1");
  EXPECT_TRUE(table.unmatched.empty());
  EXPECT_EQ(reason_of(table, 0), "NVSHMEM_HCA_PE_MAPPING gives it count 0 (mlx5_0:1:x)");
}

TEST(DeviceTablePeMapping, UnmatchedEntriesAreReportedAndOthersRefused) {
  auto devices = named({"mlx5_0", "mlx5_1"});
  devices[0].ports[0].active = false;
  const DeviceTable table = build_device_table(devices, with_mapping("mlx5_0,mlx5_0:3,mlx5_7"));
  ASSERT_EQ(table.unmatched.size(), 2U);
  EXPECT_EQ(table.unmatched[0].text, "mlx5_0:3");
  EXPECT_EQ(table.unmatched[1].text, "mlx5_7");
  EXPECT_EQ(reason_of(table, 0), "port is not active");
  EXPECT_EQ(reason_of(table, 1), "not in NVSHMEM_HCA_PE_MAPPING");
}

TEST(DeviceTableBothLists, HcaListWinsOnlyIfItNamesSomething) {
  const auto devices = named({"mlx5_0", "mlx5_1"});
  NvshmemSettings settings = with_mapping("mlx5_1:1:2");
  settings.hca_list = "mlx5_0";
  DeviceTable table = build_device_table(devices, settings);
  EXPECT_EQ(rows(devices, table), "mlx5_0:1");
  EXPECT_TRUE(table.pe_mapping_ignored);
  for (const char* empty : {"", "^", ",,"}) {
    settings.hca_list = empty;
    table = build_device_table(devices, settings);
    EXPECT_EQ(rows(devices, table), "mlx5_1:1 mlx5_1:1");
    EXPECT_FALSE(table.pe_mapping_ignored);
    EXPECT_EQ(table.list_name, "HCA_PE_MAPPING");
  }
}

TEST(DeviceTableBothLists, MappingIsReadFromTheWrongStringIn29And210) {
  const auto devices = named({"mlx5_0", "mlx5_1"});
  NvshmemSettings settings = with_mapping("mlx5_1:1:2");
  for (const NvshmemVersion version : {NvshmemVersion{2, 9, 0}, NvshmemVersion{2, 10, 1}}) {
    settings.version = version;
    EXPECT_EQ(rows(devices, settings), "mlx5_0:1 mlx5_1:1") << to_string(version);
    EXPECT_TRUE(build_device_table(devices, settings).pe_mapping_ignored);
  }
  for (const NvshmemVersion version : {NvshmemVersion{2, 8, 0}, NvshmemVersion{2, 11, 0}}) {
    settings.version = version;
    EXPECT_EQ(rows(devices, settings), "mlx5_1:1 mlx5_1:1") << to_string(version);
  }
}

TEST(DeviceTableListCapacity, ByReleaseAndList) {
  std::vector<std::string> names;
  std::string list;
  for (int i = 0; i < 60; ++i) {
    names.push_back("mlx5_" + std::to_string(i));
    list += (i == 0 ? "" : ",") + names.back();
  }
  const auto devices = named(names);
  NvshmemSettings settings = with_list(list);
  EXPECT_EQ(build_device_table(devices, settings).entries.size(), 48U);
  settings.version = {3, 3, 9};
  EXPECT_EQ(build_device_table(devices, settings).entries.size(), 48U);
  settings.version = {3, 2, 5};
  EXPECT_EQ(build_device_table(devices, settings).entries.size(), 16U);
  settings = with_mapping(list);
  for (const NvshmemVersion version : {NvshmemVersion{3, 2, 5}, NvshmemVersion{3, 7, 0}}) {
    settings.version = version;
    EXPECT_EQ(build_device_table(devices, settings).entries.size(), 32U);
  }
}

} // namespace shmemctl
