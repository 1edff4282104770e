// NVLink's counters: read from the fake NVML, and the difference of two readings.
#include <gtest/gtest.h>

#include "src/model/topo/readers/nvml.h"
#include "tests/support/set_variable.h"
#include "tests/support/temporary_folder.h"

namespace shmemctl {
namespace {

constexpr const char* address = "0000:18:00.0";
/// A GPU whose links 0 and 2 are active; 1 is down.
constexpr const char* gpu_with_links = "gpu 0 00000000:18:00.0 GPU-0 NVIDIA H100 80GB HBM3\n"
                                       "links 0 0 3 2 -\ndown 0 1\n";

class NvlinkCountersTest : public ::testing::Test {
protected:
  void write(const std::string& text) { folder_.write("nvml.txt", text); }
  Nvml open() {
    std::string why;
    std::optional<Nvml> nvml = Nvml::open(SHMEMCTL_FAKE_NVML, why);
    if (!nvml)
      throw std::runtime_error(why);
    return std::move(*nvml);
  }
  NvlinkCounters read(const std::string& text) {
    write(text);
    return open().nvlink_counters(address);
  }
  NvlinkTraffic between(const std::string& before, const std::string& after) {
    write(gpu_with_links + before);
    const Nvml nvml = open();
    const NvlinkCounters first = nvml.nvlink_counters(address);
    write(gpu_with_links + after);
    return nvlink_traffic(first, nvml.nvlink_counters(address));
  }

