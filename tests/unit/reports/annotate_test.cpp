// Annotations for GitHub and GitLab: what is reported, in which order, and that strings of a report
// cannot inject anything.
#include "reports/annotate/annotate.h"

#include <gtest/gtest.h>

#include "src/base/text.h"
#include "tests/support/every_writer.h"
#include "tests/unit/reports/samples.h"

namespace shmemctl {
namespace {

using nlohmann::json;

std::vector<LoadedReport> loaded(const Report& report) {
  return {{"out/check.json", report}};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines = split(text, '\n');
  EXPECT_EQ(lines.back(), "");
  lines.pop_back();
  return lines;
}

Report report_with(const Findings& findings) {
  Report report;
  report.status = ReportStatus::complete;
  report.findings = findings;
  return report;
}

TEST(Annotate, GitHubGetsCommandsWithErrorsFirst) {
  const std::string text = write_annotations(
      loaded(report_with({{"numa-unknown", Severity::warning, "GPU1", "50% of it", "look"},
                          {"env-shadowed", Severity::info, "A", "b", ""},
                          {"nic-hotspot", Severity::error, "mlx5_0:1, mlx5_1:1", "PE 0, 1: shared",
                           "export A=mlx5_0:1"}})),
      AnnotationFormat::github);
  EXPECT_EQ(
      lines_of(text),
      (std::vector<std::string>{
          "::error title=nic-hotspot (mlx5_0%3A1%2C mlx5_1%3A1)::PE 0, 1: shared%0Afix: export "
          "A=mlx5_0:1",
          "::warning title=numa-unknown (GPU1)::50%25 of it%0Afix: look",
          "::notice title=env-shadowed (A)::b"}));
}

TEST(Annotate, GitHubShowsTenOfAKindSoTheLastCountsTheRest) {
  Findings findings(25, {"nic-hotspot", Severity::error, "x", "y", "z"});
  findings.push_back({"numa-unknown", Severity::warning, "x", "y", "z"});
  const auto lines =
      lines_of(write_annotations(loaded(report_with(findings)), AnnotationFormat::github));
  ASSERT_EQ(lines.size(), 11u);
  EXPECT_TRUE(starts_with(lines[9], "::error title=more of them::and 16 more findings"))
      << lines[9];
  EXPECT_TRUE(starts_with(lines[10], "::warning ")) << lines[10];
}

TEST(Annotate, IncompleteRunsAndRowsWithoutFindingAreAnnotated) {
  Report report = sample_report();
  report.findings.clear();
  report.status = ReportStatus::incomplete;
  report.results[0].status = RowStatus::fail;
  report.results[0].reason = "byte 3 is wrong";
  const auto lines = lines_of(write_annotations(loaded(report), AnnotationFormat::github));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(starts_with(lines[0], "::error title=run-incomplete ")) << lines[0];
  EXPECT_NE(lines[1].find("::put: 1 row failed: scope=block size_bytes=4096: byte 3 is wrong"),
            std::string::npos)
      << lines[1];
  EXPECT_EQ(write_annotations(loaded(report_with({})), AnnotationFormat::github), "");
}

json gitlab_of(const std::vector<LoadedReport>& reports) {
  return json::parse(write_annotations(reports, AnnotationFormat::gitlab));
}

TEST(Annotate, GitLabGetsWhatItsCodeQualityReportAsksFor) {
  const json list = gitlab_of({{"./out/check.json", sample_report()}});
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0]["severity"], "critical");
  EXPECT_EQ(list[0]["check_name"], "nic-hotspot");
  EXPECT_EQ(list[0]["location"],
            json::parse(R"({"path": "out/check.json", "lines": {"begin": 1}})"));
  EXPECT_EQ(list[0]["description"], "PE 0 and PE 1 share mlx5_0 | fix: export "
                                    "NVSHMEM_HCA_LIST=mlx5_0:1,mlx5_1:1");
  EXPECT_EQ(list[1]["severity"], "minor");
  EXPECT_EQ(gitlab_of(loaded(report_with({}))), json::array());
}

TEST(Annotate, FingerprintsStayWhenFiguresChangeAndDifferOtherwise) {
  const auto fingerprint = [](const Finding& finding, const std::string& path = "r.json") {
    const json list = gitlab_of({{path, report_with({finding})}});
    return list.at(0)["fingerprint"].get<std::string>();
  };
  const Finding finding{"regression", Severity::error, "put", "12% slower", "look"};
  Finding other_figures = finding;
  other_figures.message = "13% slower";
  EXPECT_EQ(fingerprint(finding), fingerprint(other_figures));
  Finding other_subject = finding;
  other_subject.subject = "get";
  EXPECT_NE(fingerprint(finding), fingerprint(other_subject));
  EXPECT_NE(fingerprint(finding), fingerprint(finding, "s.json"));
  // The lengths separate the parts.
  EXPECT_NE(fingerprint({"a", Severity::error, "bc", "", ""}),
            fingerprint({"ab", Severity::error, "c", "", ""}));
  // They are stable across releases: a merge request compares with what an older one wrote.
  EXPECT_EQ(fingerprint(finding), "ee9d81211e87e59ac3e9b69430b98e8b");
  const json twice = gitlab_of(loaded(report_with({finding, finding})));
  EXPECT_NE(twice[0]["fingerprint"], twice[1]["fingerprint"]);
}

