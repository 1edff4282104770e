#include "reports/compare/thresholds.h"

#include <gtest/gtest.h>

#include "reports/validate.h"
#include "tests/support/expect_error.h"
#include "tests/unit/reports/compare/fake_reports.h"

namespace shmemctl {
namespace {

using test::expect_error;
using test::report_of;
using test::timed_row;

ResultRow put(int size_bytes, double bandwidth_GBps) {
  ResultRow row = timed_row(
      "put", {{"size_bytes", size_bytes}, {"traffic", "pair"}, {"graph", true}}, {1, 2, 3});
  row.bandwidth_GBps = bandwidth_GBps;
  return row;
}

std::vector<LoadedReport> reports() {
  ResultRow barrier = timed_row("barrier", {{"traffic", "all to all, often"}}, {5, 6, 7});
  return {report_of("r.json", {put(1 << 20, 310), put(4 << 20, 290), barrier})};
}

ThresholdOutcome hold(const std::string& expression) {
  return hold_against(parse_threshold(expression, "--require"), reports());
}

TEST(Threshold, TakesItsParts) {
  const Threshold threshold =
      parse_threshold(" put[ bytes = 1M , traffic=\"a, ]b\" ] . bandwidth_GBps >= 3.5e2 ", "x");
  EXPECT_EQ(threshold.case_pattern, "put");
  ASSERT_EQ(threshold.conditions.size(), 2u);
  EXPECT_EQ(threshold.conditions[0], std::make_pair(std::string("bytes"), std::string("1M")));
  EXPECT_EQ(threshold.conditions[1].second, "a, ]b");
  EXPECT_EQ(threshold.metric, "bandwidth_GBps");
  EXPECT_EQ(threshold.comparison, Threshold::Operator::at_least);
  EXPECT_EQ(threshold.limit, 350);
  EXPECT_EQ(parse_threshold("bringup.put.p50_us<4", "x").case_pattern, "bringup.put");
  EXPECT_EQ(parse_threshold("put[].p99_ns>4", "x").metric, "p99_ns");
}

TEST(Threshold, WhatDoesNotParseNamesThePlaceAndWhatWasExpected) {
  const struct {
    const char *text, *place, *expected;
  } refused[] = {
      {"", "column 1", "CASE.METRIC"},
      {"put", "column 4", "CASE.METRIC"},
      {"put>=3", "column 4", "CASE.METRIC"},
      {".p50_us<3", "column 1", "the name of a case"},
      {"[bytes=1].p50_us<3", "column 1", "the name of a case"},
      {"put[bytes", "column 10", "= and a value"},
      {"put[bytes=", "column 11", "a value"},
      {"put[=1].p50_us<3", "column 5", "a parameter"},
      {"put[bytes=1M.p50_us<3", "column 22", "a , or a ]"},
      {"put[bytes=\"1M].p50_us<3", "column 24", "a \""},
      {"put[bytes=1M]p50_us<3", "column 14", "a . and a metric"},
      {"put.bandwith_GBps>=3", "column 5", "did you mean bandwidth_GBps"},
      {"put.p50_bananas<3", "column 5", "a metric"},
      {"put.p50_us", "column 11", ">=, <=, > or <"},
      {"put.p50_us=3", "column 11", ">=, <=, > or <"},
      {"put.p50_us<", "column 12", "a number"},
      {"put.p50_us<3us", "column 12", "a number"},
      {"put.p50_us<nan", "column 12", "a number"},
      {"put.p50_us<inf", "column 12", "a number"},
  };
  for (const auto& [text, place, expected] : refused)
    expect_error(ExitCode::usage, {"--require", place, expected},
                 [&] { parse_threshold(text, "--require"); });
}

TEST(ThresholdFile, LinesAndComments) {
  const auto thresholds =
      parse_threshold_file("# limits\n\nput.p50_us<3 # fast\r\n  get.p50_us<4\n", "limits.txt");
  ASSERT_EQ(thresholds.size(), 2u);
  EXPECT_EQ(thresholds[0].expression, "put.p50_us<3");
  EXPECT_EQ(thresholds[1].source, "limits.txt, line 4");
  expect_error(ExitCode::usage, {"limits.txt", "line 2", "column 5", "expected"},
               [] { parse_threshold_file("put.p50_us<3\nput.x<3\n", "limits.txt"); });
  expect_error(ExitCode::usage, {"limits.txt", "no threshold"},
               [] { parse_threshold_file("# nothing\n", "limits.txt"); });
}

TEST(Threshold, HoldsEveryRowThatItIsAbout) {
  EXPECT_TRUE(hold("put[bytes=1M].bandwidth_GBps>=300").missed.empty());
  const ThresholdOutcome outcome = hold("put.bandwidth_GBps>=300");
  EXPECT_EQ(outcome.rows, 2u);
  ASSERT_EQ(outcome.missed.size(), 1u);
  EXPECT_NE(outcome.missed[0].find("size_bytes=4194304"), std::string::npos);
  EXPECT_NE(outcome.missed[0].find("290"), std::string::npos);
  EXPECT_EQ(outcome.worst, 290);
  EXPECT_TRUE(hold("put.bandwidth_GBps>=290").missed.empty());
  EXPECT_EQ(hold("put.bandwidth_GBps>290").missed.size(), 1u);
  EXPECT_TRUE(hold("put[graph=true].latency_us<=2").missed.empty());
  EXPECT_EQ(hold("put.p50_us<2").missed.size(), 2u);
  EXPECT_EQ(hold("barrier[traffic=\"all to all, often\"].max_us<=7").rows, 1u);
  EXPECT_EQ(hold("put[host=node1].p50_us<=2").rows, 2u);
}

TEST(Threshold, RowsWithoutTheNumberMissItUnlessAPatternFoundThem) {
  EXPECT_EQ(hold("barrier.bandwidth_GBps>=1").missed.size(), 1u);
  EXPECT_EQ(hold("*.bandwidth_GBps>=1").rows, 2u);
  EXPECT_EQ(hold("put.p99_us<100").missed.size(), 2u); // three samples have no p99
  EXPECT_EQ(hold("put.p50_ns<100").missed.size(), 2u); // the rows are in us
}

TEST(Threshold, TheFixForP99SaysHowManySamplesItTakes) {
  const auto fix_of = [](const std::string& expression) {
    const Findings findings = threshold_findings({hold(expression)});
    return findings.size() == 1 ? findings[0].fix : std::string("no finding");
  };
  EXPECT_EQ(fix_of("put.p99_us<100"), "find out why the row does not meet it; p99 takes 100 "
                                      "samples: -D 5 measures more, or change --require");
  EXPECT_EQ(fix_of("put.p50_us<2"), "find out why the row does not meet it, or change --require");
  EXPECT_EQ(fix_of("put.p50_us<100"), "no finding");
}

TEST(Threshold, FailedAndSkippedRowsMissIt) {
  std::vector<LoadedReport> loaded = reports();
  loaded[0].report.results[0].verified = Verified::failed;
  loaded[0].report.results[1].status = RowStatus::skip;
  loaded[0].report.results[1].reason = "no peer";
  const auto outcome = hold_against(parse_threshold("p*.bandwidth_GBps>=1", "x"), loaded);
  ASSERT_EQ(outcome.missed.size(), 2u);
  EXPECT_NE(outcome.missed[1].find("no peer"), std::string::npos);
}

TEST(Threshold, OneAboutNothingIsAnErrorNotAPass) {
  const std::string wrong_size = expect_error(ExitCode::usage, {"matches nothing"},
                                              [] { hold("put[bytes=3M].bandwidth_GBps>=1"); });
  EXPECT_NE(wrong_size.find("size_bytes=1048576"), std::string::npos) << wrong_size;
  const std::string wrong_case =
      expect_error(ExitCode::usage, {"no row of that case"}, [] { hold("putt.p50_us<3"); });
  EXPECT_NE(wrong_case.find("did you mean put"), std::string::npos) << wrong_case;
  expect_error(ExitCode::usage, {"matches nothing"}, [] { hold("ba*.bandwidth_GBps>=1"); });
  expect_error(ExitCode::usage, {"matches nothing"}, [] { hold("put[host=x].p50_us<3"); });
}

TEST(Threshold, OutcomesAreAPartOfTheReport) {
  const std::vector<ThresholdOutcome> outcomes{hold("put.bandwidth_GBps>=300"),
                                               hold("barrier.p50_us<=6")};
  Report report = report_of("r", {}).report;
  report.thresholds = thresholds_json(outcomes);
  report.findings = threshold_findings(outcomes);
  EXPECT_TRUE(validate_report(to_json(report)).empty());
  EXPECT_EQ(report.thresholds[0]["passed"], false);
  EXPECT_EQ(report.thresholds[1]["passed"], true);
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].id, "threshold-missed");
}

