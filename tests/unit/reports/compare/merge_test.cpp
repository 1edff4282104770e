#include "reports/compare/merge.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

#include "reports/compare/compare.h"
#include "reports/csv.h"
#include "reports/text.h"
#include "reports/validate.h"
#include "tests/support/expect_error.h"
#include "tests/unit/reports/compare/fake_reports.h"

namespace shmemctl {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::expect_error;
using test::Noise;
using test::report_of;
using test::timed_row;

LoadedReport node(const std::string& name, double middle, std::uint64_t seed) {
  LoadedReport loaded = report_of(
      name + ".json",
      {timed_row("put", {{"size_bytes", 8}}, Noise(seed).samples(30, middle, 0.02))}, name);
  loaded.report.checks = {{"memlock", "locked memory", "pass", "", "", "", "memory"}};
  loaded.report.findings = {{"port-down", Severity::warning, "mlx5_0", "down", "up"}};
  loaded.report.nic_counters = {{name, "mlx5_0", "port_xmit_data_bytes", 1, 10, 30, 20}};
  return loaded;
}

TEST(Merge, EachPartNamesItsRun) {
  LoadedReport second = node("b", 20, 2);
  second.report.status = ReportStatus::incomplete;
  second.report.exit_code = ExitCode::deadline;
  second.report.started_at = "2026-11-20T03:33:00Z";
  const Report merged = merge_reports({node("a", 10, 1), second});
  EXPECT_TRUE(validate_report(to_json(merged)).empty());
  ASSERT_EQ(merged.runs.size(), 2u);
  EXPECT_EQ(merged.runs[1].hosts, std::vector<std::string>{"b"});
  EXPECT_EQ(merged.results.at(0).run, 0);
  EXPECT_EQ(merged.results.at(1).run, 1);
  EXPECT_EQ(merged.checks.at(1).run, 1);
  EXPECT_EQ(merged.findings.at(1).message, "b at 2026-11-20T03:33:00Z: down");
  EXPECT_EQ(merged.nic_counters.at(1).run, 1);
  EXPECT_EQ(merged.hosts.size(), 2u);
  EXPECT_EQ(merged.status, ReportStatus::incomplete);
  EXPECT_EQ(merged.exit_code, ExitCode::deadline);
  EXPECT_EQ(merged.started_at, "2026-11-20T03:33:00Z");
  EXPECT_EQ(merged.finished_at, "2026-11-21T03:34:00Z");
}

NetworkRow network_of(const std::string& transport) {
  NetworkRow row;
  row.transport = transport;
  row.first = row.second = {0, 1};
  row.pairs = 1;
  return row;
}

TEST(Merge, HostsOfTwoJobsStandOnceAndNumbersStayWithTheirRun) {
  LoadedReport first = node("a", 10, 1), second = node("a", 20, 2);
  for (LoadedReport* loaded : {&first, &second}) {
    loaded->report.hosts = json::parse(R"([{"name": "a", "nodes": [0], "pes": [0]},
                                           {"name": "b", "nodes": [1], "pes": [1]}])");
    loaded->report.other_nodes = json::parse(R"([{"nodes": [1], "left_out": "too long"}])");
  }
  second.report.hosts[1]["pes"] = {1, 2};
  first.report.networks = {network_of("ibrc")};
  second.report.networks = {network_of("libfabric")};
  const Report merged = merge_reports({first, second});
  EXPECT_TRUE(validate_report(to_json(merged)).empty());
  EXPECT_EQ(merged.hosts,
            json::parse(R"([{"name": "a", "nodes": [0], "pes": [0]}, {"name": "b"}])"));
  ASSERT_EQ(merged.networks.size(), 2u);
  EXPECT_EQ(merged.networks[1].run, 1);
  EXPECT_EQ(merged.other_nodes[1]["run"], 1);
  std::ostringstream out;
  write_text(out, merged, {});
  EXPECT_NE(out.str().find("  1  among node [0-1]      1  libfabric  -"), std::string::npos)
      << out.str();
}

/// With their facts; each is looked up, and not compared with all others.
TEST(Merge, AThousandHostsStandOnceEach) {
  std::vector<LoadedReport> runs(2, node("a", 10, 1));
  for (LoadedReport& run : runs) {
    run.report.hosts = json::array();
    for (int host = 0; host < 1000; ++host) {
      json facts = json::object();
      for (int fact = 0; fact < 50; ++fact)
        facts["fact" + std::to_string(fact)] = "value";
      run.report.hosts.push_back(
          {{"name", "node" + std::to_string(host)}, {"facts", std::move(facts)}, {"pes", {host}}});
    }
  }
  runs[1].report.hosts[7]["pes"] = {1};
  const Report merged = merge_reports(runs);
  ASSERT_EQ(merged.hosts.size(), 1000u);
  EXPECT_EQ(merged.hosts[8]["pes"][0], 8);
  EXPECT_FALSE(merged.hosts[7].contains("pes")) << "another number in each run";
}