TEST(Annotate, MarkdownHasFindingsComparisonThresholdsAndChecks) {
  Report report = sample_full_report();
  report.command = {"shmemctl", "report", "diff", "/secret/path", "b.json"};
  const std::string text = write_annotations(loaded(report), AnnotationFormat::markdown);
  for (const char* words :
       {"### shmemctl report diff on node7", "| **error** | nic-hotspot |", "<code>export NVSHMEM",
        "| **worse** | put | size_bytes=4K | 1.5 us | 3 us | +100.0% |", "| missing | get |",
        "Rows: 1 worse, 1 missing", "| kept | <code>put", "Checks: 1 pass, 1 fail"})
    EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
  EXPECT_EQ(text.find("secret"), std::string::npos);
}

TEST(Annotate, TextIsReadableAsItStands) {
  const auto shown = [](const std::string& message) {
    const std::string text =
        write_annotations(loaded(report_with({{"x", Severity::error, "y", message, ""}})),
                          AnnotationFormat::markdown);
    const std::string begin = "| **error** | x | ";
    const std::size_t at = text.find(begin);
    EXPECT_NE(at, std::string::npos) << text;
    return text.substr(at + begin.size(), text.find(" |", at + begin.size()) - at - begin.size());
  };
  for (const char* plain : {"PE 0, 1 (GPU 0) share mlx5_0/1: 12.5 GB/s", "size_bytes=4096; \"a\"?"})
    EXPECT_EQ(shown(plain), plain);
  EXPECT_EQ(shown("_a_ *b* [c](d)"), "&#95;a&#95; &#42;b&#42; &#91;c&#93;(d)");
  EXPECT_EQ(shown("http://a www.b.c :cat: mlx5_0:1"),
            "http&#58;//a www&#46;b.c &#58;cat: mlx5_0:1");
}

TEST(Annotate, APageHasNicsAndRowsWithoutWhatTheyShare) {
  Report report = report_with({});
  report.hotspots = sample_hotspots();
  for (const int size : {8, 4096}) {
    ResultRow row;
    row.case_name = "put";
    row.unit = "us";
    row.params = {{"size_bytes", size}, {"traffic", "pair"}, {"batch", 7 * size}};
    row.stats = Stats{};
    row.stats->p50 = 1.5;
    row.bandwidth_GBps = 12.5;
    row.verified = Verified::passed;
    report.results.push_back(row);
  }
  const std::string text = write_markdown_page({"r.json", report});
  for (const char* words : {"| node7 | mlx5_0:1 | 40 GB/s 80% | 1 GB/s 2% | **hot** |",
                            "| put | size_bytes=4K | 1.5 |  | us | 12.5 |  | passed |",
                            "- put, all rows: traffic=pair\n"})
    EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
  EXPECT_EQ(text.find("batch"), std::string::npos) << text;
}

TEST(Annotate, ASummaryStaysBelowWhatGitHubTakes) {
  const Finding long_finding{"x", Severity::error, "y", std::string(5000, '*'),
                             std::string(5000, '|')};
  const Report report = report_with(Findings(200, long_finding));
  const std::vector<LoadedReport> reports(20, {"r.json", report});
  const std::string text = write_annotations(reports, AnnotationFormat::markdown);
  EXPECT_LT(text.size(), std::size_t{1} << 20);
  EXPECT_NE(text.find("and 150 more findings"), std::string::npos);
  EXPECT_NE(text.find(" more reports"), std::string::npos);
}

TEST(Annotate, HostileTextInjectsNothing) {
  for (const char* text : {"x\n::error::y", "::stop-commands::z", "%0A::error::", "a,line=1::b",
                           "##[group]x", "| x | <img src=x onerror=y> |",
                           "[a](http://b) `c` **d** ![e](f)", "\"}, {\"fingerprint\": 1"}) {
    Report report = sample_full_report();
    report.command = {text, text, text};
    report.hosts = {{{"name", text}}};
    report.runs.clear();
    for (Finding& finding : report.findings)
      finding.id = finding.subject = finding.message = finding.fix = text;
    for (json& row : report.comparison["rows"])
      row["case"] = row["reason"] = row["unit"] = text;
    report.thresholds[0]["expression"] = text;
    EXPECT_EQ(malformed(report), "") << text;
    const auto lines = lines_of(write_annotations(loaded(report), AnnotationFormat::github));
    EXPECT_EQ(lines.size(), report.findings.size()) << text;
    EXPECT_EQ(gitlab_of(loaded(report)).size(), report.findings.size()) << text;
  }
}

} // namespace
} // namespace shmemctl