/// Findings, checks, and two ports of which one is nearly full.
std::vector<LoadedReport> node_reports() {
  LoadedReport loaded = report_of("r.json", {});
  Report& report = loaded.report;
  report.findings = {{"nic-hotspot", Severity::error, "mlx5_0", "shared", "map"},
                     {"nic-hotspot-measured", Severity::warning, "mlx5_1", "hot", "map"},
                     {"bench-interference", Severity::warning, "put", "noise", "wait"}};
  report.checks = {{"memlock", "", "pass", "", "", "", "memory"},
                   {"acs", "", "warning", "", "", "", "pcie"}};
  report.hotspots = nlohmann::json::parse(R"({"ports": [
    {"host": "n", "device": "mlx5_0", "port": 1, "rdma": true, "fabric": true, "hot": false,
     "sent": {"GBps": 10, "link_share": 0.2}, "received": {"GBps": 1, "link_share": 0.02}},
    {"host": "n", "device": "mlx5_1", "port": 1, "rdma": true, "fabric": true, "hot": true,
     "sent": {"GBps": 44, "link_share": 0.88}, "received": {"GBps": 40, "link_share": 0.8}},
    {"host": "n", "device": "eth0", "port": 1, "rdma": false, "fabric": false, "hot": false,
     "link_Gbps": null, "link_Gbps_reason": "not told",
     "sent": {"GBps": 1}, "received": {"GBps": null, "GBps_reason": "it was reset"}}],
   "groups": [
    {"kind": "node", "name": "n", "direction": "sent", "skew": 1.63},
    {"kind": "node", "name": "n", "direction": "received", "skew": 1.1}]})");
  return {loaded};
}

