#include "src/bench/gpu_link.h"

#include <gtest/gtest.h>

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
    for (const Gpu& gpu : built.node.gpus) // at rest
      built.link(gpu.pci, 2.5, width, speed_GTps, width);
  }
  std::vector<GpuSeatPlace> places(std::uint64_t second_machine = 1) const {
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
  auto limit = gpu_link_limit(built.node, point, places());
  ASSERT_TRUE(limit);
  EXPECT_NEAR(limit->rate_GBps, 18 * link_GBps, 1e-9);
  EXPECT_EQ(limit->name, "NVLink, 18 links of 26.562 GB/s: 478 GB/s by the model");
  point.direction = Direction::bi;
  limit = gpu_link_limit(built.node, point, places());
  ASSERT_TRUE(limit);
  EXPECT_NEAR(limit->rate_GBps, 2 * 18 * link_GBps, 1e-9);
  EXPECT_EQ(limit->name, "2 GPUs' NVLink, 18 links of 26.562 GB/s: 956 GB/s together by the model");
}

TEST_F(GpuLinkTest, CollectivesAndOtherMachinesHaveNone) {
  add_nvlink(LinkTarget::nvswitch, 18);
  Point point;
  EXPECT_FALSE(gpu_link_limit(built.node, point, places(2)));
  point.traffic = Traffic::collective;
  EXPECT_FALSE(gpu_link_limit(built.node, point, places()));
}

TEST_F(GpuLinkTest, TrafficOverANetworkHasNone) {
  add_nvlink(LinkTarget::nvswitch, 18);
  auto by_pe = places();
  by_pe[0].between_gpus = false;
  EXPECT_FALSE(gpu_link_limit(built.node, {}, by_pe));
  by_pe = places();
  by_pe[1].between_gpus = false; // it sends nothing
  EXPECT_TRUE(gpu_link_limit(built.node, {}, by_pe));
}

TEST_F(GpuLinkTest, LinksOfAGpuCountOnceForAllItsPes) {
  add_nvlink(LinkTarget::nvswitch, 18);
  Point point;
  point.traffic = Traffic::pairs; // 0 to 2, 1 to 3
  const GpuSeatPlace first{1, addresses[0]}, second{1, addresses[1]};
  auto limit = gpu_link_limit(built.node, point, {first, first, second, second});
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
                     {{1, addresses[0]}, {1, addresses[1]}, {1, addresses[2]}, {1, addresses[2]}});
  ASSERT_TRUE(limit);
  EXPECT_NEAR(limit->rate_GBps, 18 * link_GBps, 1e-9);
}

TEST_F(GpuLinkTest, PesOfOneGpuHaveItsMemory) {
  constexpr double memory_GBps = 3352;
  const GpuSeatPlace first{1, addresses[0], memory_GBps}, second{1, addresses[1], memory_GBps};
  Point point;
  auto limit = gpu_link_limit(built.node, point, {first, first});
  ASSERT_TRUE(limit);
  EXPECT_TRUE(limit->of_memory);
  EXPECT_EQ(limit->rate_GBps, memory_GBps / 2);
  EXPECT_EQ(limit->name, "memory of the GPU: 3352 GB/s by clock and width, half of it for payload "
                         "that is read and written");
  point.traffic = Traffic::pairs; // 0 to 2 on the first, 1 to 3 on the second
  limit = gpu_link_limit(built.node, point, {first, second, first, second});
  ASSERT_TRUE(limit);
  EXPECT_EQ(limit->rate_GBps, memory_GBps);
  point.traffic = Traffic::all_to_all; // some of it leaves, some does not
  add_nvlink(LinkTarget::nvswitch, 18);
  EXPECT_FALSE(gpu_link_limit(built.node, point, {first, second, first, second}));
  EXPECT_FALSE(gpu_link_limit(built.node, {}, {{1, addresses[0]}, {1, addresses[0]}}))
      << "the driver does not tell its clock";
}

} // namespace
} // namespace shmemctl::bench
