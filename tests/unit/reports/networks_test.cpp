#include "reports/networks.h"

#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <numeric>

namespace shmemctl::test {
namespace {

using Names = std::vector<std::string>;
using Nodes = std::vector<int>;

NetworkLink link(const std::string& first, const std::string& second) {
  return {{first, 1}, {second, 1}};
}

std::vector<int> all_but(int n, int node) {
  std::vector<int> nodes;
  for (int i = 0; i < n; ++i)
    if (i != node)
      nodes.push_back(i);
  return nodes;
}

std::string text_of(const std::vector<NetworkUse>& uses, const Names& names) {
  return networks_text(network_rows(uses, static_cast<int>(names.size())), names, TextStyle{});
}

/// Every PE of every node reaches all other nodes; the interface of each is `interfaces[node]`.
std::vector<NetworkUse> uses_of(const Names& interfaces) {
  std::vector<NetworkUse> uses;
  const int n = static_cast<int>(interfaces.size());
  for (int node = 0; node < n; ++node)
    for (const int target : all_but(n, node))
      uses.push_back({node,
                      "libfabric",
                      {link(interfaces[static_cast<std::size_t>(node)],
                            interfaces[static_cast<std::size_t>(target)])},
                      {target}});
  return uses;
}

TEST(Networks, NodesThatAreAlikeAreOneRow) {
  const std::vector<NetworkRow> rows = network_rows(uses_of({"eth0", "eth0", "eth0"}), 3);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].first, (Nodes{0, 1, 2}));
  EXPECT_EQ(rows[0].second, (Nodes{0, 1, 2}));
  EXPECT_EQ(rows[0].pairs, 3u);
  EXPECT_TRUE(rows[0].both_ways);
  EXPECT_EQ(text_of(uses_of({"eth0", "eth0", "eth0"}), {"a", "b", "c"}),
            "between        pairs  transport  interfaces and NICs\n"
            "among a, b, c      3  libfabric  eth0 <-> eth0\n");
}

TEST(Networks, OfDifferentInterfacesEachSideHasItsOwn) {
  EXPECT_EQ(text_of(uses_of({"eth0", "enp5s0", "eth0", "enp5s0"}), {"n1", "n2", "n3", "n4"}),
            "between            pairs  transport  interfaces and NICs\n"
            "among n[1,3]           1  libfabric  eth0 <-> eth0\n"
            "n[2,4] <-> n[1,3]      4  libfabric  enp5s0 <-> eth0\n"
            "among n[2,4]           1  libfabric  enp5s0 <-> enp5s0\n");
}

TEST(Networks, AThousandHostsOfOneKindAreOneRowAndAnOddOneAnother) {
  constexpr int n = 1024;
  std::vector<NetworkUse> uses;
  Names names;
  for (int node = 0; node < n; ++node) {
    names.push_back(fmt::format("node{:04}", node + 1));
    std::vector<NetworkLink> rails;
    for (int rail = 0; rail < 8; ++rail)
      rails.push_back(link(fmt::format("mlx5_{}", rail), fmt::format("mlx5_{}", rail)));
    std::vector<int> others = all_but(n, node);
    if (node == 500) {
      uses.push_back({node, "libfabric", {link("eth0", "eth0")}, others});
      continue;
    }
    std::erase(others, 500);
    uses.push_back({node, "libfabric", {link("eth0", "eth0")}, {500}});
    uses.push_back({node, "ibrc", rails, others});
  }
  EXPECT_EQ(text_of(uses, names),
            "between                                  pairs  transport  interfaces and NICs\n"
            "among node[0001-0500,0502-1024]         522753  ibrc       mlx5_[0-7] <-> mlx5_[0-7] "
            "(each with its like)\n"
            "node[0001-0500,0502-1024] <-> node0501    1023  libfabric  eth0 <-> eth0\n");
}

TEST(Networks, PortsOfAllPesOfAPairAreTogether) {
  std::vector<NetworkUse> uses;
  for (const int node : {0, 1})
    for (const char* here : {"mlx5_0", "mlx5_1"})
      uses.push_back({node, "ibrc", {link(here, "mlx5_0"), link(here, "mlx5_1")}, {1 - node}});
  const std::vector<NetworkRow> rows = network_rows(uses, 2);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].links.size(), 4u);
  EXPECT_EQ(links_text(rows[0]), "mlx5_[0-1] <-> mlx5_[0-1] (each with each)");
}

TEST(Networks, PortsThatOnlyTheOtherSideTellsAreTakenFromThere) {
  const std::vector<NetworkUse> uses = {{0, "ucx", {link("eth0", "")}, {1}},
                                        {1, "ucx", {link("enp5s0", "")}, {0}}};
  EXPECT_EQ(text_of(uses, {"a", "b"}), "between  pairs  transport  interfaces and NICs\n"
                                       "b <-> a      1  ucx        enp5s0 <-> eth0\n");
  // With several NICs on both sides it is unknown which belong together.
  const std::vector<NetworkUse> several = {{0, "ucx", {link("x0", ""), link("x1", "")}, {1}},
                                           {1, "ucx", {link("y0", ""), link("y1", "")}, {0}}};
  const std::vector<NetworkRow> rows = network_rows(several, 2);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_FALSE(rows[0].both_ways);
  EXPECT_EQ(links_text(rows[0]), "x[0-1] -> ?");
  EXPECT_EQ(links_text(rows[1]), "y[0-1] -> ?");
}

