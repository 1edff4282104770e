// Which links rows use, and what share of a link's limit a call reached.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "src/base/archive.h"
#include "src/instruments/bench/moe/links.h"
#include "src/model/topo/pci_address.h"
#include "tests/support/node_builder.h"

namespace shmemctl::moe {
namespace {

constexpr double link_GBps = 26.5;

class MoeLinks : public ::testing::Test {
protected:
  MoeLinks() {
    const int bridge = built.host_bridge(0);
    for (int i = 0; i < 3; ++i)
      built.gpu(built.pcie_switch(bridge));
    for (Gpu& gpu : built.node.gpus) {
      addresses.push_back(to_string(built.pci(gpu.pci).address));
      GpuLink link;
      link.target = LinkTarget::nvswitch;
      link.count = 18;
      link.bandwidth_GBps = known(link_GBps, "test");
      gpu.links.push_back(link);
    }
  }
  /// Ranks 0 and 1 share the first GPU.
  std::vector<bench::GpuOfPe> places() const {
    return {{1, addresses[0]}, {1, addresses[0]}, {1, addresses[1]}, {1, addresses[2]}};
  }
  static Traffic some_traffic() {
    Traffic traffic;
    traffic.sent_bytes.resize(4);
    traffic.moved_bytes = {0,    5000, 100, 200, // what stays on the first GPU uses no link
                           7000, 0,    300, 400, //
                           10,   20,   0,   30,  //
                           1,    2,    4,   0};
    return traffic;
  }

