#include <gtest/gtest.h>

#include "src/instruments/bench/bandwidth_limit.h"
#include "tests/support/node_builder.h"

namespace shmemctl::bench {

namespace {

constexpr double link_GBps = 26.562;

/// Two GPUs below one switch each.
class GpuLinkTest : public ::testing::Test {
protected:
  GpuLinkTest() {
    const int bridge = built.host_bridge(0);
    for (int i = 0; i < 2; ++i)
      built.gpu(built.pcie_switch(bridge));
    for (const Gpu& gpu : built.node.gpus)
      addresses.push_back(to_string(built.pci(gpu.pci).address));
  }

  void add_nvlink(LinkTarget target, int count) {
    for (Gpu& gpu : built.node.gpus) {
      GpuLink link;
      link.target = target;
      link.count = count;
      link.bandwidth_GBps = known(link_GBps, "test");
      if (target == LinkTarget::gpu)
        link.target_address = parse_pci_address(addresses[gpu.index == 0 ? 1 : 0]);
      gpu.links.push_back(link);
    }
  }
  void set_pcie(double speed_GTps, int width) {
    for (const Gpu& gpu : built.node.gpus) // idle
      built.link(gpu.pci, 2.5, width, speed_GTps, width);
  }
  std::vector<GpuOfPe> places(std::uint64_t second_machine = 1) const {
    return {{1, addresses[0]}, {second_machine, addresses[1]}};
  }

