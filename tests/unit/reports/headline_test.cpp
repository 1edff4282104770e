// The headline of a page, and its findings grouped by what they are.
#include <gtest/gtest.h>

#include "reports/html/findings.h"
#include "reports/html/headline.h"
#include "reports/html/page_model.h"
#include "tests/unit/reports/page.h"

namespace shmemctl::html {
namespace {

Finding finding(const std::string& id, Severity severity, const std::string& subject,
                const std::string& message = "it is so", const std::string& fix = "replace it") {
  return {id, severity, subject, message, fix};
}

LoadedReport report_with(const Findings& findings) {
  LoadedReport loaded = run_of("2026-11-21T03:33:00Z", 1, "hotspots");
  loaded.report.findings = findings;
  return loaded;
}

json verdict_on(const LoadedReport& loaded) {
  return page_model({{loaded}, {}}).at("verdict");
}

TEST(Headline, NamesWhatIsWrongFirst) {
  const json verdict =
      verdict_on(report_with({finding("numa-unknown", Severity::info, "GPU1"),
                              finding("nic-congested", Severity::warning, "node7 mlx5_0:1"),
                              finding("link-flapping", Severity::error, "node7 mlx5_7:1",
                                      "the link went down 12 times")}));
  EXPECT_EQ(verdict.at("level"), "fail");
  EXPECT_EQ(verdict.at("text"), "Something is wrong: node7 mlx5_7:1 (link-flapping).");
  EXPECT_EQ(verdict.at("detail"), "the link went down 12 times");
  EXPECT_EQ(verdict.at("counts"), "1 error, 1 warning");
}

TEST(Headline, CountsSubjectsAndIdsThatItDoesNotName) {
  const json verdict =
      verdict_on(report_with({finding("link-flapping", Severity::error, "n1 mlx5_0:1"),
                              finding("link-flapping", Severity::error, "n2 mlx5_3:1"),
                              finding("link-flapping", Severity::error, "n3 mlx5_1:1"),
                              finding("port-down", Severity::error, "mlx5_4/1")}));
  EXPECT_EQ(verdict.at("text"), "Something is wrong: n1 mlx5_0:1, n2 mlx5_3:1 and 1 more "
                                "(link-flapping); also port-down.");
  EXPECT_EQ(verdict.at("counts"), "4 errors");
}

TEST(Headline, OfWarningsAndOfNothing) {
  json verdict = verdict_on(report_with({finding("slow-nic", Severity::warning, "n1 mlx5_0:1")}));
  EXPECT_EQ(verdict.at("level"), "warning");
  EXPECT_EQ(verdict.at("text"), "Works, with warnings: n1 mlx5_0:1 (slow-nic).");
  verdict = verdict_on(report_with({finding("numa-unknown", Severity::info, "GPU1")}));
  EXPECT_EQ(verdict, json::parse(R"({"level": "pass", "text": "All well.", "detail": "",
                                     "counts": ""})"));
}

TEST(Headline, WhatFailOnMakesFailIsTheCulprit) {
  LoadedReport loaded =
      report_with({finding("numa-unknown", Severity::info, "GPU1"),
                   finding("nic-hotspot-measured", Severity::warning, "node7 mlx5_1:1", "88%")});
  loaded.report.exit_code = ExitCode::finding;
  loaded.report.fail_on = Severity::warning;
  json verdict = verdict_on(loaded);
  EXPECT_EQ(verdict.at("level"), "fail");
  EXPECT_EQ(verdict.at("text"), "Something is wrong: node7 mlx5_1:1 (nic-hotspot-measured).");
  EXPECT_EQ(verdict.at("detail"), "88%");
  loaded.report.fail_on = Severity::info;
  loaded.report.findings.pop_back();
  EXPECT_EQ(verdict_on(loaded).at("text"), "Something is wrong: GPU1 (numa-unknown).");
}

TEST(Headline, AMachineWithNothingToCheckIsNeitherWellNorWrong) {
  LoadedReport loaded =
      report_with({finding("nothing-to-check", Severity::warning, "machine", "no GPU")});
  CheckRow part;
  part.id = "doctor";
  part.status = "pass";
  part.group = "verdict";
  loaded.report.checks = {part};
  loaded.report.exit_code = ExitCode::unavailable;
  const json verdict = verdict_on(loaded);
  EXPECT_EQ(verdict.at("level"), "warning");
  EXPECT_EQ(verdict.at("text"), "Nothing to check: no GPU, no RDMA device.");
  loaded.report.findings.push_back(finding("memlock", Severity::error, "limits"));
  EXPECT_EQ(verdict_on(loaded).at("text"), "Something is wrong: limits (memlock).");
}

TEST(Headline, WithoutAFindingItNamesTheRowOrTheEnd) {
  LoadedReport loaded = report_with({finding("slow-nic", Severity::warning, "n1 mlx5_0:1")});
  loaded.report.exit_code = ExitCode::finding;
  loaded.report.results[1].status = RowStatus::fail;
  json verdict = verdict_on(loaded);
  EXPECT_EQ(verdict.at("text"), "Something is wrong: put size_bytes=4096 failed.");
  EXPECT_EQ(verdict.at("counts"), "1 warning, 1 row failed");
  loaded.report.results.clear();
  loaded.report.exit_code = ExitCode::deadline;
  EXPECT_EQ(verdict_on(loaded).at("text"), "Something is wrong: the run ended with exit code 124.");
  loaded.report.status = ReportStatus::incomplete;
  EXPECT_EQ(verdict_on(loaded).at("text"), "Something is wrong: the run did not complete.");
}

TEST(Findings, OfOneIdAreOneEntryWithACount) {
  Findings findings;
  for (int pe = 0; pe < 6; ++pe)
    findings.push_back(finding("bench-interference", Severity::warning,
                               "bench case" + std::to_string(pe), "PE " + std::to_string(pe)));
  findings.push_back(finding("bench-interference", Severity::info, "bench put"));
  findings.push_back(finding("port-down", Severity::error, "mlx5_0/1"));
  const json section = find_section(page_model({{report_with(findings)}, {}}), "findings");
  const json items = find_block(section, "findings").at("items");
  ASSERT_EQ(items.size(), 3U);
  EXPECT_EQ(items[0].at("id"), "port-down");
  EXPECT_EQ(items[0].at("count"), 1);
  EXPECT_FALSE(items[0].contains("all"));
  EXPECT_EQ(items[1].at("count"), 6);
  EXPECT_EQ(items[1].at("subject"),
            "bench case0, bench case1, bench case2, bench case3 and 2 more");
  EXPECT_EQ(items[1].at("message"), "PE 0");
  EXPECT_EQ(items[1].at("fix"), "replace it");
  const json& rows = items[1].at("all").at("rows");
  ASSERT_EQ(rows.size(), 6U);
  EXPECT_EQ(rows[5].at(1), "bench case5");
  EXPECT_EQ(rows[5].at(2), "PE 5");
  EXPECT_TRUE(rows[5].at(3).is_null()) << "the same for all: it is above";
  EXPECT_EQ(items[2].at("severity"), "info");
}

TEST(Findings, FixesThatDifferStandBesideTheirSubjects) {
  const json section = find_section(
      page_model({{report_with({finding("port-down", Severity::error, "a", "m", "mend a"),
                                finding("port-down", Severity::error, "b", "m", "mend b")})},
                  {}}),
      "findings");
  const json rows = find_block(section, "findings").at("items").at(0).at("all").at("rows");
  EXPECT_EQ(rows.at(0).at(3), "mend a");
  EXPECT_EQ(rows.at(1).at(3), "mend b");
}

TEST(Findings, SubjectsNameTheirReportOnce) {
  LoadedReport one = report_with({finding("port-down", Severity::error, "mlx5_0/1"),
                                  finding("port-down", Severity::error, "n1 mlx5_1/1"),
                                  finding("port-down", Severity::error, "mlx5_0/1")});
  const std::vector<FindingGroup> groups = grouped_findings({{&one, "n1"}}, {});
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0].subjects(), (std::vector<std::string>{"n1: mlx5_0/1", "n1 mlx5_1/1"}));
}

