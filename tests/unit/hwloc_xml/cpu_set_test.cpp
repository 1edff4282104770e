#include "src/topo/cpu_set.h"

#include <gtest/gtest.h>

namespace shmemctl {

TEST(CpuSet, ReadsAndWritesLinuxLists) {
  EXPECT_EQ(parse_cpu_set("0-2,8,4-5"), (CpuSet{0, 1, 2, 4, 5, 8}));
  EXPECT_EQ(parse_cpu_set(""), CpuSet{});
  EXPECT_EQ(format_cpu_set({0, 1, 2, 4, 5, 8}), "0-2,4-5,8");
  for (const char* bad : {"1-", "-1", "2-1", "1-2-3", "x", "0,,1", "99999", "0-99999999999"})
    EXPECT_EQ(parse_cpu_set(bad), std::nullopt) << bad;
}

TEST(CpuSet, ReadsAndWritesHwlocBitmaps) {
  EXPECT_EQ(parse_hwloc_bitmap("0x00000001,,0x80000003"), (CpuSet{0, 1, 31, 64}));
  EXPECT_EQ(parse_hwloc_bitmap("0x0"), CpuSet{});
  EXPECT_EQ(format_hwloc_bitmap({0, 1, 31, 64}), "0x00000001,0x00000000,0x80000003");
  EXPECT_EQ(format_hwloc_bitmap({}), "0x0");
  for (const char* bad : {"0xf...f", "0x1ffffffff", "x", "", "-1", "0x1 "})
    EXPECT_EQ(parse_hwloc_bitmap(bad), std::nullopt) << bad;
  EXPECT_EQ(parse_hwloc_bitmap("0x1" + std::string(600, ',')), std::nullopt); // CPU 19200
  EXPECT_EQ(parse_hwloc_bitmap(std::string(100000, ',')), std::nullopt);
}

} // namespace shmemctl
