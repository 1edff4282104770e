// JUnit XML and Prometheus' text: well-formed and correct, whatever the report contains.
#include <expat.h>
#include <gtest/gtest.h>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "reports/junit.h"
#include "reports/prometheus.h"
#include "tests/unit/reports/samples.h"

namespace shmemctl {
namespace {

using nlohmann::json;

/// Names of elements with their counts; fails for text that is not XML.
std::map<std::string, int> elements_of(const std::string& xml) {
  std::map<std::string, int> counts;
  XML_Parser parser = XML_ParserCreate(nullptr);
  XML_SetUserData(parser, &counts);
  XML_SetStartElementHandler(parser, [](void* data, const char* name, const char**) {
    ++(*static_cast<std::map<std::string, int>*>(data))[name];
  });
  EXPECT_EQ(XML_Parse(parser, xml.data(), static_cast<int>(xml.size()), 1), XML_STATUS_OK) << xml;
  XML_ParserFree(parser);
  return counts;
}

/// Lines of the text exposition format; fails for others, and for a duplicate series.
std::map<std::string, double> series_of(const std::string& text) {
  static const std::regex comment("# (HELP|TYPE) [a-zA-Z_:][a-zA-Z0-9_:]* .+");
  static const std::regex line(
      R"re(([a-zA-Z_:][a-zA-Z0-9_:]*(\{([a-zA-Z_][a-zA-Z0-9_]*="([^"\\]|\\.)*",?)+\})?) (\S+))re");
  std::map<std::string, double> series;
  std::istringstream lines(text);
  for (std::string words; std::getline(lines, words);) {
    std::smatch match;
    if (std::regex_match(words, comment))
      continue;
    if (!std::regex_match(words, match, line)) {
      ADD_FAILURE() << words;
      continue;
    }
    EXPECT_TRUE(series.emplace(match[1], std::stod(match[5])).second) << words;
  }
  return series;
}

/// A report with hostile text everywhere.
Report hostile_report() {
  const std::string text = "\"/><script>&'\x1b[2J\n\\{}\xff";
  Report report = sample_report();
  report.started_at = report.finished_at = "";
  report.status = ReportStatus::incomplete;
  for (ResultRow& row : report.results) {
    row.case_name = row.reason = row.unit = text;
    row.params = {{text, text}, {"0\"", 1}, {"a b", nullptr}, {"a-b", true}};
  }
  for (CheckRow& row : report.checks)
    row.id = row.group = row.reason = row.fix = row.status = text;
  for (NicCounter& counter : report.nic_counters)
    counter.host = counter.device = counter.counter = text;
  for (Finding& finding : report.findings)
    finding.id = finding.subject = finding.message = finding.fix = text;
  report.tool.version = report.tool.git_revision = text;
  report.thresholds = {{{"expression", text}, {"passed", false}, {"worst", "x"}}, 3, nullptr};
  report.comparison = {
      {"rows", {{{"case", text}, {"params", {{text, text}}}, {"verdict", text}}, nullptr}},
      {"counts", {{text, 3}}}};
  return report;
}

TEST(Junit, CountsWhatFailedAndWasSkipped) {
  const std::string xml = write_junit(sample_report());
  const auto elements = elements_of(xml);
  // 2 results (one skipped), 2 checks (one failed), the error nic-hotspot, the warning
  // numa-unknown.
  EXPECT_EQ(elements.at("testsuite"), 3);
  EXPECT_EQ(elements.at("testcase"), 6);
  EXPECT_EQ(elements.at("failure"), 2);
  EXPECT_EQ(elements.at("skipped"), 1);
  EXPECT_NE(xml.find("<testsuites name=\"shmemctl\" tests=\"6\" failures=\"2\""), std::string::npos)
      << xml;
  EXPECT_NE(xml.find("modprobe nvidia_peermem"), std::string::npos);
}

TEST(Junit, WarningsPassWithARemark) {
  Report report;
  report.status = ReportStatus::complete;
  report.findings = {
      {"topology-incomplete", Severity::warning, "nccl-xml", "<net> without a name", "look"},
      {"numa-unknown", Severity::info, "GPU1", "only worth knowing", "look"}};
  const std::string xml = write_junit(report);
  const auto elements = elements_of(xml);
  EXPECT_EQ(elements.at("testcase"), 1) << xml;
  EXPECT_EQ(elements.count("failure"), 0u) << xml;
  EXPECT_NE(xml.find("classname=\"topology-incomplete\""), std::string::npos) << xml;
  EXPECT_NE(xml.find("<system-out>&lt;net&gt; without a name; fix: look</system-out>"),
            std::string::npos)
      << xml;
}

