// Pictures of pairs: what they show, what is dark, and that they fit.
#include <gtest/gtest.h>

#include "reports/pair_matrix.h"
#include "reports/table.h"
#include "reports/text.h"
#include "src/base/text.h"
#include "tests/unit/reports/samples.h"

namespace shmemctl {
namespace {

using nlohmann::json;

ResultRow pair_row(int source, int target, double bandwidth_GBps,
                   std::uint64_t size_bytes = 1 << 20) {
  ResultRow row;
  row.case_name = "put";
  row.params = {
      {"first_pe", source}, {"second_pe", target}, {"size_bytes", size_bytes}, {"batch", source}};
  row.unit = "us";
  row.bandwidth_GBps = bandwidth_GBps;
  row.verified = Verified::passed;
  return row;
}

/// All ordered pairs of `pes`, at 100 GB/s.
Report matrix_report(int pes) {
  Report report;
  for (int i = 0; i < pes; ++i)
    for (int j = 0; j < pes; ++j)
      if (i != j)
        report.results.push_back(pair_row(i, j, 100));
  return report;
}

ResultRow& row_of(Report& report, int source, int target) {
  for (ResultRow& row : report.results)
    if (row.params["first_pe"] == source && row.params["second_pe"] == target)
      return row;
  throw std::out_of_range("no such pair");
}

TEST(HeatMap, TheSlowPairIsDarkAndNamed) {
  Report report = matrix_report(3);
  row_of(report, 1, 2).bandwidth_GBps = 40;
  row_of(report, 2, 0).bandwidth_GBps = 85;
  TextStyle style;
  EXPECT_EQ(heat_maps_text(report, style),
            "put size=1M, bandwidth\n"
            "rows: from PE, columns: to PE\n"
            "  0\n"
            "0   ····\n"
            "1 ··  ██\n"
            "2 ░░··\n"
            "· from 90.9  ░ from 80  ▒ from 66.7  ▓ from 50  █ below 50  [GB/s]\n"
            "worst: from PE 1 to PE 2: 40 GB/s (median 100)\n");
  style.utf8 = false;
  EXPECT_EQ(split(heat_maps_text(report, style), '\n')[4], "1 ..  ##");
  style.color = true;
  EXPECT_EQ(split(heat_maps_text(report, style), '\n')[4],
            "1 \x1b[32m..\x1b[0m  \x1b[31m##\x1b[0m");
}

TEST(HeatMap, APairThatFailedIsTheWorst) {
  Report report = matrix_report(3);
  row_of(report, 0, 1).bandwidth_GBps = 1;
  row_of(report, 2, 1).status = RowStatus::fail;
  const std::string text = heat_maps_text(report, {});
  EXPECT_NE(text.find("2 ··!!"), std::string::npos) << text;
  EXPECT_NE(text.find("1 pair failed (!), the first from PE 2 to PE 1"), std::string::npos) << text;
}

TEST(HeatMap, WithoutBandwidthsItIsOfTimesAndSlowIsHigh) {
  Report report = matrix_report(3);
  for (ResultRow& row : report.results) {
    row.bandwidth_GBps.reset();
    row.stats = Stats{};
    row.stats->p50 = 2;
  }
  row_of(report, 0, 2).stats->p50 = 9;
  const std::string text = heat_maps_text(report, {});
  EXPECT_NE(text.find("put size=1M, median"), std::string::npos) << text;
  EXPECT_NE(text.find("0   ··██\n"), std::string::npos) << text;
  EXPECT_NE(text.find("worst: from PE 0 to PE 2: 9 us (median 2)"), std::string::npos) << text;
}

TEST(HeatMap, EachSizeHasItsOwnAndTwoPesHaveNone) {
  Report report = matrix_report(3);
  const std::vector<ResultRow> rows = report.results;
  for (ResultRow row : rows) {
    row.params["size_bytes"] = 8;
    report.results.push_back(row);
  }
  const auto matrices = pair_matrices(report);
  ASSERT_EQ(matrices.size(), 2u);
  EXPECT_EQ(matrices[1].title, "put size=8, bandwidth");
  EXPECT_EQ(heat_maps_text(matrix_report(2), {}), "");
  EXPECT_EQ(heat_maps_text(sample_report(), {}), ""); // one of two PEs
}

TEST(HeatMap, CopiesBetweenGpusAreInNaturalOrder) {
  Report report;
  for (const auto& [source, target] : {std::pair{"GPU10", "GPU2"}, std::pair{"GPU2", "GPU0"}}) {
    ResultRow row = pair_row(0, 0, 300);
    row.case_name = "gpu-link";
    row.params = {{"source", source}, {"target", target}, {"declared", "NV18"}};
    report.results.push_back(row);
  }
  const auto matrices = pair_matrices(report);
  ASSERT_EQ(matrices.size(), 1u);
  EXPECT_EQ(matrices[0].labels, (std::vector<std::string>{"GPU0", "GPU2", "GPU10"}));
  EXPECT_EQ(matrices[0].row_is, "from GPU");
}

TEST(HeatMap, WaitsOfMoe) {
  Report report = sample_report();
  report.moe[0]["waits"][0]["wait_us"] = {{0, 1, 50}, {1, 0, 45}, {2, 1, 0}};
  const std::string text = heat_maps_text(report, {});
  EXPECT_NE(text.find("moe mode=ht tokens=128, dispatch: which rank waited for which"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("0   ··██\n1 ··  ██\n2 ····\n"), std::string::npos) << text;
  EXPECT_NE(text.find("worst: PE that waits 0 for PE 2: 50 us"), std::string::npos) << text;
}

TEST(HeatMap, LargeOnesAreFoldedToTheWidthAndKeepTheWorst) {
  Report report = matrix_report(100);
  row_of(report, 71, 33).bandwidth_GBps = 5;
  for (const int width : {20, 33, 60, 80, 120, 300}) {
    TextStyle style;
    style.width = width;
    const std::string text = heat_maps_text(report, style);
    std::size_t dark = 0;
    for (const std::string& line : split(text, '\n')) {
      EXPECT_LE(display_width(line), std::max(width, 30)) << line;
      const bool is_row = line.find("····") != std::string::npos;
      dark += is_row && line.find("█") != std::string::npos ? 1 : 0;
    }
    EXPECT_EQ(dark, 1u) << text;
    std::string flat = text;
    std::replace(flat.begin(), flat.end(), '\n', ' ');
    flat = join(split_blanks(flat), " ");
    EXPECT_NE(flat.find("worst: from PE 71 to PE 33: 5 GB/s"), std::string::npos) << text;
    EXPECT_EQ(flat.find("each cell is the worst of") != std::string::npos, width < 104) << text;
  }
}

TEST(HeatMap, AnyNumberOfNamesIsFolded) {
  Report report;
  for (int i = 0; i < 20000; ++i)
    report.results.push_back(pair_row(i, i + 20000, 100));
  const std::string text = heat_maps_text(report, {});
  EXPECT_LT(text.size(), 20000u);
  EXPECT_NE(text.find("each cell is the worst of"), std::string::npos);
}

TEST(HeatMap, OnlyWhereTheyAreAskedFor) {
  std::ostringstream out;
  write_text(out, matrix_report(3), {});
  EXPECT_EQ(out.str().find("worst: "), std::string::npos);
  TextStyle style;
  style.heat_maps = true;
  write_text(out, matrix_report(3), style);
  EXPECT_NE(out.str().find("worst: "), std::string::npos);
}

} // namespace
} // namespace shmemctl