ThresholdOutcome hold_node(const std::string& expression) {
  return hold_against(parse_threshold(expression, "--require"), node_reports());
}

TEST(SectionThreshold, FindingsAndChecksAreCounted) {
  EXPECT_EQ(hold_node("findings[severity=error]==0").missed,
            std::vector<std::string>{"there is 1: nic-hotspot (mlx5_0)"});
  EXPECT_EQ(hold_node("findings[ severity = warning ] == 0").missed,
            std::vector<std::string>{
                "there are 2: nic-hotspot-measured (mlx5_1); bench-interference (put)"});
  EXPECT_EQ(hold_node("findings[id=nic-*]<=1").worst, 2);
  EXPECT_TRUE(hold_node("findings<=3").missed.empty());
  EXPECT_EQ(hold_node("findings<3").missed.size(), 1u);
  EXPECT_EQ(hold_node("findings.count==3").rows, 1u);
  EXPECT_TRUE(hold_node("findings[id=nic-*] . count == 2").missed.empty());
  EXPECT_EQ(hold_node("findings[id=nic-hotspot,severity=warning]>=1").missed,
            std::vector<std::string>{"there are none"});
  EXPECT_TRUE(hold_node("findings[subject=mlx5_?]==2").missed.empty());
  EXPECT_TRUE(hold_node("checks[status=fail]==0").missed.empty());
  EXPECT_EQ(hold_node("checks[group=pcie,status=warning]==0").missed,
            std::vector<std::string>{"there is 1: acs (warning)"});
}

TEST(SectionThreshold, LoadsOfNics) {
  EXPECT_TRUE(hold_node("hotspots[device=mlx5_0].utilisation<=0.7").missed.empty());
  const ThresholdOutcome hot = hold_node("hotspots[device=mlx5_1].utilisation<=0.7");
  EXPECT_EQ(hot.rows, 1u);
  EXPECT_EQ(hot.missed, std::vector<std::string>{"n mlx5_1:1 sent has 0.88, received has 0.8"});
  EXPECT_EQ(hot.worst, 0.88);
  // A port whose share is unknown is no part of a pattern, and misses what names it.
  const ThresholdOutcome all = hold_node("hotspots.utilization<=0.85");
  EXPECT_EQ(all.rows, 2u);
  EXPECT_EQ(all.missed, std::vector<std::string>{"n mlx5_1:1 sent has 0.88"});
  EXPECT_EQ(hold_node("hotspots[device=eth0,direction=sent].utilisation<=1").missed,
            std::vector<std::string>{"n eth0 sent has no utilisation (not told)"});
  EXPECT_EQ(hold_node("hotspots[device=eth0,direction=received].GBps<=1").missed,
            std::vector<std::string>{"n eth0 received has no GBps (it was reset)"});
  EXPECT_EQ(hold_node("hotspots[fabric=true].GBps>=5").missed.size(), 1u);
  EXPECT_EQ(hold_node("hotspots[link=mlx5_1:1,hot=true].GBps<=40").missed,
            std::vector<std::string>{"n mlx5_1:1 sent has 44"});
  EXPECT_EQ(hold_node("hotspots.imbalance<=1.5").missed,
            std::vector<std::string>{"node n sent has 1.63"});
  EXPECT_TRUE(hold_node("hotspots[kind=node,direction=received].imbalance<=1.5").missed.empty());
}