TEST(Merge, RowsNameTheirRunInTextAndCsv) {
  const Report merged = merge_reports({node("a", 10, 1), node("b", 20, 2)});
  std::ostringstream out;
  write_text(out, merged, {});
  EXPECT_NE(out.str().find("run  hosts  started"), std::string::npos) << out.str();
  EXPECT_NE(out.str().find("run  size"), std::string::npos) << out.str();
  EXPECT_EQ(write_csv(merged).rfind("run,case,size_bytes,", 0), 0u);
}

TEST(Merge, IsReadBackAndMergesAgain) {
  const Report merged = merge_reports({node("a", 10, 1), node("b", 20, 2)});
  const Report again = report_from_json(to_json(merged), "merged");
  EXPECT_EQ(to_json(again), to_json(merged));
  const Report all = merge_reports({node("c", 5, 3), {"merged.json", again}});
  ASSERT_EQ(all.runs.size(), 3u);
  EXPECT_EQ(all.results.at(2).run, 2);
  EXPECT_EQ(all.runs[2].hosts, std::vector<std::string>{"b"});
}

TEST(Merge, AMergedReportComparesLikeItsParts) {
  const std::vector<LoadedReport> base{node("a", 10, 1), node("b", 20, 2)};
  const std::vector<LoadedReport> other{node("a", 10, 3), node("b", 25, 4)};
  const Comparison apart = compare_reports(base, other, {});
  const Comparison merged =
      compare_reports({{"base", merge_reports(base)}}, {{"new", merge_reports(other)}}, {});
  ASSERT_EQ(merged.rows.size(), apart.rows.size());
  for (std::size_t i = 0; i < apart.rows.size(); ++i) {
    EXPECT_EQ(merged.rows[i].verdict, apart.rows[i].verdict);
    EXPECT_EQ(merged.rows[i].hosts, apart.rows[i].hosts);
    EXPECT_EQ(merged.rows[i].p, apart.rows[i].p);
  }
  EXPECT_EQ(merged.rows.at(1).verdict, RowVerdict::worse);
}

/// The `hotspots` of one node.
json hotspots_of(const std::string& host, double window_s, const char* mode = "time") {
  json port{{"host", host},   {"device", "mlx5_0"},  {"port", 1},    {"rdma", true},
            {"fabric", true}, {"direction", "idle"}, {"hot", false}, {"link_Gbps", 400.0},
            {"pes", {0}},     {"window_s", window_s}};
  port["sent"] = port["received"] = {{"GBps", 0.0}};
  return {
      {"mode", mode},
      {"window_s", window_s},
      {"samples", static_cast<int>(window_s)},
      {"interval_s", window_s / 10},
      {"thresholds", "built in"},
      {"ports", {port}},
      {"groups",
       {{{"kind", "node"},
         {"name", host},
         {"direction", "sent"},
         {"unit", "GB/s"},
         {"ports", 1},
         {"median", 0},
         {"mad", 0},
         {"skew", 1},
         {"hot", json::array()},
         {"low", json::array()},
         {"unknown", json::array()}}}},
      {"signs", json::array()},
      {"unavailable",
       {{{"host", host}, {"device", "mlx5_0"}, {"port", 1}, {"counter", "x"}, {"reason", "y"}}}}};
}

TEST(Merge, HotSpotsOfDifferentHostsStandSideBySide) {
  LoadedReport first = node("a", 10, 1), second = node("b", 10, 2);
  first.report.hotspots = hotspots_of("a", 10);
  second.report.hotspots = hotspots_of("b", 20);
  const Report merged = merge_reports({first, second, node("c", 10, 3)});
  EXPECT_EQ(validate_report(to_json(merged)).size(), 0u);
  ASSERT_TRUE(merged.hotspots.is_object());
  for (const char* list : {"ports", "groups", "unavailable"}) {
    ASSERT_EQ(merged.hotspots.at(list).size(), 2u) << list;
    EXPECT_EQ(merged.hotspots.at(list).at(1), second.report.hotspots.at(list).at(0)) << list;
  }
  EXPECT_EQ(merged.hotspots.at("window_s"), 20);
  EXPECT_EQ(merged.hotspots.at("samples"), 10);
  EXPECT_FALSE(merged.hotspots.contains("interval_s"));
  EXPECT_NE(merged.findings.back().id, "merge-left-out");
  // If they are of one host at two times, or were measured in two ways, there is no single result.
  for (const json& other : {hotspots_of("a", 20), hotspots_of("b", 10, "watch")}) {
    second.report.hotspots = other;
    const Report apart = merge_reports({first, second});
    EXPECT_TRUE(apart.hotspots.is_null());
    EXPECT_EQ(apart.findings.back().id, "merge-left-out");
    EXPECT_EQ(apart.findings.back().subject, "hotspots");
  }
}

