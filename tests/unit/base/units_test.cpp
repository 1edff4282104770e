#include "src/base/units.h"

#include <gtest/gtest.h>

namespace shmemctl {

TEST(Units, SizesArePowersOf1024) {
  EXPECT_EQ(parse_size_bytes("8"), 8U);
  EXPECT_EQ(parse_size_bytes("4K"), 4096U);
  EXPECT_EQ(parse_size_bytes("2m"), 2U << 20);
  EXPECT_EQ(parse_size_bytes("1.5G"), 1610612736U);
  EXPECT_EQ(parse_size_bytes("1GiB"), 1U << 30);
  EXPECT_EQ(parse_size_bytes("9007199254740993"), 9007199254740993ULL) << "exact past 2^53";
  for (const char* text : {"", "K", "-1", "1X", "1 K K", "99999999999T", "nan", "0x10", "1e400"})
    EXPECT_EQ(parse_size_bytes(text), std::nullopt) << text;
}

TEST(Units, DurationsHaveALetter) {
  EXPECT_EQ(parse_duration_s("90"), 90);
  EXPECT_EQ(parse_duration_s("90s"), 90);
  EXPECT_EQ(parse_duration_s("500ms"), 0.5);
  EXPECT_EQ(parse_duration_s("1.5m"), 90);
  EXPECT_EQ(parse_duration_s(" 8h "), 28800);
  EXPECT_EQ(parse_duration_s("2d"), 172800);
  for (const char* text :
       {"", "s", "ms", "1us", "-1ms", "-1", "1w", "1hh", "nan", "inf", "1e400", "1h30m"})
    EXPECT_EQ(parse_duration_s(text), std::nullopt) << text;
}

TEST(Units, FormattedSizesReadBack) {
  for (std::uint64_t size : {0ULL, 1ULL, 1000ULL, 1024ULL, 1536ULL, 1ULL << 40, 3ULL << 50})
    EXPECT_EQ(parse_size_bytes(format_size_bytes(size)), size);
  EXPECT_EQ(format_size_bytes(4096), "4K");
}

TEST(Units, PcieBandwidthCountsLineCoding) {
  EXPECT_NEAR(pcie_bandwidth_GBps(32, 16), 63.02, 0.01);
  EXPECT_NEAR(pcie_bandwidth_GBps(2.5, 1), 0.25, 1e-9);
}

TEST(Units, LinkSpeedsOfKernelAndNccl) {
  EXPECT_EQ(parse_link_speed_GTps("32.0 GT/s PCIe"), 32.0);
  EXPECT_EQ(parse_link_speed_GTps("8 GT/s"), 8.0);
  EXPECT_EQ(parse_link_speed_GTps("2.5 GT/s PCIe\n"), 2.5);
  for (const char* text : {"", "Unknown", "Unknown speed", "0", "x GT/s", "-8 GT/s", "0 GT/s"})
    EXPECT_EQ(parse_link_speed_GTps(text), std::nullopt) << text;
}

} // namespace shmemctl