TEST(Findings, PartsOfACheckStandFirst) {
  LoadedReport loaded = report_with({});
  CheckRow part, other;
  part.id = "doctor";
  part.title = "the preconditions";
  part.status = "fail";
  part.reason = "1 error: no driver";
  part.group = "verdict";
  other.id = "memlock";
  other.status = "pass";
  loaded.report.checks = {other, part};
  const json section = find_section(page_model({{loaded}, {}}), "findings");
  const json& first = section.at("blocks").at(0);
  EXPECT_EQ(first.at("type"), "parts");
  EXPECT_EQ(first.at("parts"),
            json::parse(R"([{"status": "fail", "name": "doctor", "title": "the preconditions",
                             "reason": "1 error: no driver"}])"));
  const json checks = table_titled(section, "Checks");
  ASSERT_EQ(checks.size(), 1U);
  EXPECT_EQ(checks.at(0).at(2), "memlock");
}

TEST(Listed, NamesAsManyAsAskedFor) {
  EXPECT_EQ(listed({}, 2), "");
  EXPECT_EQ(listed({"a"}, 2), "a");
  EXPECT_EQ(listed({"a", "b"}, 2), "a and b");
  EXPECT_EQ(listed({"a", "b", "c"}, 2), "a, b and 1 more");
  EXPECT_EQ(listed({"a", "b", "c"}, 3), "a, b and c");
}

} // namespace
} // namespace shmemctl::html
