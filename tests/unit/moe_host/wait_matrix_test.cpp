// What a wait matrix says: column, row, cell, or nothing.
#include <gtest/gtest.h>

#include "src/bench/moe/wait_matrix.h"

namespace shmemctl::moe {
namespace {

WaitMatrix even(int n, double wait_us) {
  WaitMatrix waits(static_cast<std::size_t>(n),
                   std::vector<double>(static_cast<std::size_t>(n), wait_us));
  for (std::size_t i = 0; i < waits.size(); ++i)
    waits[i][i] = 1e6; // what a rank waits for itself says nothing
  return waits;
}

TEST(WaitMatrix, AnEvenOneNamesNobody) {
  EXPECT_TRUE(judge_waits(even(4, 10), 100).empty());
  EXPECT_TRUE(judge_waits(even(1, 10), 100).empty());
  EXPECT_TRUE(judge_waits({}, 100).empty());
}

TEST(WaitMatrix, AColumnIsASlowRank) {
  WaitMatrix waits = even(4, 10);
  for (const std::size_t i : {0U, 1U, 3U})
    waits[i][2] = 300 + static_cast<double>(i);
  const auto verdicts = judge_waits(waits, 500);
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].culprit, Culprit::rank);
  EXPECT_EQ(verdicts[0].awaited, 2);
  EXPECT_EQ(describe(verdicts[0]),
            "PE 2 is slow: the others wait 301 us for it, and 10 us for each other");
}

TEST(WaitMatrix, ARowIsASlowReceiver) {
  WaitMatrix waits = even(4, 10);
  for (const std::size_t j : {0U, 2U, 3U})
    waits[1][j] = 200;
  const auto verdicts = judge_waits(waits, 500);
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].culprit, Culprit::receiver);
  EXPECT_EQ(verdicts[0].waiting, 1);
  EXPECT_NE(describe(verdicts[0]).find("PE 1 receives slowly"), std::string::npos);
}

TEST(WaitMatrix, ACellIsASlowLink) {
  for (const int n : {3, 4, 8}) {
    WaitMatrix waits = even(n, 10);
    waits[2][0] = 900;
    const auto verdicts = judge_waits(waits, 1000);
    ASSERT_EQ(verdicts.size(), 1U) << n;
    EXPECT_EQ(verdicts[0].culprit, Culprit::link);
    EXPECT_EQ(verdicts[0].waiting, 2);
    EXPECT_EQ(verdicts[0].awaited, 0);
    EXPECT_NE(describe(verdicts[0]).find("from PE 0 to PE 2"), std::string::npos);
  }
}

TEST(WaitMatrix, OfManySlowLinksTheSlowest) {
  WaitMatrix waits = even(32, 10);
  for (std::size_t i = 0; i < 12; ++i)
    waits[i][i + 7] = 9000 + static_cast<double>(i);
  const auto verdicts = judge_waits(waits, 10000);
  ASSERT_EQ(verdicts.size(), 5U);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(verdicts[static_cast<std::size_t>(i)].waiting, 11 - i);
    EXPECT_EQ(verdicts[static_cast<std::size_t>(i)].more, i < 4 ? 0 : 7);
  }
  EXPECT_NE(describe(verdicts.back()).find("; so are 7 more"), std::string::npos);
}

TEST(WaitMatrix, ASlowRankAndALinkBesideIt) {
  WaitMatrix waits = even(8, 10);
  for (std::size_t i = 0; i < 8; ++i)
    if (i != 5)
      waits[i][5] = 400;
  waits[1][3] = 600;
  const auto verdicts = judge_waits(waits, 1000);
  ASSERT_EQ(verdicts.size(), 2U);
  EXPECT_EQ(verdicts[0].culprit, Culprit::rank);
  EXPECT_EQ(verdicts[1].culprit, Culprit::link);
}

TEST(WaitMatrix, OfTwoRanksItIsTheWayBetweenThem) {
  WaitMatrix waits = even(2, 10);
  waits[0][1] = 400;
  const auto verdicts = judge_waits(waits, 500);
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].culprit, Culprit::link);
  EXPECT_TRUE(judge_waits(waits, 1000).empty()) << "one of two is always the later one";
}

TEST(WaitMatrix, OfTwoRanksTheOneThatComesLateIsSlow) {
  WaitMatrix waits = even(2, 10);
  waits[0][1] = 400;
  auto verdicts = judge_waits(waits, 500, {{0, 380}, {-380, 0}});
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].culprit, Culprit::rank);
  EXPECT_EQ(verdicts[0].awaited, 1);
  EXPECT_EQ(verdicts[0].waiting, -1);
  EXPECT_EQ(describe(verdicts[0]),
            "PE 1 is slow: the other waits 400 us for it, which begins 380 us later");
  verdicts = judge_waits(waits, 500, {{0, 100}, {-100, 0}});
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].culprit, Culprit::link) << "100 us of 390 explain little";
  EXPECT_NE(describe(verdicts[0]).find("from PE 1 to PE 0 is slow, or what PE 1 does before"),
            std::string::npos)
      << describe(verdicts[0]);
}

TEST(WaitMatrix, WhatCostsLittleIsNotSaid) {
  WaitMatrix waits = even(4, 0.1);
  for (std::size_t i = 0; i < 4; ++i)
    waits[i][2] = 3;
  EXPECT_TRUE(judge_waits(waits, 1000).empty());
}

TEST(WaitMatrix, TextHasEveryPair) {
  const std::string text = wait_text({{0, 1.25}, {7.5, 0}});
  EXPECT_NE(text.find("1.2"), std::string::npos) << text;
  EXPECT_NE(text.find("7.5"), std::string::npos) << text;
  EXPECT_EQ(wait_text({{0}}), "");
}

} // namespace
} // namespace shmemctl::moe