TEST(Merge, PartsThatDifferAreLeftOutWithAFinding) {
  LoadedReport first = node("a", 10, 1), second = node("b", 10, 2);
  first.report.mapping = second.report.mapping = {
      {"policy", "nvshmem"}, {"world", "node"}, {"pes", json::array()}, {"nics", json::array()}};
  first.report.topology = {{"gpus", json::array()},
                           {"nics", json::array()},
                           {"distances", {{"labels", json::array()}, {"matrix", json::array()}}}};
  second.report.topology = first.report.topology;
  second.report.topology["hostname"] = "b";
  const Report merged = merge_reports({first, second});
  EXPECT_EQ(merged.mapping, first.report.mapping);
  EXPECT_TRUE(merged.topology.is_null());
  EXPECT_EQ(merged.findings.back().id, "merge-left-out");
  // Each run has its own, also where it was merged before.
  EXPECT_TRUE(validate_report(to_json(merged)).empty());
  const Report read = report_from_json(to_json(merged), "merged");
  LoadedReport third = node("c", 10, 3);
  third.report.topology = first.report.topology;
  for (const Report& each : {merged, read, merge_reports({{"", read}, third})}) {
    ASSERT_GE(each.runs.size(), 2u);
    EXPECT_EQ(each.runs[0].topology, first.report.topology);
    EXPECT_EQ(each.runs[1].topology, second.report.topology);
    EXPECT_TRUE(each.topology.is_null());
  }
  // Where all agree, it is there once.
  const Report alike = merge_reports({first, third});
  EXPECT_EQ(alike.topology, first.report.topology);
  EXPECT_TRUE(alike.runs[0].topology.is_null());
}

class Folder : public ::testing::Test {
protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "test-shmemctl-merge-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  std::string write(const std::string& name, const Report& report) {
    return write(name, to_text(to_json(report)));
  }

  fs::path folder_;
};

TEST_F(Folder, StandsForItsReportsInNaturalOrder) {
  write("run10.json", node("c", 1, 1).report);
  write("run9.json", node("b", 1, 2).report);
  write("notes.txt", "not a report");
  const std::vector<LoadedReport> reports = load_reports({folder_.string()});
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_TRUE(reports[0].path.ends_with("run9.json"));
}

TEST_F(Folder, WithoutReportsIsRefused) {
  expect_error(ExitCode::usage, {"no *.json file in this directory"},
               [&] { load_reports({folder_.string()}); });
}

TEST_F(Folder, ARunThatIsThereTwiceIsRefused) {
  write("a.json", node("a", 1, 1).report);
  write("copy.json", node("a", 1, 1).report);
  expect_error(ExitCode::usage, {"copy.json", "a.json", "same run"},
               [&] { load_reports({folder_.string()}); });
  write("merged.json", merge_reports({node("a", 1, 1), node("b", 1, 2)}));
  fs::remove(folder_ / "copy.json");
  expect_error(ExitCode::usage, {"merged.json", "same run"},
               [&] { load_reports({folder_.string()}); });
}

TEST_F(Folder, BrokenReportsAreRefusedByName) {
  const std::string whole = to_text(to_json(node("a", 1, 1).report));
  const std::string cut = write("cut.json", whole.substr(0, whole.size() / 2));
  expect_error(ExitCode::usage, {"cut.json", "line"}, [&] { load_reports({cut}); });
  json document = json::parse(whole);
  document["schema"]["version"] = "2.0.0";
  const std::string newer = write("newer.json", document.dump());
  expect_error(ExitCode::usage, {"newer.json", "2.0.0"}, [&] { load_reports({newer}); });
  document["schema"]["version"] = report_schema_version;
  document["results"][0]["samples"][0] = "NaN";
  const std::string words = write("words.json", document.dump());
  expect_error(ExitCode::usage, {"words.json", "/results/0/samples/0"},
               [&] { load_reports({words}); });
  document["results"][0]["samples"][0] = 1e300;
  const std::string absurd = write("absurd.json", document.dump());
  expect_error(ExitCode::usage, {"absurd.json", "/results/0/samples/0"},
               [&] { load_reports({absurd}); });
  const std::string nan = write("nan.json", "{\"results\": [NaN]}");
  expect_error(ExitCode::usage, {"nan.json", "invalid JSON"}, [&] { load_reports({nan}); });
}

TEST_F(Folder, ARunThatIsNotThereIsRefused) {
  Report merged = merge_reports({node("a", 1, 1), node("b", 1, 2)});
  merged.results[1].run = 2;
  const std::string path = write("m.json", merged);
  expect_error(ExitCode::usage,
               {"m.json", "/results", "item 2 (counted from 0) of /runs, which has 2 items"},
               [&] { load_reports({path}); });
  const Report good = merge_reports({node("a", 1, 1), node("b", 1, 2)});
  const auto refused = [&](const char* list, const auto& add) {
    Report bad = good;
    add(bad);
    const std::string file = write("bad.json", bad);
    expect_error(ExitCode::usage, {"bad.json", list, "item 2"}, [&] { load_reports({file}); });
  };
  refused("/networks", [](Report& bad) {
    bad.networks = {network_of("ibrc")};
    bad.networks[0].run = 2;
  });
  refused("/processes", [](Report& bad) {
    bad.processes = json::parse(R"([{"pid": 1, "skipped": [], "run": 2}])");
  });
  refused("/other_nodes", [](Report& bad) {
    bad.other_nodes = json::parse(R"([{"nodes": [1], "left_out": "too long", "run": 2}])");
  });
}

} // namespace
} // namespace shmemctl
