#include "src/instruments/fabric/patterns.h"

#include <map>
#include <set>

#include <gtest/gtest.h>

#include "tests/unit/instruments/fabric/simulated_network.h"

namespace shmemctl::fabric {
namespace {

TEST(FabricPatterns, InIncastEachPeReceivesOnceFromItsGroup) {
  for (const int hosts : {2, 5, 9, 20}) {
    const PatternPlan plan(grid(hosts, 2), Pattern::incast);
    std::map<int, std::set<int>> senders;
    for (int round = 0; round < plan.rounds(); ++round) {
      std::set<int> targets;
      for (int pe = 0; pe < 2 * hosts; ++pe)
        for (const int target : plan.targets(pe, round)) {
          EXPECT_EQ(target % 2, pe % 2) << "of one rail";
          EXPECT_NE(target, pe);
          senders[target].insert(pe);
          targets.insert(target);
        }
      for (const int target : targets)
        EXPECT_TRUE(plan.targets(target, round).empty()) << "a target sends nothing";
    }
    for (const auto& [target, from] : senders)
      EXPECT_LE(from.size(), static_cast<std::size_t>(PatternPlan::max_senders));
    const std::size_t alone = hosts % (PatternPlan::max_senders + 1) == 1 ? 2 : 0;
    EXPECT_EQ(senders.size(), static_cast<std::size_t>(2 * hosts) - alone);
    EXPECT_LE(plan.rounds(), PatternPlan::max_senders + 1);
  }
}

TEST(FabricPatterns, AllToAllReachesAllOfTheRail) {
  const PatternPlan plan(grid(6, 2), Pattern::all_to_all);
  EXPECT_EQ(plan.rounds(), 1);
  EXPECT_EQ(plan.targets(0, 0), (std::vector<int>{2, 4, 6, 8, 10}));
  EXPECT_EQ(plan.targets(7, 0), (std::vector<int>{9, 11, 1, 3, 5}));
}

TEST(FabricPatterns, RatesOfIncastAreThoseOfTheReceiver) {
  const PatternPlan plan(grid(3, 1), Pattern::incast);
  const std::vector<PatternRate> rates =
      rates_of(plan, Pattern::incast, 3, {{0, 2, 3}, {4, 0, 4}, {1, 1, 0}});
  ASSERT_EQ(rates.size(), 3U);
  EXPECT_DOUBLE_EQ(rates[0].GBps, 5);
  EXPECT_EQ(rates[0].senders, 2);
  EXPECT_DOUBLE_EQ(rates[1].GBps, 8);
  EXPECT_DOUBLE_EQ(rates[2].GBps, 2);
  const PatternPlan all(grid(3, 1), Pattern::all_to_all);
  EXPECT_DOUBLE_EQ(rates_of(all, Pattern::all_to_all, 3, {{7, 8, 9}})[2].GBps, 9);
}

std::vector<PatternRate> run(const std::vector<double>& rates) {
  std::vector<PatternRate> list;
  for (std::size_t pe = 0; pe < rates.size(); ++pe)
    list.push_back({static_cast<int>(pe), rates[pe], 4});
  return list;
}

TEST(FabricPatterns, SlowInEachRunIsSlow) {
  const std::vector<PatternRate> sound = run({40, 41, 42, 40, 41}),
                                 slow = run({40, 20, 42, 40, 41});
  const std::vector<SlowUnderLoad> found = slow_under_load(Pattern::incast, {slow, slow});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].pe, 1);
  EXPECT_DOUBLE_EQ(found[0].GBps, 20);
  EXPECT_NEAR(found[0].peers_GBps, 40, 1);
  EXPECT_TRUE(slow_under_load(Pattern::incast, {slow, sound}).empty()) << "once is noise";
  EXPECT_TRUE(slow_under_load(Pattern::incast, {sound, sound}).empty());
  EXPECT_TRUE(slow_under_load(Pattern::incast, {run({40, 20, 30}), run({40, 20, 30})}).empty())
      << "three are too few to tell what is usual";
  EXPECT_TRUE(
      slow_under_load(Pattern::incast, {run({10, 20, 40, 80, 160}), run({10, 20, 40, 80, 160})})
          .empty())
      << "all differ";
}

} // namespace
} // namespace shmemctl::fabric