TEST(SectionThreshold, WordsThatAreNoneAreRefused) {
  const struct {
    const char *text, *place, *expected;
  } refused[] = {
      {"findings[severty=error]==0", "column 10", "did you mean severity"},
      {"findings[severity=eror]==0", "column 19", "did you mean error"},
      {"findings[severity=error]=0", "column 25", "==, >=, <=, > or <"},
      {"findings.counts==0", "column 10", "count"},
      {"findings[id=*]counts==0", "column 15", "count"},
      {"hotspots[dev=mlx5_0].GBps<=1", "column 10", "one of host, device"},
      {"hotspots[direction=send].GBps<=1", "column 20", "did you mean sent"},
      {"hotspots.utilsation<=1", "column 10", "did you mean utilisation"},
      {"hotspots[device=mlx5_0].imbalance<=1", "column 10", "one of kind, name, direction"},
      {"hotspots.GBps==1", "column 14", ">=, <=, > or <"},
      {"put.p50_us==1", "column 11", ">=, <=, > or <"},
  };
  for (const auto& [text, place, expected] : refused)
    expect_error(ExitCode::usage, {"--require", place, expected},
                 [&] { parse_threshold(text, "--require"); });
}

TEST(SectionThreshold, OneAboutNothingIsAnErrorNotAPass) {
  const std::string id = expect_error(ExitCode::usage, {"no id is nic-hotpsot"},
                                      [] { hold_node("findings[id=nic-hotpsot]==0"); });
  EXPECT_NE(id.find("did you mean nic-hotspot?"), std::string::npos) << id;
  EXPECT_TRUE(hold_node("findings[id=mapping-collapse]==0").missed.empty()) << "an id, not found";
  const std::string device = expect_error(ExitCode::usage, {"no NIC or group that meets"}, [] {
    hold_node("hotspots[device=mlx5_11].utilisation<=1");
  });
  EXPECT_NE(device.find("did you mean device=mlx5_1?"), std::string::npos) << device;
  const Threshold load = parse_threshold("hotspots.utilisation<=1", "x");
  const Threshold checks = parse_threshold("checks[status=fail]==0", "x");
  expect_error(ExitCode::usage, {"no report has NIC loads"},
               [&] { hold_against(load, reports()); });
  expect_error(ExitCode::usage, {"no report has results of checks"},
               [&] { hold_against(checks, reports()); });
}

TEST(SectionThreshold, OutcomesAreAPartOfTheReport) {
  const std::vector<ThresholdOutcome> outcomes{hold_node("findings[severity=error]==0"),
                                               hold_node("hotspots.utilisation<=0.7"),
                                               hold_node("hotspots.imbalance<=2")};
  Report report = report_of("r", {}).report;
  report.thresholds = thresholds_json(outcomes);
  report.findings = threshold_findings(outcomes);
  EXPECT_TRUE(validate_report(to_json(report)).empty());
  EXPECT_EQ(report.thresholds[0]["what"], "count");
  EXPECT_EQ(report.thresholds[1]["what"], "NIC port");
  EXPECT_EQ(report.thresholds[2]["what"], "NIC group");
  ASSERT_EQ(report.findings.size(), 2u);
  EXPECT_EQ(report.findings[0].message,
            "findings[severity=error]==0: there is 1: nic-hotspot (mlx5_0)");
  EXPECT_EQ(report.findings[1].message,
            "hotspots.utilisation<=0.7: missed by 1 NIC port of 2: n mlx5_1:1 sent has 0.88, "
            "received has 0.8");
}

} // namespace
} // namespace shmemctl
