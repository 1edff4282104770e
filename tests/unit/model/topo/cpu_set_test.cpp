#include "src/model/topo/cpus.h"

#include <gtest/gtest.h>
#include <random>
#include <set>

namespace shmemctl {
namespace {

std::string list_of_map(const char* map) {
  const std::optional<CpuSet> cpus = parse_cpumap(map);
  return cpus ? format_cpulist(*cpus) : "nothing";
}

TEST(CpuSet, KeepsRangesApart) {
  CpuSet cpus{4, 2, 0};
  EXPECT_EQ(cpus.ranges(), (std::vector<CpuSet::Range>{{0, 0}, {2, 2}, {4, 4}}));
  cpus.add(1);
  EXPECT_EQ(cpus.ranges(), (std::vector<CpuSet::Range>{{0, 2}, {4, 4}}));
  cpus.add(CpuSet{9, 3});
  EXPECT_EQ(cpus.ranges(), (std::vector<CpuSet::Range>{{0, 4}, {9, 9}}));
  EXPECT_EQ(cpus.cpus(), (std::vector<int>{0, 1, 2, 3, 4, 9}));
  EXPECT_EQ(cpus.first(), 0);
  EXPECT_EQ(cpus.last(), 9);
}

TEST(CpuSet, LeavesOutWhatNoCpuIsCalled) {
  CpuSet cpus;
  cpus.add(-5, 1);
  cpus.add(7, 6);
  cpus.add(max_cpus - 1, 2'000'000'000);
  cpus.add(max_cpus);
  EXPECT_EQ(cpus, (CpuSet{0, 1, max_cpus - 1}));
}

TEST(CpuSet, IsTheSameAsASetOfNumbers) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    CpuSet cpus;
    std::set<int> expected;
    for (int step = 0; step < 30; ++step) {
      const int first = static_cast<int>(random() % 200);
      const int last = first + static_cast<int>(random() % 6);
      cpus.add(first, last);
      for (int cpu = first; cpu <= last; ++cpu)
        expected.insert(cpu);
    }
    EXPECT_EQ(cpus.cpus(), std::vector<int>(expected.begin(), expected.end()));
    for (int cpu = -1; cpu < 210; ++cpu)
      ASSERT_EQ(cpus.contains(cpu), expected.count(cpu) != 0) << cpu;
    for (std::size_t i = 1; i < cpus.ranges().size(); ++i)
      ASSERT_LT(cpus.ranges()[i - 1].last + 1, cpus.ranges()[i].first);
  }
}

TEST(CpuSet, Intersections) {
  const CpuSet left = *parse_cpulist("0-7,16-23"), right = *parse_cpulist("4-17,23");
  EXPECT_EQ(format_cpulist(intersection(left, right)), "4-7,16-17,23");
  EXPECT_EQ(intersection(left, right), intersection(right, left));
  EXPECT_TRUE(intersection(left, {}).empty());
}

TEST(CpuSet, ReadsAndWritesCpulists) {
  EXPECT_EQ(parse_cpulist("0-2,8,4-5"), (CpuSet{0, 1, 2, 4, 5, 8}));
  EXPECT_EQ(parse_cpulist(""), CpuSet{});
  EXPECT_EQ(format_cpulist({0, 1, 2, 4, 5, 8}), "0-2,4-5,8");
  EXPECT_EQ(format_cpulist({}), "");
  EXPECT_EQ(format_cpulist(*parse_cpulist("0-15,64-79\n")), "0-15,64-79");
  EXPECT_EQ(format_cpulist(*parse_cpulist("4,3,1-2,2-2,8-9,9")), "1-4,8-9");
  EXPECT_EQ(format_cpulist(*parse_cpulist("16383")), "16383");
  for (const char* bad : {",", "1,", "2-1", "-1", "1-", "a", "1-2-3", "0,,1", "+1", "0-16384",
                          "0-99999999999", "99999"})
    EXPECT_EQ(parse_cpulist(bad), std::nullopt) << bad;
  std::string endless = "0";
  for (int i = 0; i < 100'000; ++i)
    endless += ",0";
  EXPECT_EQ(parse_cpulist(endless), std::nullopt);
}

TEST(CpuSet, ReadsAndWritesCpumaps) {
  EXPECT_EQ(list_of_map("ff"), "0-7");
  EXPECT_EQ(list_of_map("c0c0"), "6-7,14-15");
  EXPECT_EQ(list_of_map("5555"), "0,2,4,6,8,10,12,14");
  EXPECT_EQ(list_of_map("00000000,000fffff"), "0-19");
  EXPECT_EQ(list_of_map("1,00000000"), "32");
  EXPECT_EQ(list_of_map("00000001,80000000\n"), "31-32");
  EXPECT_EQ(list_of_map("0000,00000000,000000ff,ff000000,00000000,00000000"), "88-103");
  EXPECT_EQ(list_of_map("0"), "");
  EXPECT_EQ(list_of_map("0,0"), "");
  for (const char* bad : {"", ",", "g", "xyz", "0x1", "123456789", "1,,1", "ff,", "-1"})
    EXPECT_EQ(parse_cpumap(bad), std::nullopt) << bad;
  EXPECT_EQ(format_cpumap(*parse_cpulist("0-3,32-47")), "0000ffff,0000000f");
  EXPECT_EQ(format_cpumap({}), "00000000");
  for (const char* list : {"0", "0-15,64-79", "1,3,5,7", "96-127", "16383"})
    EXPECT_EQ(parse_cpumap(format_cpumap(*parse_cpulist(list))), parse_cpulist(list)) << list;
}

TEST(CpuSet, ReadsAndWritesHwlocBitmaps) {
  EXPECT_EQ(parse_hwloc_bitmap("0x00000001,,0x80000003"), (CpuSet{0, 1, 31, 64}));
  EXPECT_EQ(parse_hwloc_bitmap("0x0"), CpuSet{});
  EXPECT_EQ(format_hwloc_bitmap({0, 1, 31, 64}), "0x00000001,0x00000000,0x80000003");
  EXPECT_EQ(format_hwloc_bitmap({}), "0x0");
  for (const char* bad : {"0xf...f", "0x1ffffffff", "x", "", "-1", "0x1 "})
    EXPECT_EQ(parse_hwloc_bitmap(bad), std::nullopt) << bad;
}

TEST(CpuSet, RefusesMapsThatAreTooWide) {
  EXPECT_EQ(parse_hwloc_bitmap("0x1" + std::string(511, ',')), CpuSet{16352});
  EXPECT_EQ(parse_hwloc_bitmap("0x1" + std::string(512, ',')), std::nullopt);
  EXPECT_EQ(parse_hwloc_bitmap(std::string(100000, ',')), std::nullopt);
  std::string wide = "00000001";
  for (int word = 0; word < 512; ++word)
    wide += ",00000000";
  EXPECT_EQ(parse_cpumap(wide), std::nullopt);
  wide.replace(0, 8, "00000000");
  EXPECT_EQ(parse_cpumap(wide), CpuSet{}); // the kernel writes as many words as it was built for
}

} // namespace
} // namespace shmemctl
