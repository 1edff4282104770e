#include "src/instruments/fabric/schedule.h"

#include <algorithm>
#include <set>
#include <utility>

#include <gtest/gtest.h>

#include "tests/unit/instruments/fabric/simulated_network.h"

namespace shmemctl::fabric {
namespace {

std::set<std::pair<int, int>> all_pairs(const Schedule& schedule) {
  std::set<std::pair<int, int>> pairs;
  for (int number = 0; number < schedule.rounds(); ++number)
    for (const Pairing& pair : schedule.round(number))
      EXPECT_TRUE(pairs.emplace(pair.first, pair.second).second)
          << pair.first << " and " << pair.second << " meet twice";
  return pairs;
}

TEST(FabricSchedule, EveryPairOfHostsMeetsOnceOnEveryRail) {
  for (const int hosts : {2, 3, 4, 5, 8, 31, 32, 33})
    for (const int rails : {1, 2, 8}) {
      const std::vector<Endpoint> endpoints = grid(hosts, rails);
      const Schedule schedule(endpoints, false);
      std::set<std::pair<int, int>> expected;
      for (int a = 0; a < hosts * rails; ++a)
        for (int b = a + 1; b < hosts * rails; ++b)
          if (a % rails == b % rails)
            expected.emplace(a, b);
      EXPECT_EQ(all_pairs(schedule), expected) << hosts << " hosts, " << rails << " rails";
      EXPECT_EQ(schedule.pairs(), expected.size());
    }
}

TEST(FabricSchedule, AcrossRailsEveryNicMeetsEveryNicOfEveryOtherHost) {
  for (const int hosts : {2, 3, 6, 7})
    for (const int rails : {1, 2, 3, 4}) {
      const Schedule schedule(grid(hosts, rails), true);
      std::set<std::pair<int, int>> expected;
      for (int a = 0; a < hosts * rails; ++a)
        for (int b = a + 1; b < hosts * rails; ++b)
          if (a / rails != b / rails)
            expected.emplace(a, b);
      EXPECT_EQ(all_pairs(schedule), expected) << hosts << " hosts, " << rails << " rails";
    }
}

TEST(FabricSchedule, PartnersAgreeAndAreDisjoint) {
  for (const bool cross : {false, true}) {
    const std::vector<Endpoint> endpoints = grid(9, 3);
    const Schedule schedule(endpoints, cross);
    for (int round = 0; round < schedule.rounds(); ++round) {
      int resting = 0;
      for (int pe = 0; pe < static_cast<int>(endpoints.size()); ++pe) {
        const int other = schedule.partner(pe, round);
        if (other < 0) {
          ++resting;
          continue;
        }
        EXPECT_EQ(schedule.partner(other, round), pe);
        EXPECT_NE(endpoints[static_cast<std::size_t>(pe)].host,
                  endpoints[static_cast<std::size_t>(other)].host);
      }
      EXPECT_EQ(resting, 3) << "one host of nine rests, with its three NICs";
    }
  }
}

TEST(FabricSchedule, RoundsGrowWithTheHostsNotWithTheirPairs) {
  EXPECT_EQ(Schedule(grid(1024, 1), false).rounds(), 1023);
  EXPECT_EQ(Schedule(grid(1024, 8), false).rounds(), 1023);
  EXPECT_EQ(Schedule(grid(1023, 1), false).rounds(), 1023);
  EXPECT_EQ(Schedule(grid(64, 8), true).rounds(), 63 * 8);
  EXPECT_EQ(Schedule(grid(1, 8), true).rounds(), 0);
  EXPECT_EQ(Schedule(grid(1, 8), true).partner(0, 0), -1);
}

TEST(FabricSchedule, HostsMayHaveUnequalNumbersOfNics) {
  const std::vector<Endpoint> endpoints = {{0, 0}, {0, 1}, {0, 2}, {1, 0}, {2, 0}, {2, 1}};
  const std::set<std::pair<int, int>> along = {{0, 3}, {0, 4}, {1, 5}, {3, 4}};
  EXPECT_EQ(all_pairs(Schedule(endpoints, false)), along);
  const std::set<std::pair<int, int>> across = {{0, 3}, {1, 3}, {2, 3}, {0, 4}, {1, 4}, {2, 4},
                                                {0, 5}, {1, 5}, {2, 5}, {3, 4}, {3, 5}};
  EXPECT_EQ(all_pairs(Schedule(endpoints, true)), across);
}

TEST(FabricSchedule, RoundRobinPlacementIsNoDifference) {
  // PE i is on host i mod 3.
  const std::vector<Endpoint> endpoints = {{0, 0}, {1, 0}, {2, 0}, {0, 1}, {1, 1}, {2, 1}};
  const std::set<std::pair<int, int>> expected = {{0, 1}, {0, 2}, {1, 2}, {3, 4}, {3, 5}, {4, 5}};
  EXPECT_EQ(all_pairs(Schedule(endpoints, false)), expected);
}

TEST(FabricEffort, AThousandHostsTakeTwoMinutesOfLinkTime) {
  const Effort effort = effort_for(1023, default_budget_s, false);
  EXPECT_LE(link_time_s(effort, 1023), default_budget_s);
  EXPECT_GE(link_time_s(effort, 1023), default_budget_s / 2) << "the budget is made use of";
  EXPECT_GE(effort.slot_s, 0.02) << "long enough for dozens of megabyte messages at 400 Gb/s";
  EXPECT_EQ(effort.passes, 1);
  EXPECT_LE(link_time_s(effort_for(1023, quick_budget_s, true), 1023), quick_budget_s);
  EXPECT_LE(link_time_s(effort_for(1023 * 8, default_budget_s, false), 1023 * 8), default_budget_s);
}

TEST(FabricEffort, SmallJobsAreMeasuredSeveralTimes) {
  const Effort effort = effort_for(3, default_budget_s, false);
  EXPECT_EQ(effort.passes, 5);
  EXPECT_DOUBLE_EQ(effort.slot_s, 0.05);
  EXPECT_LE(link_time_s(effort, 3), 10);
  const Effort quick = effort_for(3, quick_budget_s, true);
  EXPECT_LT(link_time_s(quick, 3), link_time_s(effort, 3));
  EXPECT_GE(quick.passes, 2);
}

} // namespace
} // namespace shmemctl::fabric