TEST(Junit, AComparisonFailsForWhatIsWorse) {
  Report report;
  report.status = ReportStatus::complete;
  report.comparison = json::parse(R"({"rows": [
    {"case": "put", "params": {"size_bytes": 8}, "verdict": "worse", "change": 0.25},
    {"case": "put", "params": {}, "verdict": "unclear", "reason": "noise"},
    {"case": "put", "params": {}, "verdict": "missing"}]})");
  report.thresholds = json::parse(
      R"([{"expression": "put.p50_us<3", "rows": 2, "failed": 1, "worst": 4, "passed": false}])");
  report.findings = {{"regression", Severity::error, "put", "worse", "look"}};
  // a missing attribute is allowed here
  EXPECT_EQ(elements_of(write_junit(report)).at("failure"), 2);
  report.findings.push_back({"row-missing", Severity::error, "put", "missing", "measure"});
  EXPECT_EQ(elements_of(write_junit(report)).at("failure"), 3);
}

TEST(Junit, IsXmlWhateverTheReportHolds) {
  const std::string xml = write_junit(hostile_report());
  elements_of(xml);
  EXPECT_EQ(xml.find("<script"), std::string::npos);
  elements_of(write_junit(Report{}));
}

TEST(Junit, CharactersThatXmlHasNoWordsForAreReplaced) {
  // U+FFFE and U+FFFF are UTF-8, and no characters of XML 1.0.
  Report report = sample_report();
  const std::string text = "put\xef\xbf\xbf and \xef\xbf\xbe";
  report.results[0].case_name = report.results[0].params["scope"] = text;
  report.results[1].reason = text;
  report.checks[0].id = report.checks[1].reason = text;
  report.findings.push_back({text, Severity::error, text, text, text});
  const std::string xml = write_junit(report);
  elements_of(xml);
  EXPECT_NE(xml.find("put\xef\xbf\xbd and \xef\xbf\xbd"), std::string::npos) << xml;
}

TEST(Junit, NamesAreTheSameInEveryRun) {
  Report first = sample_report(), second = sample_report();
  first.results[0].params["batch"] = 8192;
  second.results[0].params["batch"] = 16384;
  EXPECT_EQ(write_junit(first), write_junit(second));
  first.comparison = {
      {"rows", {{{"case", "put"}, {"verdict", "same"}, {"params", {{"batch", 1}}}}}}};
  second.comparison = {
      {"rows", {{{"case", "put"}, {"verdict", "same"}, {"params", {{"batch", 2}}}}}}};
  EXPECT_EQ(write_junit(first), write_junit(second));
}

TEST(Junit, NamesHoldTheWindowOnlyWhereRowsDifferInIt) {
  // bench chooses the window by the size; a sweep of the window has rows that differ in nothing
  // else.
  const auto names_of = [](std::initializer_list<std::pair<int, int>> sizes_and_windows) {
    Report report;
    report.status = ReportStatus::complete;
    for (const auto& [size, window] : sizes_and_windows) {
      ResultRow row;
      row.case_name = "put";
      row.params = {{"size_bytes", size}, {"window", window}, {"batch", 7}};
      report.results.push_back(row);
    }
    return write_junit(report);
  };
  const std::string sweep = names_of({{8, 64}, {4096, 32}});
  EXPECT_NE(sweep.find("name=\"size_bytes=4096\""), std::string::npos) << sweep;
  EXPECT_EQ(sweep.find("window"), std::string::npos) << sweep;
  const std::string windows = names_of({{8, 1}, {8, 2}});
  EXPECT_NE(windows.find("name=\"size_bytes=8 window=2\""), std::string::npos) << windows;
}

TEST(Junit, TimesAreThoseOfTheReport) {
  Report report = sample_report();
  report.results[0].time_s = 0.25;
  report.checks[0].time_s = 0.001;
  const std::string xml = write_junit(report);
  EXPECT_NE(xml.find("<testsuites name=\"shmemctl\" tests=\"6\" failures=\"2\" errors=\"0\" "
                     "time=\"0.877000\">"),
            std::string::npos)
      << xml;
  EXPECT_NE(xml.find("skipped=\"1\" time=\"0.250000\" timestamp=\"2026-11-21T03:33:00.123Z\">"),
            std::string::npos)
      << xml;
  EXPECT_NE(xml.find("name=\"memlock\" time=\"0.001000\"/>"), std::string::npos) << xml;
  EXPECT_EQ(xml.find("time=\"0\""), std::string::npos) << xml;
  elements_of(xml);
}

TEST(Junit, WhatFailsTheRunFails) {
  Report report;
  report.status = ReportStatus::complete;
  report.hotspots = sample_hotspots();
  report.checks = {{"acs", "", "warning", "on", "", "turn it off", "pcie"}};
  report.findings = {{"nic-hotspot-measured", Severity::warning, "mlx5_0", "hot", "map"},
                     {"numa-unknown", Severity::info, "GPU1", "only worth knowing", "look"}};
  const std::string xml = write_junit(report);
  EXPECT_EQ(elements_of(xml).count("failure"), 0u) << xml;
  EXPECT_NE(xml.find("classname=\"nic node7\" name=\"mlx5_0:1\""), std::string::npos) << xml;
  EXPECT_NE(xml.find("it carries more than its siblings: sent 40 GB/s (80% of its link)"),
            std::string::npos)
      << xml;
  report.fail_on = Severity::warning;
  EXPECT_EQ(elements_of(write_junit(report)).at("failure"), 3); // port, check, finding
  report.fail_on = Severity::info;
  EXPECT_EQ(elements_of(write_junit(report)).at("failure"), 4);
}

