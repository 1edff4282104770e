#include "reports/pair_matrix.h"

#include <gtest/gtest.h>

namespace shmemctl {
namespace {

ResultRow pair_of_hosts(const char* from, const char* to, int rail, double GBps) {
  ResultRow row;
  row.case_name = "fabric-pair";
  row.params = {{"from_host", from}, {"to_host", to}, {"rail", rail}, {"size_bytes", 1048576}};
  row.bandwidth_GBps = GBps;
  row.unit = "us";
  return row;
}

TEST(HostPairs, EachRailHasAMatrixOfHosts) {
  Report report;
  for (const int rail : {0, 1})
    for (const char* from : {"node1", "node2", "node10"})
      for (const char* to : {"node1", "node2", "node10"})
        if (std::string(from) != to)
          report.results.push_back(pair_of_hosts(from, to, rail, 10 + rail));
  const std::vector<PairMatrix> matrices = pair_matrices(report);
  ASSERT_EQ(matrices.size(), 2U);
  EXPECT_EQ(matrices[1].title, "fabric-pair rail=1 size=1M, bandwidth");
  EXPECT_EQ(matrices[1].labels, (std::vector<std::string>{"node1", "node2", "node10"}));
  EXPECT_EQ(matrices[1].row_is, "from host");
  EXPECT_TRUE(matrices[1].low_is_bad);
  ASSERT_EQ(matrices[1].cells.size(), 6U);
  EXPECT_EQ(matrices[1].cells[0].value, 11);
}

} // namespace
} // namespace shmemctl
