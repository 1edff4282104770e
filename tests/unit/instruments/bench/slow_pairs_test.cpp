#include "src/instruments/bench/slow_pairs.h"

#include <gtest/gtest.h>

namespace shmemctl::bench {
namespace {

/// A matrix of `n` PEs in which every pair takes 10 us, and its fastest sample 9.
std::vector<ResultRow> matrix(int n, const char* transport = "ibrc") {
  std::vector<ResultRow> rows;
  for (int first = 0; first < n; ++first)
    for (int second = 0; second < n; ++second) {
      if (first == second)
        continue;
      ResultRow row;
      row.case_name = "put";
      row.params = {{"size_bytes", 4096}, {"first_pe", first}, {"second_pe", second}};
      row.stats = Stats{};
      row.stats->min = 9;
      row.stats->p50 = 10;
      row.bandwidth_GBps = 0.41;
      row.path = RowPath{{}, {}, {transport}, {}};
      rows.push_back(row);
    }
  return rows;
}

ResultRow& pair_of(std::vector<ResultRow>& rows, int first, int second) {
  for (ResultRow& row : rows)
    if (row.params["first_pe"] == first && row.params["second_pe"] == second)
      return row;
  throw std::logic_error("no such pair");
}

void slow_down(ResultRow& row, double times) {
  row.stats->min = *row.stats->min * times;
  row.stats->p50 = *row.stats->p50 * times;
  row.bandwidth_GBps = *row.bandwidth_GBps / times;
}

TEST(SlowPairs, OneIsNamedWithItsShare) {
  std::vector<ResultRow> rows = matrix(4);
  EXPECT_TRUE(slow_pair_findings("bench put", rows).empty());
  slow_down(pair_of(rows, 2, 1), 2);
  const Findings findings = slow_pair_findings("bench put", rows);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].id, "bench-slow-pair");
  EXPECT_EQ(findings[0].severity, Severity::warning);
  EXPECT_EQ(findings[0].subject, "bench put 4K");
  EXPECT_EQ(findings[0].message,
            "1 of 12 pairs by ibrc are slow: PE 2 -> PE 1: 0.205 GB/s, 50% of the median");
  EXPECT_NE(findings[0].fix.find("--pair 2,1"), std::string::npos);
}

TEST(SlowPairs, APeThatHasThemAllIsNamed) {
  std::vector<ResultRow> rows = matrix(6);
  for (const auto& [first, second] : {std::pair(3, 0), {3, 1}, {2, 3}, {3, 4}, {3, 5}, {5, 3}})
    slow_down(pair_of(rows, first, second), 1.5);
  const Findings findings = slow_pair_findings("bench put", rows);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_NE(findings[0].message.find("6 of 30 pairs by ibrc are slow, all of them from or to PE 3"),
            std::string::npos)
      << findings[0].message;
  EXPECT_NE(findings[0].message.find("; and 2 more"), std::string::npos) << findings[0].message;
  EXPECT_NE(findings[0].fix.find("PE 3"), std::string::npos);
}

TEST(SlowPairs, ABusyMachineAndAnotherTransportAreNone) {
  std::vector<ResultRow> rows = matrix(4);
  // Its median is bad, but its fastest sample is as fast as the others: something disturbed it.
  pair_of(rows, 0, 1).stats->p50 = 40;
  EXPECT_TRUE(slow_pair_findings("bench put", rows).empty());
  // Within a node it is not between nodes.
  rows = matrix(4, "shm");
  for (int first = 0; first < 4; ++first)
    for (int second = 0; second < 4; ++second)
      if (first != second && first / 2 != second / 2) {
        slow_down(pair_of(rows, first, second), 10);
        pair_of(rows, first, second).path->transports = {"libfabric"};
      }
  EXPECT_TRUE(slow_pair_findings("bench put", rows).empty());
}

TEST(SlowPairs, LatenciesAndFewPairs) {
  std::vector<ResultRow> rows = matrix(3);
  slow_down(pair_of(rows, 1, 0), 3);
  for (ResultRow& row : rows)
    row.bandwidth_GBps.reset();
  const Findings findings = slow_pair_findings("bench put-latency", rows);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_NE(findings[0].message.find("PE 1 -> PE 0: 30 us, 3.0 times the median"),
            std::string::npos)
      << findings[0].message;
  rows = matrix(2);
  slow_down(pair_of(rows, 1, 0), 3);
  EXPECT_TRUE(slow_pair_findings("bench put", rows).empty()) << "of two, one is always slower";
}

} // namespace
} // namespace shmemctl::bench
