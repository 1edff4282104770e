#include "reports/hosts_table.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace shmemctl::test {
namespace {

using nlohmann::json;

/// A host of a cluster of nodes of one kind, with eight PEs.
json host_of(int number, const std::string& name) {
  json host = {{"name", name},
               {"nodes", json::array({number})},
               {"pes", json::array()},
               {"kernel", "6.1.0"},
               {"cpus", {{"model", "AMD EPYC 9654"}, {"packages", 2}, {"numa_nodes", 2}}},
               {"gpus", json::array()},
               {"hcas", json::array()},
               {"versions", {{"nvidia", "580.65"}, {"libfabric", "1.22"}, {"ucx", nullptr}}}};
  for (int i = 0; i < 8; ++i) {
    host["pes"].push_back(8 * number + i);
    host["gpus"].push_back({{"name", "H100"}});
    host["hcas"].push_back({{"name", fmt::format("mlx5_{}", i)},
                            {"port", 1},
                            {"rate_Gbps", 400},
                            {"firmware", "28.39"}});
  }
  return host;
}

json hosts_of(int count) {
  json hosts = json::array();
  for (int i = 0; i < count; ++i)
    hosts.push_back(host_of(i, fmt::format("node{:04}", i + 1)));
  return hosts;
}

TEST(HostsTable, HostsThatAreAlikeAreOneRow) {
  EXPECT_EQ(hosts_text(hosts_of(1024), TextStyle{}),
            "host             node    PEs             GPUs      NICs                      "
            "CPU                              kernel  driver         libraries\n"
            "node[0001-1024]  0-1023  0-8191, 8 each  8 x H100  mlx5_[0-7] 400G fw 28.39  "
            "2 x AMD EPYC 9654, 2 NUMA nodes  6.1.0   nvidia 580.65  libfabric 1.22\n");
}

TEST(HostsTable, WhatDiffersIsMarked) {
  json hosts = hosts_of(4);
  hosts[2]["kernel"] = "6.1.1";
  hosts[2]["hcas"][3]["firmware"] = "28.40";
  hosts[2]["versions"].erase("nvidia");
  TextStyle narrow;
  narrow.width = 100;
  EXPECT_EQ(hosts_text(hosts, narrow),
            "all hosts: GPUs 8 x H100\n"
            "all hosts: CPU 2 x AMD EPYC 9654, 2 NUMA nodes\n"
            "all hosts: libraries libfabric 1.22\n"
            "host                  node   PEs                 NICs                            "
            "                      kernel   driver\n"
            "node[0001-0002,0004]  0-1,3  0-15,24-31, 8 each  mlx5_[0-7] 400G fw 28.39        "
            "                      6.1.0    nvidia 580.65\n"
            "node0003              2      16-23               mlx5_[0-2,4-7] 400G fw 28.39, "
            "mlx5_3 400G fw 28.40 *  6.1.1 *  - *\n"
            "* most hosts have another value, or no value is that of most\n");
}

TEST(HostsTable, OfTwoValuesNoneIsUsual) {
  json hosts = hosts_of(2);
  hosts[1]["pes"] = json::array({8});
  hosts[1]["kernel"] = nullptr;
  const HostsTable table = hosts_table(std::vector<json>(hosts.begin(), hosts.end()));
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_TRUE(table.any_differs());
  for (const HostsTable::Row& row : table.rows)
    for (std::size_t column = 0; column < table.columns.size(); ++column)
      EXPECT_EQ(row.cells[column].differs,
                table.columns[column] == "PEs" || table.columns[column] == "kernel")
          << table.columns[column];
}

TEST(HostsTable, AHostWithoutNicsHasInterfaces) {
  json host = {{"name", "a"},
               {"interfaces", {{{"name", "eth0"}, {"rate_Gbps", 10}}, {{"name", "eth1"}}}}};
  json other = host;
  other["name"] = "b";
  EXPECT_EQ(hosts_text(json::array({host, other}), TextStyle{}), "host  NICs\n"
                                                                 "a, b  eth0 10G, eth1\n");
}

TEST(HostsTable, ManyDifferentHostsAreCutShort) {
  json hosts = hosts_of(60);
  for (std::size_t i = 0; i < hosts.size(); ++i)
    hosts[i]["kernel"] = fmt::format("6.1.{}", i);
  EXPECT_NE(hosts_text(hosts, TextStyle{}).find("and 10 more: --verbose\n"), std::string::npos);
  TextStyle verbose;
  verbose.verbose = true;
  EXPECT_EQ(hosts_text(hosts, verbose).find("more: --verbose"), std::string::npos);
}

TEST(HostsTable, OneHostNeedsNone) {
  EXPECT_EQ(hosts_text(hosts_of(1), TextStyle{}), "");
  EXPECT_EQ(hosts_text(nullptr, TextStyle{}), "");
  EXPECT_EQ(hosts_text({{"name", "a"}}, TextStyle{}), "");
}

} // namespace
} // namespace shmemctl::test