  shmemctl::testing::NodeBuilder built;
  std::vector<std::string> addresses;
};

TEST_F(MoeLinks, RanksOfOneGpuShareItsLinks) {
  const std::vector<GpuLinks> gpus = gpu_links(built.node, places());
  ASSERT_EQ(gpus.size(), 3U);
  EXPECT_EQ(gpus[0].ranks, (std::vector<std::int32_t>{0, 1}));
  EXPECT_NEAR(gpus[0].limit.rate_GBps, 18 * link_GBps, 1e-9);
  EXPECT_EQ(gpus[0].limit.links, 18);
  const LinkBytes first = bytes_over(gpus[0], some_traffic());
  EXPECT_EQ(first.out, 1000U);
  EXPECT_EQ(first.in, 33U);
  EXPECT_EQ(bytes_over(gpus[2], some_traffic()).in, 630U);
}

TEST_F(MoeLinks, TheBusiestLinkCounts) {
  Links links;
  links.gpus = gpu_links(built.node, places());
  const auto share = share_of(links, some_traffic(), 0.01); // 1000 B in 10 ns are 100 GB/s
  ASSERT_TRUE(share);
  EXPECT_NEAR(share->fraction, 100 / (18 * link_GBps), 1e-9);
  EXPECT_NE(
      share->limited_by.find("NVLink, 18 links of 26.5 GB/s: 477 GB/s in each direction, GPU "),
      std::string::npos)
      << share->limited_by;
  EXPECT_NE(share->limited_by.find(", by the model"), std::string::npos) << share->limited_by;
  EXPECT_FALSE(share_of(links, some_traffic(), 0));
  Traffic nothing = some_traffic();
  nothing.moved_bytes.assign(16, 0);
  EXPECT_FALSE(share_of(links, nothing, 1));
}

TEST_F(MoeLinks, WhatWasMeasuredIsTheLimit) {
  bench::LinkMeasurement measured;
  measured.link.emplace();
  measured.link->stores_GBps = {300, 310, 355, 100};
  measured.link->loads_GBps = {200, 210, 326, 120};
  measured.link->blocks = 132;
  measured.link->threads = 1024;
  measured.link->message_bytes = 16 << 20;
  measured.link->traffic = "all-to-all";
  Links links;
  links.gpus = gpu_links(built.node, places(), measured);
  ASSERT_EQ(links.gpus.size(), 3U);
  EXPECT_EQ(links.gpus[1].limit.rate_GBps, 355);
  EXPECT_EQ(links.gpus[2].limit.rate_GBps, 120);
  const auto share = share_of(links, some_traffic(), 0.01); // GPU 2: 630 B in 10 ns, of 120 GB/s
  ASSERT_TRUE(share);
  EXPECT_NEAR(share->fraction, 63.0 / 120, 1e-9);
  EXPECT_NE(share->limited_by.find("120 GB/s in each direction, GPU " + addresses[2] +
                                   ", measured (loads, 132 blocks of 1024 threads, messages of "
                                   "16M, all-to-all)"),
            std::string::npos)
      << share->limited_by;
  const auto json = links_json(links, some_traffic(), some_traffic(), {});
  EXPECT_EQ(json.at(1).at("stores_GBps"), 355);
  EXPECT_EQ(json.at(1).at("loads_GBps"), 326);
  EXPECT_NEAR(json.at(1).at("model_GBps").get<double>(), 18 * link_GBps, 1e-9);
  EXPECT_FALSE(json.at(1).contains("unmeasured_reason"));
  for (Gpu& gpu : built.node.gpus) // no model is needed then
    gpu.links.clear();
  EXPECT_EQ(gpu_links(built.node, places(), measured).size(), 3U);
}

TEST_F(MoeLinks, TheReportSaysWhyNothingWasMeasured) {
  Links links;
  links.gpus = gpu_links(built.node, places());
  links.unmeasured = "PEs share a GPU, and take turns on it";
  const auto json = links_json(links, some_traffic(), some_traffic(), {});
  EXPECT_EQ(json.at(0).at("basis"), "by the model");
  EXPECT_EQ(json.at(0).at("unmeasured_reason"), links.unmeasured);
  EXPECT_NE(links_text(links, some_traffic(), some_traffic(), {}).find(links.unmeasured),
            std::string::npos);
}

TEST_F(MoeLinks, TheReportHasBytesOfEachLink) {
  Links links;
  links.gpus = gpu_links(built.node, places());
  links.nics = {{"n1", "mlx5_0", 1, 4096}};
  const Traffic traffic = some_traffic();
  const auto gpus = links_json(links, traffic, traffic, {});
  EXPECT_EQ(gpus.at(0).at("dispatch").at("out_bytes"), 1000);
  EXPECT_NEAR(gpus.at(0).at("combine").at("out_bytes_per_link").get<double>(), 1000 / 18.0, 1e-9);
  EXPECT_EQ(nics_json(links).at(0).at("moved_bytes"), 4096);
  EXPECT_NE(links_text(links, traffic, traffic, {}).find("mlx5_0:1 on n1"), std::string::npos);
}

TEST_F(MoeLinks, TwoHostsOfOneNameAreNotAddedUp) {
  Links links;
  add_use({"node", "eth0", 1, 100, 17, {0}}, links.nics);
  add_use({"node", "eth0", 1, 10, 17, {1}}, links.nics);
  add_use({"node", "eth0", 1, 1000, 18, {2}}, links.nics);
  ASSERT_EQ(links.nics.size(), 2U);
  EXPECT_EQ(links.nics[0].moved_bytes, 110U);
  EXPECT_EQ(links.nics[1].moved_bytes, 1000U);
  const auto json = nics_json(links);
  EXPECT_EQ(json.at(0).at("ranks"), (std::vector<int>{0, 1}));
  EXPECT_EQ(json.at(1).at("ranks"), std::vector<int>{2});
  const std::string text = links_text(links, some_traffic(), some_traffic(), {});
  EXPECT_NE(text.find("eth0:1 on node (ranks 0, 1): 0.000 MB"), std::string::npos) << text;
  EXPECT_NE(text.find("eth0:1 on node (rank 2): 0.001 MB"), std::string::npos) << text;
  NvlinkUse use{"node", addresses[0], {0}, {}, 17};
  add_nvlink_use(use, links.nvlinks);
  use.machine_id = 18;
  add_nvlink_use(use, links.nvlinks);
  EXPECT_EQ(links.nvlinks.size(), 2U);
}

TEST_F(MoeLinks, ThePathOfRowsNamesTransportsAndNics) {
  Links links;
  links.transports = {"libfabric", "shm"};
  add_use({"a", "eth0", 1, 100, 17, {0}}, links.nics);
  add_use({"b", "eth0", 1, 100, 18, {1}}, links.nics);
  add_use({"b", "mlx5_0", 2, 100, 18, {1}}, links.nics);
  EXPECT_EQ(to_text(path_of(links)), "by libfabric, shm (eth0, mlx5_0:2)");
}

TEST_F(MoeLinks, TextOfOtherHostsIsPrintedSafe) {
  const std::string hostile = "\x1b]0;title\a\r\n\xc2\x9b\xe2\x80\xae";
  Links links;
  links.gpus = gpu_links(built.node, places());
  for (GpuLinks& gpu : links.gpus)
    gpu.gpu = gpu.limit.name = gpu.basis = hostile;
  links.unmeasured = hostile;
  links.nics = {{hostile, hostile, 1, 4096}};
  NvlinkUse use{hostile, hostile, {0, 1}, {}};
  use.counted.out_bytes = use.counted.in_bytes = known(std::uint64_t{1}, hostile);
  links.nvlinks.push_back(use);
  const std::string text = links_text(links, some_traffic(), some_traffic(), {});
  for (const char* bad : {"\x1b", "\a", "\r", "\xc2\x9b", "\xe2\x80\xae"})
    EXPECT_EQ(text.find(bad), std::string::npos) << text;
  EXPECT_NE(text.find("title"), std::string::npos);
}

Fact<std::uint64_t> bytes(std::uint64_t count) {
  return known(count, "test");
}

TEST_F(MoeLinks, WhatNvlinksCountedStandsBesideTheRows) {
  Links links;
  links.gpus = gpu_links(built.node, places());
  NvlinkUse use{"n1", addresses[0], {0, 1}, {}};
  use.counted.links = {{0, bytes(5120), bytes(1024)}, {3, bytes(5120), bytes(0)}};
  use.counted.out_bytes = bytes(10240);
  use.counted.in_bytes = bytes(1024);
  links.nvlinks.push_back(use);
  use.gpu = addresses[1];
  use.counted.in_bytes = unknown<std::uint64_t>("NVLink 3: it was reset");
  links.nvlinks.push_back(use);
  const Traffic there = some_traffic();
  Traffic back = there;
  for (std::uint64_t& moved : back.moved_bytes)
    moved *= 10;
  const CallCount calls{7, 2};
  const auto json = links_json(links, there, back, calls);
  const auto& first = json.at(0).at("all_calls");
  EXPECT_EQ(first.at("out_bytes"), 7 * 1000 + 2 * 10000);
  EXPECT_EQ(first.at("in_bytes"), 7 * 33 + 2 * 330);
  EXPECT_EQ(first.at("counted_out_bytes"), 10240);
  EXPECT_EQ(first.at("counted_in_bytes"), 1024);
  EXPECT_FALSE(first.contains("counted_in_bytes_reason"));
  const auto& second = json.at(1).at("all_calls");
  EXPECT_EQ(second.at("counted_out_bytes"), 10240);
  EXPECT_TRUE(second.at("counted_in_bytes").is_null());
  EXPECT_EQ(second.at("counted_in_bytes_reason"), "NVLink 3: it was reset");
  EXPECT_FALSE(json.at(2).at("all_calls").contains("counted_out_bytes"));
  const std::string text = links_text(links, there, back, calls);
  EXPECT_NE(text.find("NVLinks of GPU " + addresses[0] +
                      " on n1: counted out 0.010 MB and in 0.001 MB over all calls; rows by the "
                      "routing 0.027 and 0.001\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("NVLinks of GPU " + addresses[1]), std::string::npos) << text;
}

TEST_F(MoeLinks, WithoutAllRanksRowsAreNotCompared) {
  Links links;
  links.gpus = gpu_links(built.node, places());
  NvlinkUse use{"n1", addresses[0], {0, 1}, {}};
  use.counted.out_bytes = use.counted.in_bytes = bytes(2048);
  links.nvlinks.push_back(use);
  EXPECT_FALSE(links_json(links, some_traffic(), some_traffic(), {}).at(0).contains("all_calls"));
  const std::string text = links_text(links, some_traffic(), some_traffic(), {});
  EXPECT_NE(text.find("in 0.002 MB over all calls\n"), std::string::npos) << text;
}

TEST(MoeNvlinks, WhatIsNotCountedHasItsReason) {
  std::vector<NvlinkUse> all;
  NvlinkUse use{"n1", "0000:1a:00.0", {0}, {}};
  use.counted.out_bytes = use.counted.in_bytes =
      unknown<std::uint64_t>("none of its 18 NVLinks is active");
  add_nvlink_use(use, all);
  use.ranks = {2}; // the same GPU, which has read the same counter
  add_nvlink_use(use, all);
  use.host = "n2"; // another GPU with the same address
  use.ranks = {1};
  use.counted.links = {{0, bytes(1024), unknown<std::uint64_t>("it was reset")},
                       {1, bytes(2048), bytes(4096)}};
  use.counted.out_bytes = bytes(3072);
  add_nvlink_use(use, all);
  const auto json = nvlinks_json(all);
  ASSERT_EQ(json.size(), 2U);
  EXPECT_EQ(json.at(0), nlohmann::json::parse(
                            R"({"host": "n1", "gpu": "0000:1a:00.0", "ranks": [0, 2],
                                "out_bytes": null,
                                "out_bytes_reason": "none of its 18 NVLinks is active",
                                "in_bytes": null,
                                "in_bytes_reason": "none of its 18 NVLinks is active",
                                "links": []})"));
  EXPECT_EQ(json.at(1), nlohmann::json::parse(
                            R"({"host": "n2", "gpu": "0000:1a:00.0", "ranks": [1],
                                "out_bytes": 3072, "in_bytes": null,
                                "in_bytes_reason": "none of its 18 NVLinks is active",
                                "resolution_bytes": 2048,
                                "links": [{"link": 0, "out_bytes": 1024, "in_bytes": null,
                                           "in_bytes_reason": "it was reset"},
                                          {"link": 1, "out_bytes": 2048, "in_bytes": 4096}]})"));
}

TEST(MoeNvlinks, CountsAreSentWhole) {
  NvlinkTraffic traffic;
  traffic.links = {{7, bytes(1024), unknown<std::uint64_t>("it was reset")}};
  traffic.out_bytes = bytes(std::uint64_t{1} << 53);
  traffic.in_bytes = unknown<std::uint64_t>("NVLink 7: it was reset");
  const std::string sent = to_bytes(traffic);
  const auto received = from_bytes<NvlinkTraffic>(sent);
  ASSERT_TRUE(received);
  const auto item = [](const NvlinkTraffic& counted) {
    return nvlinks_json(std::vector<NvlinkUse>{{"n1", "0000:1a:00.0", {0}, counted, 1}});
  };
  EXPECT_EQ(item(*received), item(traffic));
  EXPECT_EQ(received->links.at(0).link, 7U);
  EXPECT_FALSE(from_bytes<NvlinkTraffic>(sent.substr(0, sent.size() - 1)));
}

TEST_F(MoeLinks, WhatIsNotKnownHasNoLimit) {
  std::vector<bench::GpuOfPe> two_machines = places();
  two_machines[3].machine_id = 2;
  EXPECT_TRUE(gpu_links(built.node, two_machines).empty());
  std::vector<bench::GpuOfPe> without = places();
  without[0].pci_address = "";
  EXPECT_TRUE(gpu_links(built.node, without).empty());
  EXPECT_TRUE(gpu_links(built.node, {{1, addresses[0]}, {1, addresses[0]}}).empty())
      << "one GPU alone";
  for (Gpu& gpu : built.node.gpus)
    gpu.links.clear();
  EXPECT_TRUE(gpu_links(built.node, places()).empty());
}

TEST_F(MoeLinks, BetweenMachinesThePortsAreTheLimit) {
  Links links;
  links.machine_of = {1, 1, 2, 2};
  EXPECT_FALSE(share_of(links, some_traffic(), 1));
  links.ports = bench::LinkLimit{100, "2 ports of 2 hosts, 800 Gb/s"};
  const auto share = share_of(links, some_traffic(), 0.1); // 1033 B cross in 100 ns
  ASSERT_TRUE(share);
  EXPECT_NEAR(share->fraction, 10.33 / 100, 1e-9);
  EXPECT_EQ(share->limited_by, "2 ports of 2 hosts, 800 Gb/s");
}

} // namespace
} // namespace shmemctl::moe
