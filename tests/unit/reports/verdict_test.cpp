#include "reports/verdict.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <sstream>

#include "reports/text.h"
#include "src/base/error.h"
#include "src/base/text.h"

namespace shmemctl {
namespace {

CheckRow part(const std::string& id, const std::string& status, const std::string& reason,
              std::optional<double> time_s) {
  CheckRow row{id, "what it verifies", status, reason, "", "", verdict_group};
  row.time_s = time_s;
  return row;
}

/// A check of a node with two GPUs and a NIC that found nothing.
Report good_check() {
  Report report;
  report.command = {"shmemctl", "check", "--json", "check.json"};
  report.started_at = "2026-01-02T03:04:05.500Z";
  report.finished_at = "2026-01-02T03:04:13.700Z";
  report.status = ReportStatus::complete;
  report.hosts = nlohmann::json::array({{{"name", "node7"}}});
  report.topology["gpus"] = nlohmann::json::array();
  for (const int index : {0, 1})
    report.topology["gpus"].push_back({{"index", index}});
  report.topology["nics"] = nlohmann::json::array();
  report.topology["nics"].push_back({{"name", "mlx5_0"}});
  report.checks = {{"memlock", "limits", "pass", "unlimited", "", "", "memory"},
                   part("topo", "pass", "nothing is wrong", 0.04),
                   part("doctor", "pass", "1 of 1 checks passed", 0.7),
                   part("gpu-links", "skipped", "fewer than two NVIDIA GPUs", std::nullopt)};
  return report;
}

Finding finding(const std::string& id, Severity severity, const std::string& message,
                const std::string& fix = "swap it") {
  return {id, severity, "x", message, fix};
}

std::string shown_of(const Report& report, const TextStyle& style = {}) {
  std::ostringstream out;
  write_text(out, report, style);
  return out.str();
}

TEST(VerdictText, OfAGoodNodeIsItsPartsAndPass) {
  EXPECT_EQ(shown_of(good_check()),
            "[\u2713] topo         0.0 s  nothing is wrong\n"
            "[\u2713] doctor       0.7 s  1 of 1 checks passed\n"
            "[-] gpu-links           fewer than two NVIDIA GPUs\n"
            "\n"
            "PASS: node7, 2 GPUs, 1 RDMA device; 0 errors, 0 warnings; 8.2 s\n"
            "details: shmemctl report show --verbose check.json\n");
}

TEST(VerdictText, FindingsOfOneIdAreOneAndInfosAreCounted) {
  Report report = good_check();
  report.findings = {finding("noise", Severity::warning, "PE 0 waited"),
                     finding("nic-down", Severity::error, "mlx5_0 is down", "plug it in"),
                     finding("by-the-way", Severity::info, "nobody needs to know"),
                     finding("noise", Severity::warning, "PE 1 waited")};
  report.exit_code = ExitCode::finding;
  const std::string text = shown_of(report);
  EXPECT_EQ(text.substr(0, text.find("\n\n")), "[x] nic-down  mlx5_0 is down\n"
                                               "    fix: plug it in\n"
                                               "[!] noise \u00d72  PE 0 waited\n"
                                               "    fix: swap it");
  EXPECT_NE(text.find("FAIL: node7, 2 GPUs, 1 RDMA device; 1 error, 2 warnings, 1 info; 8.2 s\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("PE 1 waited"), std::string::npos);
}

TEST(VerdictText, ErrorsOfOneIdNameThreeAndCountTheOthers) {
  Report report = good_check();
  for (const char* nic : {"mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3", "mlx5_4"})
    report.findings.push_back(finding("nic-down", Severity::error, std::string(nic) + " is down"));
  const std::string text = shown_of(report);
  EXPECT_EQ(text.substr(0, text.find("\n\n")), "[x] nic-down \u00d75  mlx5_0 is down\n"
                                               "    mlx5_1 is down\n"
                                               "    mlx5_2 is down\n"
                                               "    fix: swap it\n"
                                               "    and 2 more, which --verbose shows");
}

TEST(VerdictText, AMachineWithoutDevicesHasNotPassed) {
  Report report = good_check();
  report.topology = {{"gpus", nlohmann::json::array()}, {"nics", nlohmann::json::array()}};
  report.findings = {finding(nothing_to_check_id, Severity::warning, "no GPU, no RDMA device")};
  report.exit_code = ExitCode::unavailable;
  const std::string text = shown_of(report);
  EXPECT_NE(text.find("\nnothing to check: no GPU, no RDMA device; node7; 0 errors, 1 warning"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("PASS"), std::string::npos);
  report.findings.push_back(finding("heap", Severity::error, "no shared memory"));
  EXPECT_NE(shown_of(report).find("\nFAIL: "), std::string::npos);
}

TEST(VerdictText, ARunThatEndedEarlyHasNotPassed) {
  Report report = good_check();
  report.status = ReportStatus::incomplete;
  EXPECT_NE(shown_of(report).find("\nINCOMPLETE: node7, the run ended early; "), std::string::npos);
  report.checks.push_back(part("bench", "fail", "1 error: it hung", 30.0));
  EXPECT_NE(shown_of(report).find("\nFAIL: "), std::string::npos);
}

TEST(VerdictText, WhatFailOnAsksForIsNamedAsTheReason) {
  Report report = good_check();
  report.findings = {finding("noise", Severity::warning, "PE 0 waited"),
                     finding("by-the-way", Severity::info, "nobody needs to know")};
  EXPECT_EQ(shown_of(report).find("--fail-on"), std::string::npos);
  report.fail_on = Severity::warning;
  report.exit_code = ExitCode::finding;
  std::string text = shown_of(report);
  EXPECT_NE(text.find("\nFAIL: node7, 2 GPUs, 1 RDMA device; 0 errors, 1 warning, 1 info "
                      "(--fail-on warning); 8.2 s\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("nobody needs to know"), std::string::npos) << text;
  EXPECT_NE(nagios_line(report).find("1 RDMA device, --fail-on warning; noise |"),
            std::string::npos)
      << nagios_line(report);
  // An info that fails the run is shown.
  report.fail_on = Severity::info;
  text = shown_of(report);
  EXPECT_NE(text.find("[i] by-the-way  nobody needs to know\n    fix: swap it\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("(--fail-on info)"), std::string::npos) << text;
  // An error needs no such reason.
  report.findings.push_back(finding("nic-down", Severity::error, "mlx5_0 is down"));
  EXPECT_EQ(shown_of(report).find("--fail-on"), std::string::npos);
}

TEST(VerdictText, LinesOfPartsFitTheTerminal) {
  Report report = good_check();
  report.checks.push_back(part("bench", "warning", "6 warnings: " + std::string(200, 'w'), 4.0));
  for (const int width : {0, 40, 80}) {
    TextStyle style;
    style.width = width;
    std::istringstream lines(shown_of(report, style));
    for (std::string line; std::getline(lines, line);)
      if (line.find("details: ") != 0) { // for copy and paste
        EXPECT_LE(display_width(line), width > 0 ? width : 80) << line;
      }
  }
  TextStyle ascii;
  ascii.utf8 = false;
  const std::string text = shown_of(report, ascii);
  EXPECT_TRUE(std::all_of(text.begin(), text.end(), [](char c) { return c >= 0; })) << text;
  EXPECT_NE(text.find("www...\n"), std::string::npos) << text;
}

TEST(VerdictText, VerboseShowsAllAndEndsWithTheVerdict) {
  Report report = good_check();
  report.findings = {finding("by-the-way", Severity::info, "somebody asked")};
  TextStyle style;
  style.verbose = true;
  const std::string text = shown_of(report, style);
  EXPECT_NE(text.find("memlock"), std::string::npos);
  EXPECT_NE(text.find("somebody asked"), std::string::npos);
  EXPECT_EQ(text.find("topo  "), text.rfind("topo  ")) << "a part has one line: " << text;
  const std::string end =
      "PASS: node7, 2 GPUs, 1 RDMA device; 0 errors, 0 warnings, 1 info; 8.2 s\n"
      "report: check.json\n";
  ASSERT_GE(text.size(), end.size());
  EXPECT_EQ(text.substr(text.size() - end.size()), end);
}

TEST(VerdictText, NothingOfOtherReports) {
  Report report = good_check();
  report.checks.resize(1);
  EXPECT_FALSE(verdict_of(report));
  EXPECT_EQ(verdict_text(report, {}), "");
  report = good_check();
  report.runs.resize(2); // a merged report has several
  EXPECT_FALSE(verdict_of(report));
}

TEST(VerdictText, SeveralHostsEndWithOneLine) {
  Report good = good_check(), bad = good_check(), other = good_check();
  bad.hosts[0]["name"] = "node8";
  bad.findings = {finding("nic-down", Severity::error, "mlx5_0 is down")};
  EXPECT_EQ(verdicts_text({&good, &bad, &good}, {}), "PASS: 2 hosts; FAIL: node8\n");
  other.checks.clear();
  EXPECT_EQ(verdicts_text({&good, &other}, {}), "");
}

TEST(Nagios, HasOneLineAndItsExitCodes) {
  Report report = good_check();
  EXPECT_EQ(nagios_code(report), 0);
  EXPECT_EQ(nagios_line(report), "SHMEMCTL OK - node7: 2 GPUs, 1 RDMA device | time=8.2s errors=0 "
                                 "warnings=0 parts_failed=0\n");
  report.findings = {finding("noise", Severity::warning, "PE 0 waited"),
                     finding("noise", Severity::warning, "PE 1 waited")};
  EXPECT_EQ(nagios_code(report), 1);
  EXPECT_EQ(nagios_line(report).find("SHMEMCTL WARNING - node7: 2 GPUs, 1 RDMA device; noise x2 |"),
            0U);
  report.findings.push_back(finding("nic-down", Severity::error, "mlx5_0"));
  EXPECT_EQ(nagios_code(report), 2);
  EXPECT_EQ(nagios_line(report).find(
                "SHMEMCTL CRITICAL - node7: 2 GPUs, 1 RDMA device; nic-down, noise x2 |"),
            0U)
      << nagios_line(report);
  report.findings = {finding(nothing_to_check_id, Severity::warning, "nothing")};
  EXPECT_EQ(nagios_code(report), 3);
  EXPECT_EQ(nagios_line(report).find("SHMEMCTL UNKNOWN - node7: nothing to check: "), 0U);
}

TEST(Nagios, TextOfOthersEndsNeitherLineNorText) {
  Report report = good_check();
  report.hosts[0]["name"] = "a|b\nc";
  const std::string line = nagios_line(report);
  EXPECT_EQ(std::count(line.begin(), line.end(), '|'), 1) << line;
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1) << line;
  report.checks.clear();
  EXPECT_THROW(nagios_line(report), Error);
}

} // namespace
} // namespace shmemctl
