// What ranks report to each other about their calls, and the result if one has nothing to report.
#include "src/instruments/bench/moe/rank_timings.h"

#include <gtest/gtest.h>

#include "src/base/error.h"

namespace shmemctl::test {
namespace {

using namespace moe;

RankTimings timings_of_rank(int rank) {
  RankTimings told;
  Times times;
  times.total_us = 10 + rank;
  times.arrival_us = 3;
  times.wait_us = {1, 2, 30};
  told.calls = {{Operation::dispatch, 5.0 + rank, {times, times}, {0.5, 0.5}},
                {Operation::combine, 1, {times}, {0.25}}};
  told.period_us = {20.0 - rank};
  if (rank != 2)
    told.masked = {2};
  return told;
}

TEST(MoeRankTimings, TheSlowestRankCounts) {
  const PointResult result =
      merge_timings({timings_message(timings_of_rank(0), 3), timings_message(timings_of_rank(1), 3),
                     timings_message(timings_of_rank(2), 3)},
                    timings_of_rank(0), std::nullopt);
  ASSERT_EQ(result.operations.size(), 2U);
  EXPECT_EQ(result.operations[0].total_us, (std::vector<double>{12, 12}));
  EXPECT_EQ(result.operations[0].cold_us, 7);
  EXPECT_EQ(result.operations[0].waits[1], (std::vector<double>{1, 2, 30}));
  EXPECT_EQ(result.period_us, std::vector<double>{20});
  EXPECT_TRUE(result.lost.empty() && !result.absence);
}

TEST(MoeRankTimings, NoRankWaitsForALostOne) {
  RankTimings third = timings_of_rank(1);
  third.wrong = "row 3";
  const PointResult result =
      merge_timings({timings_message(timings_of_rank(0), 3), "", timings_message(third, 3)},
                    timings_of_rank(0), std::optional<int>(1));
  EXPECT_EQ(result.lost, std::vector<std::int32_t>{1});
  EXPECT_EQ(result.operations[0].total_us, (std::vector<double>{11, 11}));
  EXPECT_EQ(result.operations[0].waits[1], (std::vector<double>(3)));
  EXPECT_EQ(result.operations[0].late[1], (std::vector<double>(3)));
  EXPECT_EQ(result.masked, (Masked{{2}, {}, {2}}));
  EXPECT_EQ(result.wrong, std::vector<std::string>{"row 3"});
  ASSERT_TRUE(result.absence);
  EXPECT_EQ(result.absence->absent, 1);
}

TEST(MoeRankTimings, InvalidMessagesAreRefused) {
  const std::string good = timings_message(timings_of_rank(0), 1);
  EXPECT_NO_THROW(merge_timings({good}, timings_of_rank(0), std::nullopt));
  for (const std::string& bad : {std::string("[1]"), good.substr(0, good.size() - 1), good + '\0'})
    EXPECT_THROW(merge_timings({bad}, timings_of_rank(0), std::nullopt), Error);
  RankTimings other = timings_of_rank(0);
  other.calls.pop_back();
  EXPECT_THROW(merge_timings({timings_message(other, 1)}, timings_of_rank(0), std::nullopt), Error);
}

} // namespace
} // namespace shmemctl::test