TEST(Networks, DirectionsThatDifferAreTwoRows) {
  const std::vector<NetworkUse> uses = {{0, "ibrc", {{{"mlx5_0", 1}, {"mlx5_0", 2}}}, {1}},
                                        {1, "ibrc", {{{"mlx5_0", 1}, {"mlx5_0", 1}}}, {0}}};
  EXPECT_EQ(text_of(uses, {"a", "b"}), "between  pairs  transport  interfaces and NICs\n"
                                       "a -> b       1  ibrc       mlx5_0 -> mlx5_0:2\n"
                                       "b -> a       1  ibrc       mlx5_0 -> mlx5_0\n");
}

TEST(Networks, ATransportWithoutPortsHasARowToo) {
  EXPECT_EQ(text_of({{0, "ibdevx", {}, {1}}, {1, "ibdevx", {}, {0}}}, {"vm node 0", "vm node 1"}),
            "between              pairs  transport  interfaces and NICs\n"
            "among vm node [0-1]      1  ibdevx     -\n");
}

/// Whatever the pairs are: each is in one row, and none is there that is not used.
TEST(Networks, EveryPairIsInOneRow) {
  std::uint32_t state = 12345;
  const auto random = [&state] { return (state = state * 1664525 + 1013904223) >> 16; };
  for (int round = 0; round < 200; ++round) {
    const int n = 2 + static_cast<int>(random() % 7);
    const std::uint32_t kinds = 1 + random() % 3;
    std::vector<std::vector<std::string>> expected(static_cast<std::size_t>(n),
                                                   Names(static_cast<std::size_t>(n)));
    auto of = [](std::vector<std::vector<std::string>>& all, int a, int b) -> std::string& {
      return all[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)];
    };
    std::vector<NetworkUse> uses;
    for (int a = 0; a < n; ++a)
      for (const int b : all_but(n, a))
        if (const std::uint32_t kind = random() % (kinds + 1); kind > 0) {
          of(expected, a, b) = fmt::format("x{} -> x0", kind);
          uses.push_back({a, "t", {link(fmt::format("x{}", kind), "x0")}, {b}});
        }
    auto found = expected;
    for (auto& row : found)
      std::fill(row.begin(), row.end(), "");
    for (const NetworkRow& row : network_rows(uses, n)) {
      std::size_t pairs = 0;
      for (const int a : row.first)
        for (const int b : row.second) {
          const auto put = [&](int from, int to, const NetworkPort& here,
                               const NetworkPort& there) {
            EXPECT_EQ(of(found, from, to), "") << from << " to " << to << " twice";
            of(found, from, to) = fmt::format("{} -> {}", here.device, there.device);
          };
          const bool within = row.first == row.second;
          if (a == b || (within && row.both_ways && a > b))
            continue;
          ++pairs;
          ASSERT_EQ(row.links.size(), 1u);
          put(a, b, row.links[0].first, row.links[0].second);
          if (row.both_ways)
            put(b, a, row.links[0].second, row.links[0].first);
        }
      if (row.both_ways) {
        EXPECT_EQ(row.pairs, pairs);
      }
    }
    EXPECT_EQ(found, expected) << "round " << round;
  }
}

TEST(Networks, AreTheSameAfterTheReport) {
  NetworkRow row;
  row.transport = "libfabric";
  row.links = {{{"eth0", 1}, {"mlx5_0", 2}}, {{"eth1", 1}, {"", 1}}};
  row.first = {0, 2};
  row.second = {1};
  row.both_ways = false;
  row.pairs = 2;
  row.run = 1;
  const nlohmann::json object = to_json(row);
  EXPECT_EQ(object["links"][1]["second"], nullptr);
  EXPECT_NE(object["links"][1]["second_reason"], "");
  const NetworkRow back = network_row_from_json(object);
  EXPECT_EQ(to_json(back), object);
  EXPECT_EQ(back.links, row.links);
}

TEST(Networks, NodesAreNamedByTheirHosts) {
  const auto named = [](const char* text) { return node_names_of(nlohmann::json::parse(text)); };
  EXPECT_EQ(named(R"([{"name": "a", "nodes": [1]}, {"name": "b", "nodes": [0]}])"),
            (Names{"b", "a"}));
  EXPECT_EQ(named(R"([{"name": "vm", "nodes": [0, 1]}])"), (Names{"vm node 0", "vm node 1"}));
  EXPECT_EQ(named(R"([{"name": "a", "nodes": [-1, 1e300, 9999999999, "x"]}])"), Names());
  EXPECT_EQ(node_names_of(nullptr), Names());
}

} // namespace
} // namespace shmemctl::test