  shmemctl::testing::NodeBuilder built;
  std::vector<std::string> addresses;
};

TEST_F(GpuLinkTest, NvlinkIsTheRateOfAllItsLinks) {
  add_nvlink(LinkTarget::nvswitch, 18);
  const auto link = gpu_link(built.node, addresses[0], addresses[1]);
  ASSERT_TRUE(link);
  EXPECT_NEAR(link->rate_GBps, 18 * link_GBps, 1e-9);
  EXPECT_EQ(link->name, "NVLink, 18 links of 26.562 GB/s");
}

TEST_F(GpuLinkTest, PcieIsTheRateOfTheLinkAtFullSpeed) {
  set_pcie(32, 16);
  const auto link = gpu_link(built.node, addresses[0], addresses[1]);
  ASSERT_TRUE(link);
  EXPECT_NEAR(link->rate_GBps, 63.0, 0.1);
  EXPECT_EQ(link->name, "PCIe, 16 lanes of 32 GT/s");
}

TEST_F(GpuLinkTest, NothingIsSaidOfWhatIsNotKnown) {
  EXPECT_FALSE(gpu_link(built.node, addresses[0], addresses[1]));
  set_pcie(32, 16);
  EXPECT_FALSE(gpu_link(built.node, addresses[0], addresses[0]));
  EXPECT_FALSE(gpu_link(built.node, addresses[0], "0000:ff:00.0"));
  EXPECT_FALSE(gpu_link(built.node, "", addresses[1]));
}

TEST_F(GpuLinkTest, BothDirectionsHaveTwiceTheRate) {
  add_nvlink(LinkTarget::nvswitch, 18);
  Point point;
  auto limit = gpu_link_limit(built.node, point, places()).limit;
  ASSERT_TRUE(limit);
  EXPECT_NEAR(limit->rate_GBps, 18 * link_GBps, 1e-9);
  EXPECT_EQ(limit->name, "NVLink, 18 links of 26.562 GB/s: 478 GB/s by the model");
  point.direction = Direction::bi;
  limit = gpu_link_limit(built.node, point, places()).limit;
  ASSERT_TRUE(limit);
  EXPECT_NEAR(limit->rate_GBps, 2 * 18 * link_GBps, 1e-9);
  EXPECT_EQ(limit->name, "2 GPUs' NVLink, 18 links of 26.562 GB/s: 956 GB/s together by the model");
}

/// A reason if there is no limit, and no reason if there is one.
void expect_none(const FoundLimit& found, const std::string& words) {
  EXPECT_FALSE(found.limit);
  EXPECT_EQ(found.reason.rfind("no limit is known for ", 0), 0U) << found.reason;
  EXPECT_NE(found.reason.find(words), std::string::npos) << found.reason;
}

TEST_F(GpuLinkTest, OtherMachinesAndCollectivesThatSayNothingHaveNone) {
  add_nvlink(LinkTarget::nvswitch, 18);
  Point point;
  expect_none(gpu_link_limit(built.node, point, places(2)), "another machine");
  point.traffic = Traffic::collective;
  expect_none(gpu_link_limit(built.node, point, places()), "a collective");
}

TEST_F(GpuLinkTest, TrafficOverANetworkHasNone) {
  add_nvlink(LinkTarget::nvswitch, 18);
  auto by_pe = places();
  by_pe[0].between_gpus = false;
  by_pe[0].otherwise = "no limit is known for the proxy's way";
  expect_none(gpu_link_limit(built.node, {}, by_pe), "the proxy's way");
  const LeastTraffic exchange{10, 10, 10, false};
  expect_none(gpu_collective_limit(built.node, exchange, by_pe), "the proxy's way");
  by_pe = places();
  by_pe[1].between_gpus = false; // PE 1 sends nothing
  const FoundLimit found = gpu_link_limit(built.node, {}, by_pe);
  EXPECT_TRUE(found.limit);
  EXPECT_EQ(found.reason, "");
  expect_none(gpu_collective_limit(built.node, exchange, by_pe), "a network");
}

TEST_F(GpuLinkTest, LinksOfAGpuCountOnceForAllItsPes) {
  add_nvlink(LinkTarget::nvswitch, 18);
  Point point;
  point.traffic = Traffic::pairs; // 0 to 2, 1 to 3
  const GpuOfPe first{1, addresses[0]}, second{1, addresses[1]};
  auto limit = gpu_link_limit(built.node, point, {first, first, second, second}).limit;
  ASSERT_TRUE(limit);
  EXPECT_NEAR(limit->rate_GBps, 18 * link_GBps, 1e-9);
  EXPECT_EQ(limit->name, "NVLink, 18 links of 26.562 GB/s: 478 GB/s by the model");
}

TEST_F(GpuLinkTest, WhatReceivesLessIsTheLimit) {
  built.gpu(built.pcie_switch(built.host_bridge(0)));
  addresses.push_back(to_string(built.pci(built.node.gpus.back().pci).address));
  add_nvlink(LinkTarget::nvswitch, 18);
  Point point;
  point.traffic = Traffic::pairs;
  const auto limit =
      gpu_link_limit(built.node, point,
                     {{1, addresses[0]}, {1, addresses[1]}, {1, addresses[2]}, {1, addresses[2]}})
          .limit;
  ASSERT_TRUE(limit);
  EXPECT_NEAR(limit->rate_GBps, 18 * link_GBps, 1e-9);
}

TEST_F(GpuLinkTest, PesOfOneGpuHaveItsMemory) {
  constexpr double memory_GBps = 3352;
  const GpuOfPe first{1, addresses[0], memory_GBps}, second{1, addresses[1], memory_GBps};
  Point point;
  auto limit = gpu_link_limit(built.node, point, {first, first}).limit;
  ASSERT_TRUE(limit);
  EXPECT_TRUE(limit->of_memory);
  EXPECT_EQ(limit->rate_GBps, memory_GBps / 2);
  EXPECT_EQ(limit->name, "memory of the GPU: 3352 GB/s by clock and width, half of it for payload "
                         "that is read and written");
  point.traffic = Traffic::pairs; // 0 to 2 on the first, 1 to 3 on the second
  limit = gpu_link_limit(built.node, point, {first, second, first, second}).limit;
  ASSERT_TRUE(limit);
  EXPECT_EQ(limit->rate_GBps, memory_GBps);
  point.traffic = Traffic::all_to_all; // some of the traffic leaves the node, some does not
  add_nvlink(LinkTarget::nvswitch, 18);
  expect_none(gpu_link_limit(built.node, point, {first, second, first, second}), "partly");
  expect_none(gpu_link_limit(built.node, {}, {{1, addresses[0]}, {1, addresses[0]}}),
              "the driver does not report its clock");
}

TEST_F(GpuLinkTest, LinksOfUnknownRateAreNamedAsSuch) {
  expect_none(gpu_link_limit(built.node, {}, places()), "does not report their rate");
}

/// A heap in host memory: what a GPU reads and writes crosses its own link.
TEST_F(GpuLinkTest, AHeapOfTheHostHasTheLinksToIt) {
  auto by_pe = places();
  for (GpuOfPe& place : by_pe) {
    place.between_gpus = false;
    place.in_host_memory = true;
  }
  expect_none(gpu_link_limit(built.node, {}, by_pe), "GPU " + addresses[0] + " to the host");
  set_pcie(32, 16);
  add_nvlink(LinkTarget::nvswitch, 18); // the NVSwitch link does not lead to the target
  FoundLimit found = gpu_link_limit(built.node, {}, by_pe);
  ASSERT_TRUE(found.limit);
  EXPECT_TRUE(found.limit->to_host);
  EXPECT_NEAR(found.limit->rate_GBps, 63.0, 0.1);
  EXPECT_EQ(found.limit->name,
            "PCIe, 16 lanes of 32 GT/s to the host's memory: 63 GB/s by the model");
  Point both;
  both.direction = Direction::bi;
  found = gpu_link_limit(built.node, both, by_pe);
  ASSERT_TRUE(found.limit);
  EXPECT_NEAR(found.limit->rate_GBps, 126.0, 0.2);
  EXPECT_EQ(
      found.limit->name,
      "2 GPUs' PCIe, 16 lanes of 32 GT/s to the host's memory: 126 GB/s together by the model");
  by_pe[1].pci_address = addresses[0]; // one GPU, one link
  found = gpu_link_limit(built.node, both, by_pe);
  ASSERT_TRUE(found.limit);
  EXPECT_NEAR(found.limit->rate_GBps, 63.0, 0.1);
  const LeastTraffic traffic{30, 20, 7, false};
  found = gpu_collective_limit(built.node, traffic, by_pe);
  ASSERT_TRUE(found.limit);
  EXPECT_NEAR(found.limit->rate_GBps, 63.0, 0.1);
  EXPECT_EQ(limited_bytes(traffic, *found.limit), 30);
}

TEST_F(GpuLinkTest, AGpuThatIsLinkedToItsProcessorTakesThatLink) {
  set_pcie(32, 16);
  GpuLink c2c;
  c2c.kind = GpuLinkKind::c2c;
  c2c.target = LinkTarget::cpu;
  c2c.count = 10;
  for (Gpu& gpu : built.node.gpus)
    gpu.links.push_back(c2c);
  auto by_pe = places();
  by_pe[0].between_gpus = false;
  by_pe[0].in_host_memory = true;
  expect_none(gpu_link_limit(built.node, {}, by_pe), "does not report its rate");
  for (Gpu& gpu : built.node.gpus)
    gpu.links.back().bandwidth_GBps = known(45.0, "test");
  const FoundLimit found = gpu_link_limit(built.node, {}, by_pe);
  ASSERT_TRUE(found.limit);
  EXPECT_EQ(found.limit->rate_GBps, 450);
  EXPECT_EQ(found.limit->name, "NVLink-C2C, 10 links of 45 GB/s to the host's memory: 450 GB/s by "
                               "the model");
}

/// Copies between each PE's GPU and its host.
TEST_F(GpuLinkTest, CopiesOfTheHostHaveTheLinkOfEveryGpuOnce) {
  EXPECT_FALSE(host_link(built.node, addresses[0]));
  EXPECT_FALSE(host_link(built.node, ""));
  const auto links = [this](std::uint64_t second_machine) {
    return std::vector<HostLink>{
        {1, addresses[0], host_link(built.node, addresses[0])},
        {second_machine, addresses[1], host_link(built.node, addresses[1])}};
  };
  expect_none(host_links_limit(links(1), Direction::uni),
              "the link of GPU " + addresses[0] + " to the host's memory");
  expect_none(host_links_limit({}, Direction::uni), "nobody copies");
  set_pcie(32, 16);
  add_nvlink(LinkTarget::nvswitch, 18); // the NVSwitch link does not lead to the target
  FoundLimit found = host_links_limit({links(1)[0]}, Direction::uni);
  ASSERT_TRUE(found.limit);
  EXPECT_TRUE(found.limit->to_host);
  EXPECT_NEAR(found.limit->rate_GBps, 63.0, 0.1);
  EXPECT_EQ(found.limit->name,
            "PCIe, 16 lanes of 32 GT/s to the host's memory: 63 GB/s by the model");
  found = host_links_limit({links(1)[0]}, Direction::bi);
  ASSERT_TRUE(found.limit);
  EXPECT_NEAR(found.limit->rate_GBps, 126.0, 0.2);
  EXPECT_EQ(found.limit->name,
            "PCIe, 16 lanes of 32 GT/s to the host's memory, both ways: 126 GB/s by the model");
  for (const std::uint64_t second_machine : {1, 2}) { // each has its own model
    found = host_links_limit(links(second_machine), Direction::uni);
    ASSERT_TRUE(found.limit);
    EXPECT_NEAR(found.limit->rate_GBps, 126.0, 0.2);
    EXPECT_EQ(
        found.limit->name,
        "2 GPUs' PCIe, 16 lanes of 32 GT/s to the host's memory: 126 GB/s together by the model");
  }
  auto shared = links(1); // one GPU, one link
  shared[1] = shared[0];
  found = host_links_limit(shared, Direction::uni);
  ASSERT_TRUE(found.limit);
  EXPECT_NEAR(found.limit->rate_GBps, 63.0, 0.1);
  shared[1].machine_id = 2; // the same address on another machine
  found = host_links_limit(shared, Direction::uni);
  ASSERT_TRUE(found.limit);
  EXPECT_NEAR(found.limit->rate_GBps, 126.0, 0.2);
}

TEST_F(GpuLinkTest, ACollectiveHasTheLinksOfAllItsGpus) {
  add_nvlink(LinkTarget::nvswitch, 18);
  const LeastTraffic all{100, 50, 12, false}, root{100, 50, 12, true};
  FoundLimit found = gpu_collective_limit(built.node, all, places());
  ASSERT_TRUE(found.limit);
  EXPECT_NEAR(found.limit->rate_GBps, 2 * 18 * link_GBps, 1e-9);
  EXPECT_EQ(found.limit->name,
            "2 GPUs' NVLink, 18 links of 26.562 GB/s: 956 GB/s together by the model; the share "
            "counts the least that has to cross it");
  EXPECT_EQ(limited_bytes(all, *found.limit), 12);
  found = gpu_collective_limit(built.node, root, places());
  ASSERT_TRUE(found.limit);
  EXPECT_NEAR(found.limit->rate_GBps, 18 * link_GBps, 1e-9) << "only the root's";
  // PEs that share a GPU: its links count once.
  const GpuOfPe first{1, addresses[0], 3000}, second{1, addresses[1], 3000};
  found = gpu_collective_limit(built.node, all, {first, first, second});
  ASSERT_TRUE(found.limit);
  EXPECT_NEAR(found.limit->rate_GBps, 2 * 18 * link_GBps, 1e-9);
  EXPECT_FALSE(found.limit->of_memory);
  expect_none(gpu_collective_limit(built.node, all, places(2)), "another machine");
}

TEST_F(GpuLinkTest, ACollectiveOnOneGpuHasItsMemory) {
  const GpuOfPe only{1, addresses[0], 3352};
  const LeastTraffic traffic{100, 50, 0, true};
  const FoundLimit found = gpu_collective_limit(built.node, traffic, {only, only, only});
  ASSERT_TRUE(found.limit);
  EXPECT_TRUE(found.limit->of_memory);
  EXPECT_EQ(found.limit->rate_GBps, 3352.0 / 2);
  EXPECT_EQ(limited_bytes(traffic, *found.limit), 75);
  EXPECT_NE(found.limit->name.find("; the share counts the least that has to be read and written"),
            std::string::npos)
      << found.limit->name;
}

TEST_F(GpuLinkTest, GpusAreNumberedInTheOrderOfTheirPes) {
  const GpuOfPe first{1, "a"}, second{1, "b"}, elsewhere{2, "a"};
  EXPECT_EQ(gpu_numbers({second, first, second, elsewhere}), (std::vector<int>{0, 1, 0, 2}));
}

} // namespace

namespace {

LinkMeasurement some_measurement() {
  LinkMeasurement measured;
  measured.link.emplace();
  measured.link->stores_GBps = {369, 0, 350};
  measured.link->loads_GBps = {365, 0, 366};
  measured.link->blocks = 132;
  measured.link->threads = 1024;
  measured.link->message_bytes = 1 << 20;
  measured.link->traffic = "pairs";
  return measured;
}

TEST(MeasuredLink, AllThatSendAddUp) {
  const LinkLimit model{956, "2 GPUs' NVLink", 18};
  const auto limit = limit_of(some_measurement(), model);
  ASSERT_TRUE(limit);
  EXPECT_EQ(limit->rate_GBps, 369 + 366);
  EXPECT_EQ(limit->links, 18);
  EXPECT_EQ(limit->name, "735 GB/s measured (loads, 132 blocks of 1024 threads, messages of 1M, "
                         "pairs); 2 GPUs' NVLink");
  EXPECT_EQ(limit_of(some_measurement(), std::nullopt)->rate_GBps, 735);
}

TEST(MeasuredLink, ElseTheModelIsTheLimit) {
  const LinkLimit model{478, "NVLink: 478 GB/s by the model", 18};
  EXPECT_EQ(limit_of({std::nullopt, "there are no GPUs"}, model)->name, model.name);
  LinkMeasurement nobody = some_measurement();
  nobody.link->stores_GBps = nobody.link->loads_GBps = {0, 0, 0};
  EXPECT_EQ(limit_of(nobody, model)->rate_GBps, 478);
  EXPECT_FALSE(limit_of({std::nullopt, "there are no GPUs"}, std::nullopt));
}

} // namespace

} // namespace shmemctl::bench