  TemporaryFolder folder_;
  test::SetVariable config_{"FAKE_NVML_CONFIG", folder_.path() + "/nvml.txt"};
};

TEST_F(NvlinkCountersTest, EachActiveLinkHasBothDirections) {
  const NvlinkCounters counters =
      read(std::string(gpu_with_links) + "counter 0 0 5000000000 7\ncounter 0 1 1 1\n"
                                         "counter 0 2 11 13\nsums 0 5000000011 20\n");
  EXPECT_EQ(counters.problem, "");
  ASSERT_EQ(counters.links.size(), 2U) << "one that is down carries nothing";
  EXPECT_EQ(counters.links[0].link, 0U);
  EXPECT_EQ(counters.links[0].sent_KiB.value, 5000000000U) << "beyond 32 bits";
  EXPECT_EQ(counters.links[0].received_KiB.value, 7U);
  EXPECT_EQ(counters.links[1].link, 2U);
  EXPECT_EQ(counters.links[1].sent_KiB.value, 11U);
  EXPECT_EQ(counters.links[1].received_KiB.value, 13U);
  EXPECT_EQ(counters.sent_KiB.value, 5000000011U);
  EXPECT_EQ(counters.received_KiB.value, 20U);
  EXPECT_EQ(counters.links[0].sent_KiB.origin, "NVML: nvmlDeviceGetFieldValues(138)");
  EXPECT_EQ(counters.links[0].received_KiB.origin, "NVML: nvmlDeviceGetFieldValues(139)");
}

TEST_F(NvlinkCountersTest, ALinkWithoutACounterSaysSo) {
  const NvlinkCounters counters = read(std::string(gpu_with_links) + "counter 0 0 5 -\n");
  ASSERT_EQ(counters.links.size(), 2U);
  EXPECT_EQ(counters.links[0].sent_KiB.value, 5U);
  EXPECT_FALSE(counters.links[0].received_KiB);
  EXPECT_EQ(counters.links[0].received_KiB.origin, "nvmlDeviceGetFieldValues(139): Not Supported");
  EXPECT_EQ(counters.links[1].sent_KiB.origin, "nvmlDeviceGetFieldValues(138): Not Supported");
}

TEST_F(NvlinkCountersTest, WhyThereAreNone) {
  const std::string card = "gpu 0 00000000:18:00.0 GPU-0 NVIDIA H100 PCIe\n";
  EXPECT_EQ(read(card).problem, "the GPU has no NVLink");
  EXPECT_EQ(read(card + "links 0 0 2 2 -\ndown 0 0\ndown 0 1\n").problem,
            "none of its 2 NVLinks is active");
  EXPECT_EQ(read(card + "links 0 0 2 2 -\nmig 0\n").problem,
            "nvmlDeviceGetNvLinkState: Not Supported (MIG is enabled)");
  EXPECT_EQ(read("").problem, "nvmlDeviceGetHandleByPciBusId_v2: Not Found");
  EXPECT_EQ(read(std::string(gpu_with_links) + "fail nvmlDeviceGetNvLinkState 15\n").problem,
            "nvmlDeviceGetNvLinkState: GPU is lost");
  const NvlinkCounters forbidden =
      read(std::string(gpu_with_links) + "counter 0 0 1 1\nfail nvmlDeviceGetFieldValues 4\n");
  ASSERT_EQ(forbidden.links.size(), 2U);
  EXPECT_EQ(forbidden.links[0].sent_KiB.origin,
            "nvmlDeviceGetFieldValues: Insufficient Permissions");
}

TEST_F(NvlinkCountersTest, TwoReadingsTellWhatWasMoved) {
  const NvlinkTraffic traffic = between("counter 0 0 100 200\ncounter 0 2 300 400\n",
                                        "counter 0 0 101 220\ncounter 0 2 303 400\n");
  ASSERT_EQ(traffic.links.size(), 2U);
  EXPECT_EQ(traffic.links[0].link, 0U);
  EXPECT_EQ(traffic.links[0].out_bytes.value, 1024U);
  EXPECT_EQ(traffic.links[0].in_bytes.value, 20 * 1024U);
  EXPECT_EQ(traffic.links[1].link, 2U);
  EXPECT_EQ(traffic.links[1].out_bytes.value, 3 * 1024U);
  EXPECT_EQ(traffic.links[1].in_bytes.value, 0U);
  EXPECT_EQ(traffic.out_bytes.value, 4 * 1024U);
  EXPECT_EQ(traffic.in_bytes.value, 20 * 1024U);
}

TEST_F(NvlinkCountersTest, ADecreasingCounterIsUnknown) {
  const NvlinkTraffic traffic = between("counter 0 0 100 200\ncounter 0 2 300 400\n",
                                        "counter 0 0 99 220\ncounter 0 2 303 401\n");
  ASSERT_EQ(traffic.links.size(), 2U);
  EXPECT_FALSE(traffic.links[0].out_bytes);
  EXPECT_EQ(traffic.links[0].out_bytes.origin, "went back from 100 to 99 KiB: it was reset");
  EXPECT_EQ(traffic.links[1].out_bytes.value, 3 * 1024U) << "the others still count";
  EXPECT_FALSE(traffic.out_bytes) << "a sum without one of its parts is none";
  EXPECT_EQ(traffic.out_bytes.origin, "NVLink 0: went back from 100 to 99 KiB: it was reset");
  EXPECT_EQ(traffic.in_bytes.value, 21 * 1024U);
  EXPECT_FALSE(between("counter 0 0 1 1\ncounter 0 2 1 1\n",
                       "counter 0 0 9223372036854775807 1\ncounter 0 2 1 1\n")
                   .out_bytes)
      << "garbage";
}

TEST_F(NvlinkCountersTest, WhatOneReadingLacksIsUnknown) {
  const NvlinkTraffic traffic =
      between("counter 0 0 1 1\ncounter 0 2 - 1\n", "counter 0 0 2 2\ncounter 0 2 5 5\n");
  EXPECT_EQ(traffic.out_bytes.origin, "NVLink 2: nvmlDeviceGetFieldValues(138): Not Supported");
  EXPECT_EQ(traffic.in_bytes.value, 5 * 1024U);
}

TEST_F(NvlinkCountersTest, ALinkThatWentDownLeavesTheSumUnknown) {
  const auto one = [](unsigned link, std::uint64_t KiB) {
    return NvlinkCounter{link, known(KiB, "test"), known(KiB, "test")};
  };
  const NvlinkCounters both{{one(0, 1), one(1, 1)}, {}, {}, ""};
  const NvlinkTraffic down = nvlink_traffic(both, {{one(1, 3)}, {}, {}, ""});
  ASSERT_EQ(down.links.size(), 2U);
  EXPECT_EQ(down.out_bytes.origin, "NVLink 0: became inactive between the readings");
  EXPECT_EQ(down.links[1].in_bytes.value, 2 * 1024U);
  EXPECT_EQ(nvlink_traffic({{one(1, 3)}, {}, {}, ""}, both).in_bytes.origin,
            "NVLink 0: became active between the readings");
  const NvlinkTraffic none = nvlink_traffic(both, {{}, {}, {}, "nvmlX: GPU is lost"});
  EXPECT_TRUE(none.links.empty());
  EXPECT_EQ(none.out_bytes.origin, "nvmlX: GPU is lost");
  EXPECT_EQ(none.in_bytes.origin, "nvmlX: GPU is lost");
}

/// A driver that reports the sum of all links for each link would make all of them too high.
TEST_F(NvlinkCountersTest, SumsThatDisagreeAreNoNumber) {
  const NvlinkTraffic traffic =
      between("counter 0 0 0 0\ncounter 0 2 0 0\nsums 0 0 0\n",
              "counter 0 0 5000 10\ncounter 0 2 5000 10\nsums 0 5000 21\n");
  EXPECT_FALSE(traffic.out_bytes);
  EXPECT_EQ(traffic.out_bytes.origin,
            "the sum of 2 NVLink counters is 10000 KiB, the driver's total is 5000 KiB");
  EXPECT_EQ(traffic.in_bytes.value, 20 * 1024U) << "less than a step of each link";
  const NvlinkTraffic without = between("counter 0 0 0 0\ncounter 0 2 0 0\nsums 0 - 7\n",
                                        "counter 0 0 5000 10\ncounter 0 2 5000 10\nsums 0 - 6\n");
  EXPECT_EQ(without.out_bytes.value, 10000 * 1024U) << "a driver without a sum";
  EXPECT_EQ(without.in_bytes.value, 20 * 1024U);
}

} // namespace
} // namespace shmemctl