TEST(Junit, AMissedThresholdSaysWhatMissesIt) {
  Report report;
  report.status = ReportStatus::complete;
  report.thresholds = json::parse(R"([{"expression": "findings[severity=error]==0", "rows": 1,
    "what": "count", "failed": 1, "worst": 2, "passed": false}])");
  report.findings = {{"threshold-missed", Severity::error, "findings[severity=error]==0",
                      "there are 2: a; b", "mend them"}};
  const std::string xml = write_junit(report);
  EXPECT_NE(xml.find("<failure message=\"there are 2: a; b; fix: mend them\"/>"), std::string::npos)
      << xml;
}

TEST(Prometheus, HasTheRowsInBaseUnits) {
  Report report = sample_report();
  report.results[0].params["batch"] = 128; // how the row was measured, not what was measured
  report.hotspots = sample_hotspots();
  const auto series = series_of(write_prometheus(report));
  const std::string labels = "{benchmark=\"put\",scope=\"block\",size_bytes=\"4096\"";
  EXPECT_DOUBLE_EQ(series.at("shmemctl_bandwidth_bytes_per_second" + labels + "}"), 12.5e9);
  EXPECT_DOUBLE_EQ(series.at("shmemctl_operations_per_second" + labels + "}"), 0.625e6);
  EXPECT_DOUBLE_EQ(series.at("shmemctl_latency_seconds" + labels + ",percentile=\"50\"}"), 1.5e-6);
  EXPECT_EQ(series.count("shmemctl_latency_seconds" + labels + ",percentile=\"99\"}"), 0u);
  EXPECT_EQ(series.at("shmemctl_run_success"), 0); // the exit code is 1
  EXPECT_EQ(series.at("shmemctl_run_timestamp_seconds"), 1795231981);
  EXPECT_EQ(series.at("shmemctl_findings{id=\"nic-hotspot\",severity=\"error\"}"), 1);
  EXPECT_EQ(series.at("shmemctl_nic_delta{host=\"node7\",device=\"mlx5_0\",port=\"1\","
                      "counter=\"port_xmit_data_bytes\"}"),
            20);
  for (const auto& [way, value] : {std::pair("sent\"", 40e9), std::pair("received\"", 1e9)})
    EXPECT_EQ(series.at(std::string("shmemctl_nic_traffic_bytes_per_second{host=\"node7\",device="
                                    "\"mlx5_0\",port=\"1\",direction=\"") +
                        way + "}"),
              value);
  EXPECT_EQ(series.at("shmemctl_nic_utilization_ratio{host=\"node7\",device=\"mlx5_0\",port=\"1\","
                      "direction=\"sent\"}"),
            0.8);
  EXPECT_EQ(series.at("shmemctl_nic_hotspot{host=\"node7\",device=\"mlx5_0\",port=\"1\"}"), 1);
  EXPECT_EQ(series.at("shmemctl_nic_hotspot{host=\"node7\",device=\"eth0\",port=\"1\"}"), 0);
  EXPECT_EQ(series.at("shmemctl_nic_imbalance_ratio{kind=\"node\",name=\"node7\",direction="
                      "\"sent\"}"),
            1);
  // The rate of eth0's link is unknown, and so is what it carried.
  EXPECT_EQ(series.count("shmemctl_nic_utilization_ratio{host=\"node7\",device=\"eth0\",port=\"1\","
                         "direction=\"sent\"}"),
            0u);
  // One counter was not read, so there is no number for it.
  int deltas = 0;
  for (const auto& [name, value] : series)
    deltas += name.rfind("shmemctl_nic_delta", 0) == 0 ? 1 : 0;
  EXPECT_EQ(deltas, 1);
}

TEST(Prometheus, RowsOfRunsAreDistinguished) {
  Report report = sample_report();
  report.results.resize(1);
  report.results.push_back(report.results[0]);
  RunInfo run;
  run.hosts = {"a"};
  report.runs = {run, run};
  report.results[0].run = 0;
  report.results[1].run = 1;
  std::size_t bandwidths = 0;
  for (const auto& [name, value] : series_of(write_prometheus(report)))
    bandwidths += name.rfind("shmemctl_bandwidth", 0) == 0 ? 1 : 0;
  EXPECT_EQ(bandwidths, 2u);
}

TEST(Prometheus, IsWellFormedWhateverTheReportHolds) {
  series_of(write_prometheus(hostile_report()));
  series_of(write_prometheus(Report{}));
}

} // namespace
} // namespace shmemctl
