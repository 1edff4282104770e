// Which of several reports a page shows, and what it reports beside a baseline.
#include <gtest/gtest.h>
#include <set>

#include "reports/compare/merge.h"
#include "reports/html/page_model.h"
#include "tests/unit/reports/page.h"

namespace shmemctl::html {
namespace {

std::set<std::string> ids_of_findings(const json& model) {
  std::set<std::string> ids;
  const json block = find_block(find_section(model, "findings"), "findings");
  for (const json& item : block.at("items"))
    ids.insert(item.at("id").get<std::string>() + " " + item.at("severity").get<std::string>());
  return ids;
}

TEST(Baseline, WhatIsWorseOrMissingIsAFinding) {
  LoadedReport now = run_of("2026-11-21T03:33:00Z", 1.5);
  now.report.results.resize(1);
  const json model = page_model({{now}, {run_of("2026-11-20T03:33:00Z")}});
  EXPECT_EQ(ids_of_findings(model),
            (std::set<std::string>{"regression error", "row-missing error"}));
  EXPECT_EQ(model.at("verdict").at("text"),
            "Something is wrong: put (regression); also row-missing.");
  EXPECT_EQ(model.at("verdict").at("counts"), "2 errors");
}

TEST(Baseline, ItsOwnRunsAreForTheTrendOnly) {
  // As a nightly job calls it: the baseline's nights, of pods with names of their own, and tonight.
  std::vector<LoadedReport> nights;
  for (int night = 1; night <= 3; ++night) {
    nights.push_back(run_of("2026-11-0" + std::to_string(night) + "T03:33:00Z"));
    nights.back().report.hosts[0]["name"] = "pod" + std::to_string(night);
  }
  LoadedReport tonight = run_of("2026-11-04T03:33:00Z", 3);
  tonight.report.hosts[0]["name"] = "pod4";
  std::vector<LoadedReport> all = nights;
  all.push_back(tonight);
  const json model = page_model({all, nights});
  EXPECT_EQ(find_section(model, "machine").at("blocks").at(1).at("rows").size(), 1U);
  EXPECT_EQ(find_section(model, "comparison").at("blocks").at(0).at("text"),
            "Compared with the baseline: 2 worse.");
  const json chart = find_block(find_section(model, "sweeps"), "chart");
  EXPECT_EQ(series_named(chart.at("views").at(0), "baseline"), json::parse("[[8,2],[4096,4]]"));
  const json trend = find_block(find_section(model, "trend"), "chart");
  EXPECT_EQ(trend.at("x_labels").size(), 4U);
  EXPECT_EQ(series_named(trend.at("views").at(0), "size_bytes=8"),
            json::parse("[[0,1],[1,1],[2,1],[3,3]]"));
  // If there is nothing else, they are shown.
  EXPECT_EQ(
      find_section(page_model({nights, nights}), "machine").at("blocks").at(1).at("rows").size(),
      3U);
}

TEST(Baseline, HostsOfRowsHaveAColumn) {
  LoadedReport before = run_of("2026-11-20T03:33:00Z"), other = run_of("2026-11-20T03:34:00Z"),
               now = run_of("2026-11-21T03:33:00Z"), slow = run_of("2026-11-21T03:34:00Z", 2);
  for (LoadedReport* loaded : {&other, &slow})
    loaded->report.hosts[0]["name"] = "node8";
  const json model = page_model({{now, slow}, {before, other}});
  const json section = find_section(model, "comparison");
  const json rows = table_titled(section, "Rows, worst first");
  EXPECT_EQ(section.at("blocks").back().at("columns").at(3).at("name"), "hosts");
  EXPECT_EQ(rows.at(0).at(3), "node8");
  EXPECT_EQ(rows.at(3).at(3), "node7");
}

TEST(Page, ShowsTheNewestReportOfEachCommand) {
  const json model = page_model({{run_of("2026-11-22T03:33:00Z"), run_of("2026-11-20T03:33:00Z"),
                                  run_of("2026-11-19T03:33:00Z", 1, "check")},
                                 {}});
  const json runs = find_section(model, "machine").at("blocks").at(1).at("rows");
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs.at(0).at(1), "2026-11-19T03:33:00Z");
  EXPECT_EQ(runs.at(1).at(1), "2026-11-22T03:33:00Z");
}

TEST(Page, OneCommandWithOtherRowsStandsForNothingElse) {
  LoadedReport high = run_of("2026-11-20T03:33:00Z", 1, "moe"),
               low = run_of("2026-11-21T03:33:00Z", 1, "moe");
  for (const auto& [loaded, mode] : {std::pair(&high, "ht"), std::pair(&low, "ll")}) {
    loaded->report.command = {"shmemctl", "moe", "--mode", mode, "--json=" + loaded->path};
    for (ResultRow& row : loaded->report.results)
      row.params["mode"] = mode;
  }
  json model = page_model({{low, high}, {}});
  EXPECT_EQ(find_section(model, "machine").at("blocks").at(1).at("rows").size(), 2U);
  const json results = find_block(find_section(model, "results"), "table").at("rows");
  ASSERT_EQ(results.size(), 4U);
  EXPECT_EQ(results.at(0).at(0), "moe --mode ht");
  EXPECT_EQ(results.at(2).at(0), "moe --mode ll");
  // A newer one with all of its rows, and more, supersedes it.
  LoadedReport both = run_of("2026-11-22T03:33:00Z", 1, "moe");
  both.report.command = {"shmemctl", "moe", "--mode", "ht,ll"};
  both.report.results = high.report.results;
  both.report.results.insert(both.report.results.end(), low.report.results.begin(),
                             low.report.results.end());
  model = page_model({{low, high, both}, {}});
  const json runs = find_section(model, "machine").at("blocks").at(1).at("rows");
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs.at(0).at(1), "2026-11-22T03:33:00Z");
  // So does one with the same command line, although it ended before its last row.
  both.report.results.resize(1);
  both.report.command = high.report.command;
  model = page_model({{low, high, both}, {}});
  EXPECT_EQ(find_section(model, "machine").at("blocks").at(1).at("rows").size(), 2U);
  // Without rows only equal command lines count.
  for (LoadedReport* loaded : {&low, &high})
    loaded->report.results.clear();
  model = page_model({{low, high}, {}});
  EXPECT_EQ(find_section(model, "machine").at("blocks").at(1).at("rows").size(), 2U);
}

TEST(Page, RunsOfAMergedReportHaveTheNumbersOfTheirRows) {
  const Report merged =
      merge_reports({run_of("2026-11-20T03:33:00Z"), run_of("2026-11-21T03:33:00Z")});
  const json model = page_model({{{"m.json", merged}}, {}});
  const json runs = find_section(model, "machine").at("blocks").at(1);
  EXPECT_EQ(runs.at("columns").at(0).at("name"), "run");
  EXPECT_EQ(runs.at("rows").at(0).at(0), 0);
  EXPECT_EQ(runs.at("rows").at(1).at(0), 1);
  EXPECT_EQ(runs.at("rows").at(1).at(3), "2026-11-21T03:33:00Z");
  const json results = find_block(find_section(model, "results"), "table").at("rows");
  EXPECT_EQ(results.at(2).at(1), 1);
}

TEST(Page, ABaselineWithoutACommonRowIsRefused) {
  LoadedReport other = run_of("2026-11-20T03:33:00Z");
  for (ResultRow& row : other.report.results)
    row.case_name = "get";
  EXPECT_THROW(page_model({{run_of("2026-11-21T03:33:00Z")}, {other}}), Error);
}

} // namespace
} // namespace shmemctl::html
