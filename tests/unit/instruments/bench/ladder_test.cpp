#include "src/instruments/bench/ladder.h"

#include <gtest/gtest.h>

#include "src/instruments/bench/rows.h"

namespace shmemctl::bench {
namespace {

ResultRow row_of(const std::string& name, std::optional<double> GBps) {
  ResultRow row;
  row.case_name = name;
  row.bandwidth_GBps = GBps;
  return row;
}

TEST(Ladder, StepsAreSharesOfTheOneBelow) {
  std::vector<ResultRow> rows = {row_of("memcpy", 40), row_of("transport-put", 36),
                                 row_of("put", 34), row_of("moe-dispatch", 4)};
  rows[2].link_fraction = 0.85;
  rows[2].limited_by = reference_name; // is a rung already
  rows[3].wire_GBps = 3.4;             // data that stays on this machine uses no wire
  const std::vector<Rung> rungs = rungs_of(rows);
  ASSERT_EQ(rungs.size(), 4u);
  EXPECT_EQ(ladder_text(rungs, {}), "step           GB/s  of the step before  of the first\n"
                                    "memcpy           40                   -             -\n"
                                    "transport-put    36               90.0%         90.0%\n"
                                    "put              34               94.4%         85.0%\n"
                                    "moe-dispatch    3.4               10.0%          8.5%\n");
  const auto finding = ladder_finding(rungs);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->severity, Severity::info);
  EXPECT_NE(finding->message.find("most is lost from put to moe-dispatch: 10.0% is left"),
            std::string::npos)
      << finding->message;
}

TEST(Ladder, BetweenMachinesTheLinkIsTheFirstStep) {
  std::vector<ResultRow> rows = {row_of("memcpy", std::nullopt), row_of("put", 40)};
  rows[0].status = RowStatus::skip;
  rows[1].link_fraction = 0.8;
  rows[1].limited_by = "mlx5_0:1 on n1, 400 Gb/s";
  const std::vector<Rung> rungs = rungs_of(rows);
  ASSERT_EQ(rungs.size(), 2u);
  EXPECT_EQ(rungs[0].name, "limit: mlx5_0:1 on n1, 400 Gb/s");
  EXPECT_DOUBLE_EQ(rungs[0].GBps, 50);
}

/// Writes over verbs are a step after the link's rate, and before the transport.
TEST(Ladder, WritesByVerbsAreAStep) {
  std::vector<ResultRow> rows = {row_of("memcpy", std::nullopt), row_of("verbs-write", 48),
                                 row_of("transport-put", 45), row_of("put", 44)};
  rows[0].status = RowStatus::skip;
  rows[1].link_fraction = 0.96;
  rows[1].limited_by = "mlx5_0:1 on n1, 400 Gb/s";
  const std::vector<Rung> rungs = rungs_of(rows);
  ASSERT_EQ(rungs.size(), 4u);
  EXPECT_DOUBLE_EQ(rungs[0].GBps, 50);
  EXPECT_EQ(rungs[1].name, "verbs-write");
  EXPECT_EQ(ladder_note(rows, rungs), "");
}

TEST(Ladder, WhyThereAreNoWritesByVerbs) {
  std::vector<ResultRow> rows = {row_of("memcpy", std::nullopt),
                                 row_of("verbs-write", std::nullopt), row_of("put", 40)};
  rows[0].status = rows[1].status = RowStatus::skip;
  rows[1].reason = "PE 0: mlx5_0:1: the port is DOWN";
  rows[2].link_fraction = 0.8;
  rows[2].limited_by = "eth0 on n1, 400 Gb/s";
  const std::vector<Rung> rungs = rungs_of(rows);
  ASSERT_EQ(rungs.size(), 2u);
  EXPECT_EQ(ladder_note(rows, rungs),
            "RDMA writes by verbs are no step: PE 0: mlx5_0:1: the port is DOWN; the first step is "
            "limit: eth0 on n1, 400 Gb/s");
  rows[0] = row_of("memcpy", 50); // stands in their place
  EXPECT_EQ(ladder_note(rows, rungs_of(rows)), "");
}

TEST(Ladder, TheStepsBelowPut) {
  EXPECT_EQ(ladder_cases(Initiator::host),
            (std::vector<std::string>{"memcpy", "verbs-write", "transport-put", "put"}));
}

TEST(Ladder, OneStepIsNone) {
  const std::vector<Rung> rungs = rungs_of({row_of("put", 1), row_of("memcpy", std::nullopt)});
  EXPECT_EQ(rungs.size(), 1u);
  EXPECT_EQ(ladder_text(rungs, {}), "");
  EXPECT_FALSE(ladder_finding(rungs));
}

} // namespace
} // namespace shmemctl::bench
