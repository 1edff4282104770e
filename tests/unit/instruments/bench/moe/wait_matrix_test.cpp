// What a wait matrix shows: column, row, cell, or nothing.
#include <gtest/gtest.h>

#include "src/instruments/bench/moe/wait_matrix.h"

namespace shmemctl::moe {
namespace {

WaitMatrix even(int n, double wait_us) {
  WaitMatrix waits(static_cast<std::size_t>(n),
                   std::vector<double>(static_cast<std::size_t>(n), wait_us));
  for (std::size_t i = 0; i < waits.size(); ++i)
    waits[i][i] = 1e6; // a rank's wait for itself carries no information
  return waits;
}

TEST(WaitMatrix, AnEvenMatrixNamesNoRank) {
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

TEST(WaitMatrix, TwoRanksHaveASlowLink) {
  WaitMatrix waits = even(2, 10);
  waits[0][1] = 400;
  const auto verdicts = judge_waits(waits, 500);
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].culprit, Culprit::link);
  EXPECT_TRUE(judge_waits(waits, 1000).empty()) << "one of two is always the later one";
}

TEST(WaitMatrix, TheLateOneOfTwoRanksIsSlow) {
  WaitMatrix waits = even(2, 10);
  waits[0][1] = 400;
  auto verdicts = judge_waits(waits, 500, {{0, 380}, {-380, 0}});
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].culprit, Culprit::rank);
  EXPECT_EQ(verdicts[0].awaited, 1);
  EXPECT_EQ(verdicts[0].waiting, -1);
  EXPECT_EQ(
      describe(verdicts[0]),
      "PE 1 is slow: the other PE waits 400 us for it, 380 us of them because it starts late");
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

/// Nodes of `node_ranks`: what each rank waits for ranks of its node, and for other ranks (only its
/// rail, or all of them).
WaitMatrix of_nodes(int n, int node_ranks, double intranode_us, double internode_us,
                    bool rails_only) {
  WaitMatrix waits = even(n, 0);
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) {
      double& cell = waits[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
      if (i / node_ranks == j / node_ranks)
        cell = i == j ? cell : intranode_us;
      else if (!rails_only || i % node_ranks == j % node_ranks)
        cell = internode_us;
    }
  return waits;
}
Crosses nodes_of(int node_ranks) {
  return [node_ranks](int from, int to) { return from / node_ranks != to / node_ranks; };
}

TEST(WaitMatrix, CellsWithoutAWaitAreNotShortWaits) {
  // Nodes of 8, one rail each: 60 us are the time of a network.
  EXPECT_TRUE(judge_waits(of_nodes(16, 8, 2, 60, true), 100, {}, nodes_of(8)).empty());
  // Three of its node and three of fifteen rails wait for rank 9.
  WaitMatrix waits = of_nodes(16, 4, 2, 60, true);
  for (std::size_t i = 0; i < 16; ++i)
    if (i != 9 && waits[i][9] > 0)
      waits[i][9] = 700;
  const auto verdicts = judge_waits(waits, 1000, {}, nodes_of(4));
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].culprit, Culprit::rank);
  EXPECT_EQ(verdicts[0].awaited, 9);
  EXPECT_DOUBLE_EQ(verdicts[0].usual_us, 31) << "of three near cells and three far ones";
  EXPECT_NE(wait_text(waits).find("-"), std::string::npos);
}

TEST(WaitMatrix, NetworkPathsAreComparedWithEachOther) {
  WaitMatrix waits = of_nodes(16, 8, 2, 60, false);
  EXPECT_TRUE(judge_waits(waits, 100, {}, nodes_of(8)).empty());
  waits[3][1] = 40; // slow for NVLink, but fast for a network
  auto verdicts = judge_waits(waits, 100, {}, nodes_of(8));
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].culprit, Culprit::link);
  EXPECT_EQ(verdicts[0].waiting, 3);
  EXPECT_EQ(verdicts[0].awaited, 1);
  EXPECT_DOUBLE_EQ(verdicts[0].usual_us, 2);
  // Rank 5 receives slowly, from its node and from others.
  waits = of_nodes(16, 8, 2, 60, false);
  for (std::size_t j = 0; j < 16; ++j)
    if (j != 5)
      waits[5][j] *= 10;
  verdicts = judge_waits(waits, 1000, {}, nodes_of(8));
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].culprit, Culprit::receiver);
  EXPECT_EQ(verdicts[0].waiting, 5);
}

/// Measured with four H100s in two virtual nodes over TCP: PE 3 waits for what PE 2 gets from PE 0.
TEST(WaitMatrix, WhoWaitsForAForwarderWaitsForTheNetwork) {
  const WaitMatrix waits = {
      {0, 858, 8495, 0}, {9, 0, 0, 8944}, {10446, 0, 0, 34}, {0, 8544, 1521, 0}};
  EXPECT_FALSE(judge_waits(waits, 10927, {}, nodes_of(2)).empty());
  EXPECT_TRUE(judge_waits(waits, 10927, {}, nodes_of(2), true).empty());
  WaitMatrix slow = waits;
  slow[3][2] = 20000;
  const auto verdicts = judge_waits(slow, 21000, {}, nodes_of(2), true);
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].culprit, Culprit::link);
  EXPECT_EQ(verdicts[0].waiting, 3);
  EXPECT_EQ(verdicts[0].awaited, 2);
}

TEST(WaitMatrix, OneOfTwoRanksIsAlwaysLater) {
  WaitMatrix waits = even(3, 100);
  waits[0][1] = 2000;
  waits[1][0] = 1;
  EXPECT_TRUE(judge_waits(waits, 2500, {}, nodes_of(2)).empty());
  EXPECT_FALSE(judge_waits(waits, 2500).empty()) << "of one kind it stands out";
}

TEST(WaitMatrix, OneCellIsALinkThoughItIsAllThatARankIsWaitedFor) {
  WaitMatrix waits = even(4, 10);
  waits[0][2] = waits[1][2] = 0;
  waits[3][2] = 900;
  const auto verdicts = judge_waits(waits, 1000);
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].culprit, Culprit::link);
  EXPECT_EQ(verdicts[0].waiting, 3);
  EXPECT_EQ(verdicts[0].awaited, 2);
}

TEST(WaitMatrix, TextHasEveryPair) {
  const std::string text = wait_text({{0, 1.25}, {7.5, 0}});
  EXPECT_NE(text.find("1.2"), std::string::npos) << text;
  EXPECT_NE(text.find("7.5"), std::string::npos) << text;
  EXPECT_NE(text.find("a row waits for | PE        0        1\n"), std::string::npos) << text;
  EXPECT_NE(text.find("PE 1 |         7.5        -\n"), std::string::npos) << text;
  EXPECT_EQ(wait_text({{0}}), "");
}

} // namespace
} // namespace shmemctl::moe
