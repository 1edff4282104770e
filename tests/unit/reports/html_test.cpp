// The page's model, and its text.
#include <ctime>
#include <gtest/gtest.h>
#include <map>
#include <set>

#include "reports/html/blocks.h"
#include "reports/html/heat_map.h"
#include "reports/html/page_model.h"
#include "tests/unit/reports/page.h"
#include "tests/unit/reports/samples.h"

namespace shmemctl::html {
namespace {

TEST(ScriptJson, EndsNoElementAndKeepsEveryText) {
  const json texts = {"</script><!-- <script>", "\xe2\x80\xa8 \xe2\x80\xa9", "\"'`\\ ${1} &lt;",
                      std::string("\x01\x1f\x7f\0", 4), "\xf0\x9f\x98\x80"};
  const std::string text = script_json(texts);
  EXPECT_EQ(text.find_first_of("<>&"), std::string::npos) << text;
  for (const char c : text)
    EXPECT_TRUE(c >= 0x20 && c < 0x7f) << text;
  EXPECT_EQ(json::parse(text), texts);
  // A lone surrogate, as CESU-8 would have it, and half a character.
  EXPECT_TRUE(json::accept(script_json(json("\xed\xa0\x80 \xf0\x9f"))));
}

TEST(Page, HashesAreBase64) {
  EXPECT_EQ(base64_of_hex("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="); // SHA-256 of nothing
  EXPECT_EQ(base64_of_hex("666f6f62"), "Zm9vYg==");          // "foob", RFC 4648
  EXPECT_EQ(base64_of_hex(""), "");
}

TEST(Page, HasAPolicyAndTheLicence) {
  const std::string page = write_html(page_model({{{"a.json", sample_report()}}, {}}));
  EXPECT_NE(page.find("default-src 'none'; script-src 'sha256-"), std::string::npos);
  EXPECT_EQ(page.find("unsafe-"), std::string::npos);
  EXPECT_NE(page.find("Permission is hereby granted"), std::string::npos);
}

TEST(Rounded, FourDigits) {
  EXPECT_EQ(json(rounded(123.456)).dump(), "123.5");
  EXPECT_EQ(json(rounded(0.000123456)).dump(), "0.0001235");
  EXPECT_EQ(rounded(987654), 987700);
  EXPECT_EQ(rounded(0), 0);
  EXPECT_EQ(rounded(-2.00049), -2);
}

TEST(Table, NumbersThatAScriptCannotHoldAreText) {
  EXPECT_TRUE(cell(json(9223372036854775807)).is_string());
  EXPECT_TRUE(cell(json(4503599627370496)).is_number());
  EXPECT_EQ(cell(json("a\x1b[2J")).get<std::string>().find('\x1b'), std::string::npos);
  EXPECT_TRUE(cell(std::optional<double>()).is_null());
}

TEST(Table, SaysWhatItLeavesOut) {
  TableBlock table("rows", {{"n", ColumnKind::number}});
  for (std::size_t i = 0; i < max_table_rows + 3; ++i)
    table.add({i});
  EXPECT_EQ(table.block().at("rows").size(), max_table_rows);
  EXPECT_NE(table.block().at("note").get<std::string>().find("3 rows more"), std::string::npos);
}

TEST(HeatRange, SmallDifferencesAreNotStretched) {
  HeatView view{"bandwidth", "GB/s", false, {{1.0, 370.0}, {372.0, 1.0}}};
  const auto range = heat_range(view, true);
  ASSERT_TRUE(range);
  EXPECT_LT(range->low, 250);
  EXPECT_EQ(range->high, 372);
  EXPECT_EQ(heat_range(view, false)->low, 1);
  view.less_is_better = true;
  EXPECT_GT(heat_range(view, true)->high, 550);
  view.values = {{std::nullopt}};
  EXPECT_FALSE(heat_range(view, false));
}

TEST(HeatMap, LeavesOutWhatThePageCannotHold) {
  HeatMap map;
  map.rows = map.columns = {"a", "b"};
  map.views = {{"one", "us", true, {{1.0, 2.0}, {3.0, 4.0}}},
               {"two", "us", true, {{1.0, 2.0}, {3.0, 4.0}}}};
  CellBudget budget{5, 0};
  const json block = map.block(budget);
  EXPECT_EQ(block.at("views").size(), 1U);
  EXPECT_EQ(budget.left_out, 1U);
  EXPECT_TRUE(map.block(budget).is_null());
}

TEST(Sweeps, HaveTheLimitAndTheBaseline) {
  const json model =
      page_model({{run_of("2026-11-21T03:33:00Z", 1.5)}, {run_of("2026-11-20T03:33:00Z")}});
  const json chart = find_block(find_section(model, "sweeps"), "chart");
  ASSERT_TRUE(chart.is_object());
  EXPECT_EQ(chart.at("x_axis"), "size");
  const json& time = chart.at("views").at(0);
  EXPECT_EQ(time.at("name"), "time [us]");
  EXPECT_EQ(series_named(time, "measured"), json::parse("[[8,3],[4096,6]]"));
  EXPECT_EQ(series_named(time, "baseline"), json::parse("[[8,2],[4096,4]]"));
  const json limit = series_named(chart.at("views").at(1), "limit: mlx5_0");
  ASSERT_EQ(limit.size(), 2U);
  EXPECT_DOUBLE_EQ(limit.at(1).at(1).get<double>(), 50);
  EXPECT_EQ(find_section(model, "comparison").at("blocks").at(0).at("text"),
            "Compared with the baseline: 2 worse.");
  EXPECT_EQ(model.at("verdict").at("level"), "fail");
}

TEST(Sweeps, OpenOnWhatTheirCaseIsAbout) {
  const auto first_view = [](const char* name, bool has_rate) {
    LoadedReport loaded = run_of("2026-11-21T03:33:00Z");
    for (ResultRow& row : loaded.report.results) {
      row.case_name = name;
      if (has_rate)
        row.rate_Mops = 3;
    }
    const json chart = find_block(find_section(page_model({{loaded}, {}}), "sweeps"), "chart");
    return chart.at("views").at(0).at("name").get<std::string>();
  };
  EXPECT_EQ(first_view("put-pingpong", false), "time [us]");
  EXPECT_EQ(first_view("put", true), "bandwidth [GB/s]");
  EXPECT_EQ(first_view("message-rate", true), "operations [M/s]");
}

TEST(Sweeps, PrintThePathOfTheDataOnce) {
  LoadedReport loaded = run_of("2026-11-21T03:33:00Z");
  const auto chart_title = [&loaded] {
    const json model = page_model({{loaded}, {}});
    return find_block(find_section(model, "sweeps"), "chart").at("title").get<std::string>();
  };
  EXPECT_EQ(chart_title(), "put");
  const RowPath path{PathEnd{0, "a"}, PathEnd{2, "b\x1b[2J"}, {"libfabric"}, {"eth0"}};
  for (ResultRow& row : loaded.report.results)
    row.path = path;
  const std::string text = "PE 0 (a) -> PE 2 (b\\x1b[2J) by libfabric eth0";
  EXPECT_EQ(chart_title(), "put: " + text);
  const json results = find_section(page_model({{loaded}, {}}), "results");
  EXPECT_EQ(find_block(results, "table").at("columns").back().at("name"), "path");
  for (const json& row : table_titled(results, "All rows"))
    EXPECT_EQ(row.back(), text);
  // A line whose ends differ between rows has no path above it.
  loaded.report.results[0].path->second->pe = 3;
  EXPECT_EQ(chart_title(), "put");
  loaded.report.results[0].path.reset();
  EXPECT_EQ(chart_title(), "put");
}

TEST(Sweeps, OfOneCaseAreBoundedToo) {
  LoadedReport loaded = run_of("2026-11-21T03:33:00Z");
  loaded.report.results.clear();
  for (int line = 0; line < 2500; ++line)
    for (const int size_bytes : {8, 16}) {
      loaded.report.results.push_back(put_row(size_bytes, 1, 1));
      loaded.report.results.back().params["line"] = "l" + std::to_string(line);
    }
  // 12 lines in a chart would be 209 charts.
  const json blocks = find_section(page_model({{loaded}, {}}), "sweeps").at("blocks");
  EXPECT_EQ(blocks.size(), 201U);
  EXPECT_EQ(blocks.back().at("text"),
            "More than 200 charts: the others are left out, the report has their rows.");
}

TEST(Sweeps, OfManyCasesAreBoundedAndThePageSaysSo) {
  LoadedReport loaded = run_of("2026-11-21T03:33:00Z");
  const auto blocks_of = [&](int cases) {
    loaded.report.results.clear();
    for (int number = 0; number < cases; ++number)
      for (const int size_bytes : {8, 16}) {
        loaded.report.results.push_back(put_row(size_bytes, 1, 1));
        loaded.report.results.back().case_name = "case" + std::to_string(number);
      }
    return find_section(page_model({{loaded}, {}}), "sweeps").at("blocks");
  };
  EXPECT_EQ(blocks_of(200).back().at("type"), "chart");
  EXPECT_EQ(blocks_of(200).size(), 200U);
  EXPECT_EQ(blocks_of(201).back().at("type"), "note");
  EXPECT_EQ(blocks_of(201).size(), 201U);
}

TEST(Sweeps, ANumberThatFollowsFromTheSweptOneTearsNoLine) {
  // bench chooses a window for each size.
  LoadedReport loaded = run_of("2026-11-21T03:33:00Z");
  loaded.report.results.clear();
  const auto add = [&](int size, int window, int ctas) {
    ResultRow row = put_row(size, 1 + size, 4);
    row.params.update({{"window", window}, {"ctas", ctas}});
    loaded.report.results.push_back(row);
  };
  for (int size = 8, window = 64; size <= 4096; size *= 8, window /= 4)
    for (const int ctas : {1, 2})
      add(size, window, ctas);
  json view =
      find_block(find_section(page_model({{loaded}, {}}), "sweeps"), "chart").at("views").at(0);
  EXPECT_EQ(series_named(view, "ctas=1").size(), 4U) << view.dump();
  EXPECT_EQ(series_named(view, "ctas=2").size(), 4U);
  add(8, 7, 1); // two windows of one size are two lines
  view = find_block(find_section(page_model({{loaded}, {}}), "sweeps"), "chart").at("views").at(0);
  EXPECT_EQ(series_named(view, "ctas=1 window=7").size(), 1U) << view.dump();
}

/// CPU time of this process, which does not depend on other processes.
double cpu_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

TEST(Page, TakesTimeByTheSizeOfAReportWhateverItsNames) {
  // Every row has parameters that no other row has.
  LoadedReport loaded = run_of("2026-11-21T03:33:00Z");
  for (int row = 0; row < 3000; ++row) {
    loaded.report.results.push_back(put_row(8 << row % 10, 1 + row, 4));
    for (int name = 0; name < 50; ++name)
      loaded.report.results.back().params["p" + std::to_string(row * 50 + name)] = row;
  }
  const double begin = cpu_seconds();
  const json model = page_model({{loaded}, {}});
  EXPECT_LT(cpu_seconds() - begin, 60); // minutes, if each name is searched for in each row
  EXPECT_FALSE(find_section(model, "results").is_null());
}

TEST(Nics, MoreHostsAndNamesThanAPageHoldsAreLeftOutBeforeThereIsAMatrix) {
  LoadedReport loaded = run_of("2026-11-21T03:33:00Z");
  loaded.report.hotspots = {{"ports", json::array()}};
  for (int i = 0; i < 30'000; ++i)
    loaded.report.hotspots["ports"].push_back(
        {{"host", "h" + std::to_string(i)}, {"device", "d" + std::to_string(i)}, {"port", 1}});
  const json model = page_model({{loaded}, {}});
  EXPECT_TRUE(find_block(find_section(model, "nics"), "heatmap").is_null());
  EXPECT_NE(model.value("note", "").find("1 matrix view left out"), std::string::npos);
}

TEST(Results, ParametersThatAreWordsAreNoNumbers) {
  LoadedReport run = run_of("2026-11-21T03:33:00Z");
  run.report.results[0].params = {{"size_bytes", 8}, {"ctas", 4}, {"scope", "warp"}, {"of", 1}};
  run.report.results[1].params = {{"size_bytes", 8}, {"scope", "block"}, {"of", "all"}};
  std::map<std::string, std::string> kinds;
  const json table = find_block(find_section(page_model({{run}, {}}), "results"), "table");
  for (const json& column : table.at("columns"))
    kinds[column.at("name")] = column.at("kind");
  EXPECT_EQ(kinds.at("size_bytes"), "size");
  EXPECT_EQ(kinds.at("ctas"), "number");
  EXPECT_EQ(kinds.at("scope"), "text");
  EXPECT_EQ(kinds.at("of"), "text");
}

TEST(Trend, IsOverTimeWhateverTheOrderOfFiles) {
  const json model = page_model({{run_of("2026-11-22T03:33:00Z", 2), run_of("2026-11-20T03:33:00Z"),
                                  run_of("2026-11-21T03:33:00Z")},
                                 {}});
  const json trend = find_section(model, "trend");
  const json chart = find_block(trend, "chart");
  EXPECT_EQ(chart.at("x_labels"), json::parse(R"(["11-20 03:33", "11-21 03:33", "11-22 03:33"])"));
  EXPECT_EQ(series_named(chart.at("views").at(0), "size_bytes=8"),
            json::parse("[[0,1],[1,1],[2,2]]"));
  const json rows = find_block(trend, "table").at("rows");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_DOUBLE_EQ(rows.at(0).at(8).get<double>(), 1); // twice the first: 100% more
  // One run has none.
  EXPECT_TRUE(find_section(page_model({{run_of("2026-11-20T03:33:00Z")}, {}}), "trend").is_null());
}

TEST(Pairs, AreAMatrixInNaturalOrder) {
  LoadedReport loaded = run_of("2026-11-21T03:33:00Z");
  loaded.report.results.clear();
  for (const auto& [from, to, speed] :
       {std::tuple("GPU10", "GPU2", 100.0), std::tuple("GPU2", "GPU10", 300.0)}) {
    ResultRow row = put_row(1024, 5, speed);
    row.params["source"] = from;
    row.params["target"] = to;
    loaded.report.results.push_back(row);
  }
  const json model = page_model({{loaded}, {}});
  const json map = find_block(find_section(model, "pairs"), "heatmap");
  EXPECT_EQ(map.at("rows"), json::parse(R"(["GPU2", "GPU10"])"));
  EXPECT_EQ(map.at("views").at(0).at("values"), json::parse("[[null, 300.0], [100.0, null]]"));
  EXPECT_TRUE(find_section(model, "sweeps").is_null());
}

TEST(Pairs, OfPesAreAMatrixToo) {
  LoadedReport loaded = run_of("2026-11-21T03:33:00Z");
  loaded.report.results.clear();
  for (const auto& [from, to, speed] : {std::tuple(0, 1, 100.0), std::tuple(1, 0, 300.0)}) {
    ResultRow row = put_row(1024, 5, speed);
    row.params["first_pe"] = from;
    row.params["second_pe"] = to;
    loaded.report.results.push_back(row);
  }
  // Several sizes that are not sweeps, in which a line would be a pair.
  const std::vector<ResultRow> pairs = loaded.report.results;
  for (ResultRow row : pairs) {
    row.params["size_bytes"] = 4096;
    loaded.report.results.push_back(row);
  }
  const json model = page_model({{loaded}, {}});
  EXPECT_TRUE(find_section(model, "sweeps").is_null());
  const json map = find_block(find_section(model, "pairs"), "heatmap");
  EXPECT_EQ(map.at("rows"), json::parse(R"(["PE 0", "PE 1"])"));
  EXPECT_EQ(map.at("views").at(0).at("values"), json::parse("[[null, 100.0], [300.0, null]]"));
  // One pair is not a matrix, and its sizes are a sweep.
  loaded.report.results = {loaded.report.results.at(0), loaded.report.results.at(2)};
  EXPECT_TRUE(find_section(page_model({{loaded}, {}}), "pairs").is_null());
  EXPECT_FALSE(find_section(page_model({{loaded}, {}}), "sweeps").is_null());
}

TEST(Moe, WaitsAreAMatrixWithItsVerdicts) {
  const json model = page_model({{{"a.json", sample_report()}}, {}});
  const json map = find_block(find_section(model, "moe"), "heatmap");
  EXPECT_EQ(map.at("rows"), json::parse(R"(["PE 0", "PE 1"])"));
  EXPECT_EQ(map.at("views").at(0).at("values"), json::parse("[[0.0, 1.5], [2.5, 0.0]]"));
  EXPECT_EQ(map.at("notes"), json::parse(R"(["dispatch: PE 1 is slow"])"));
}

TEST(Moe, TablesSayWhatTheReportSays) {
  LoadedReport loaded{"a.json", sample_report()};
  json& point = loaded.report.moe[0];
  point["masked"] = json::parse("[[1], []]");
  point["links"] = json::parse(
      R"([{"gpu": "0000:1a:00.0", "ranks": [0, 2], "name": "18 NVLinks", "rate_GBps": 370.5,
           "basis": "measured", "dispatch": {"out_bytes": 11, "in_bytes": 12},
           "combine": {"out_bytes": 13, "in_bytes": 14},
           "all_calls": {"out_bytes": 37, "in_bytes": 40}},
          {"gpu": "0000:1b:00.0", "ranks": [], "name": "18 NVLinks", "rate_GBps": 450,
           "unmeasured_reason": "no room", "dispatch": {"out_bytes": 0, "in_bytes": 0},
           "combine": {"out_bytes": 0, "in_bytes": 0}}])");
  point["nvlinks"] = json::parse(
      R"([{"host": "n1", "gpu": "0000:1a:00.0", "ranks": [0, 2], "out_bytes": 2048,
           "in_bytes": 1024, "links": []},
          {"host": "n1", "gpu": "0000:1c:00.0", "ranks": [1], "out_bytes": null,
           "out_bytes_reason": "it was reset", "in_bytes": 5120, "links": []}])");
  point["calls"] = json::parse(R"({"dispatches": 2, "combines": 1})");
  point["settings"] = json::parse(R"({"dispatch": {"sms": 24, "warps": 7}, "combine": {}})");
  point["tuned"] = json::parse(
      R"([{"direction": "combine", "chosen": 1, "noise_us": 1, "attempts": [
           {"settings": {"sms": 24}, "own_choice": true, "calls": 5, "p50_us": 9.5, "mad_us": 0.5,
            "last": false, "wrong": null},
           {"settings": {"sms": 12}, "own_choice": false, "calls": 6, "p50_us": 8.5, "mad_us": 0.25,
            "last": true, "wrong": "row 3"}]}])");
  point["window"] = "a call";
  const json section = find_section(page_model({{loaded}, {}}), "moe");
  EXPECT_EQ(table_titled(section, "Links of GPUs"),
            json::parse(
                R"([["0000:1a:00.0", "0, 2", "18 NVLinks", 370.5, "measured", 11, 12, 13, 14],
          ["0000:1b:00.0", "", "18 NVLinks", 450, "not measured: no room", 0, 0, 0, 0]])"));
  EXPECT_EQ(table_titled(section, "NVLink counters"),
            json::parse(R"([["n1", "0000:1a:00.0", 2048, 1024, 37, 40, ""],
                            ["n1", "0000:1c:00.0", null, 5120, null, null, "it was reset"]])"));
  EXPECT_EQ(
      table_titled(section, "Ranks"),
      json::parse(R"([[0, 128, 100, 2048, 0, 2048, 0, "1"], [1, 0, 28, 4096, 0, 4096, 0, ""]])"));
  EXPECT_EQ(table_titled(section, "What tuning tried"),
            json::parse(
                R"([["combine", "sms=24", 9.5, 0.5, 5, "the default"],
          ["combine", "sms=12", 8.5, 0.25, 6, "chosen, wrong: row 3"]])"));
  EXPECT_EQ(table_titled(section, "Memory"),
            json::parse(R"([["received rows", "ranks * max_tokens", 4096]])"));
  const json ran = table_titled(section, "How it ran");
  EXPECT_EQ(ran.at(0), json::parse(R"(["dispatch ran with", "sms=24 warps=7"])"));
  const auto has = [&ran](const char* row) {
    return std::find(ran.begin(), ran.end(), json::parse(row)) != ran.end();
  };
  EXPECT_TRUE(has(R"(["a time spans", "a call"])"));
  EXPECT_TRUE(has(R"(["dispatches and combines, all in all", "2, 1"])"));
}

TEST(Topology, ANodeWithManyDevicesIsNotDrawnAndThePageSaysSo) {
  LoadedReport loaded = run_of("2026-11-21T03:33:00Z", 1, "topo");
  json labels = json::array();
  for (int gpu = 0; gpu < 161; ++gpu)
    labels.push_back("GPU" + std::to_string(gpu));
  loaded.report.topology = {{"distances", {{"labels", labels}}}};
  const json section = find_section(page_model({{loaded}, {}}), "topology");
  EXPECT_TRUE(find_block(section, "topology").is_null());
  EXPECT_EQ(find_block(section, "note").at("text"),
            "Not drawn: 161 devices, a picture has at most 160; the report has all.");
}

TEST(Simulation, TablesSayWhatTheReportSays) {
  LoadedReport loaded = run_of("2026-11-21T03:33:00Z", 1, "sim");
  loaded.report.simulation = json::parse(R"({
    "steps": 64, "bytes": "exact", "times": "sampled", "sampling": "each step", "ranks": 16,
    "changes": ["--kill-nic 0/mlx5_0"], "price_of_mapping": 1.5, "what_if_factor": 2,
    "params": {"nodes": 2}, "nic_ports": 16,
    "taken_over": [{"first_node": 0, "nodes": 1, "device": "mlx5_0", "port": 1, "pes": [0],
      "by": [{"device": "mlx5_1", "port": 1, "pes": [0], "shared_with_pes": [1]}]}],
    "variants": [{"name": "given", "policy": "nvshmem", "world": "node",
      "operations": [{"operation": "step", "time_us": {"mean": 246.5, "margin95": 0.5},
                      "crossing_bytes_per_rank": 2500000, "limited_by": "node 0 mlx5_0/1",
                      "most_often": {"resource": "node 0 mlx5_0/1", "share_of_steps": 0.75}}],
      "busiest": {"node": 0, "device": "mlx5_0", "port": 1, "out_bytes": 3000000,
                  "in_bytes": 1000000, "over_even": 1.25},
      "even": false, "busiest_alike": 1, "even_bytes": 2400000,
      "nics": [{"node": 0, "device": "mlx5_0", "port": 1, "out_bytes": 3000000,
                "in_bytes": 1000000, "over_even": 1.25, "hot": true, "out_margin95_bytes": 1000,
                "in_margin95_bytes": 2000},
               {"node": 1, "device": "mlx5_0", "port": 1, "out_bytes": 2000000,
                "in_bytes": 1000000, "over_even": 0.83, "hot": false}],
      "nics_left_out": 3, "switches_left_out": 1,
      "rails": [{"device": "mlx5_0", "port": 1, "out_bytes": 8000000, "in_bytes": 7000000,
                 "most_bytes": 3000000, "hot": true}],
      "nodes": [{"node": 1, "out_bytes": 6000000, "in_bytes": 5000000}],
      "switches": [{"name": "leaf 0", "up_bytes": 4000000, "down_bytes": 3000000},
                   {"name": "leaf 1", "up_bytes": 0, "down_bytes": 0}]},
     {"name": "optimal", "policy": "optimal", "world": "node", "same_nics_as": "given",
      "operations": [], "nics": [{"node": 7}], "rails": [], "nodes": [], "switches": []},
     {"name": "what-if", "policy": "nvshmem", "world": "node",
      "operations": [{"operation": "step", "time_us": {"mean": 493, "margin95": 0.5}}],
      "nics": [], "rails": [], "nodes": [], "switches": []}]})");
  const json section = find_section(page_model({{loaded}, {}}), "simulation");
  std::vector<std::string> sentences;
  for (std::size_t i = 0; i < 5; ++i)
    sentences.push_back(section.at("blocks").at(i).at("text"));
  EXPECT_EQ(sentences,
            (std::vector<std::string>{
                "busiest NIC: node 0 mlx5_0/1, 3 MB a step, 1.25 times the even share; 246.5 +- "
                "0.5 us a step, limited by node 0 mlx5_0/1.",
                "the mapping is the best one.",
                "with the changes (--kill-nic 0/mlx5_0) a step takes 2 times as long.",
                "node 0 mlx5_0/1 is killed: PE 0 uses mlx5_1/1, as PE 1 does.",
                "16 ranks; bytes: exact; times: sampled (each step; 64 steps)."}));
  EXPECT_EQ(table_titled(section, "Variants"),
            json::parse(R"([["", "given", "nvshmem", "node", "step", 246.5, 0.5, 2.5,
                             "node 0 mlx5_0/1", "node 0 mlx5_0/1", 0.75],
                            ["", "what-if", "nvshmem", "node", "step", 493, 0.5, null, null, null,
                             null]])"));
  EXPECT_EQ(table_titled(section, "Busiest NICs"),
            json::parse(R"([["", "given", 0, "mlx5_0/1", 3.0, 0.001, 1.0, 0.002, 1.25],
                            ["", "given", 1, "mlx5_0/1", 2.0, null, 1.0, null, 0.83]])"));
  EXPECT_EQ(table_titled(section, "Rails"),
            json::parse(R"([["", "given", "rail mlx5_0/1", 8.0, 7.0],
                            ["", "given", "node 1", 6.0, 5.0],
                            ["", "given", "leaf 0", 4.0, 3.0]])"));
  std::map<std::string, json> charts;
  for (const json& block : section.at("blocks"))
    if (block.at("type") == "bars")
      charts[block.at("title")] = block;
  EXPECT_EQ(charts.at("Time of a step").at("bars"),
            json::parse(R"([{"name": "given", "state": "usual", "values": [246.5], "mark": null},
                            {"name": "what-if", "state": "usual", "values": [493], "mark": null}])"));
  EXPECT_EQ(charts.at("The busiest NIC of each rail, given").at("bars"),
            json::parse(R"([{"name": "mlx5_0/1", "state": "hot", "values": [3.0], "mark": 2.4}])"));
  const json& nics = charts.at("Bytes of the busiest NICs, given");
  EXPECT_EQ(nics.at("mark_name"), "the even share");
  EXPECT_EQ(nics.at("bars").at(0).at("state"), "hot");
  EXPECT_EQ(nics.at("bars").at(1),
            json::parse(R"({"name": "node 1 mlx5_0/1", "state": "usual", "values": [2.0, 1.0],
                            "mark": 2.4})"));
  EXPECT_EQ(charts.size(), 3U);
  json& first = loaded.report.simulation.at("variants").at(0);
  for (int rail = 1; rail <= 40; ++rail)
    first["rails"].push_back(first["rails"].at(0));
  const json bounded = find_section(page_model({{loaded}, {}}), "simulation");
  bool said = false;
  for (const json& block : bounded.at("blocks"))
    said = said || block.value("text", "") ==
                       "Not all charts and bars are shown: at most 60 charts, "
                       "with 40 bars each. The report has the others.";
  EXPECT_TRUE(said);
  EXPECT_EQ(section.at("blocks").back().at("text"),
            "3 NICs and 1 switch with no more traffic than these are not in the report (sim --all, "
            "--top N).");
}

TEST(Nics, BarsAreMarkedByTheRateOfTheirLink) {
  LoadedReport loaded = run_of("2026-11-21T03:33:00Z", 1, "hotspots");
  loaded.report.hotspots = json::parse(
      R"({"ports": [{"host": "n", "device": "mlx5_0", "port": 1, "link_Gbps": 400, "hot": true,
                     "sent": {"GBps": 44}, "received": {"GBps": 2}},
                    {"host": "n", "device": "mlx5_1", "port": 1, "link_Gbps": 400, "hot": true,
                     "sent": {"GBps": 9}, "received": {}},
                    {"host": "n", "device": "eth0", "port": 1, "rdma": false,
                     "sent": {"GBps": 1}, "received": {"GBps": 1}}],
          "signs": [{"severity": "error", "host": "n", "device": "mlx5_1", "port": 1,
                     "counter": "link_downed", "finding": "link-flapping"},
                    {"severity": "error", "host": "n", "device": "mlx5_0", "port": 1,
                     "counter": "np_cnp_sent", "finding": "nic-congested"}]})");
  const json section = find_section(page_model({{loaded}, {}}), "nics");
  const json chart = find_block(section, "bars");
  EXPECT_EQ(chart.at("mark_name"), "rate of the link");
  EXPECT_EQ(chart.at("bars"),
            json::parse(R"([{"name": "mlx5_0:1", "state": "hot", "values": [44, 2], "mark": 50},
                            {"name": "mlx5_1:1", "state": "faulty", "values": [9, null], "mark": 50},
                            {"name": "eth0", "state": "usual", "values": [1, 1], "mark": null}])"));
  std::vector<std::string> verdicts;
  for (const json& row : table_titled(section, "Loads"))
    verdicts.push_back(row.back());
  EXPECT_EQ(verdicts, (std::vector<std::string>{"hot", "error", ""}));
}

TEST(Nics, AnInterfaceHasNoPort) {
  LoadedReport loaded = run_of("2026-11-21T03:33:00Z", 1, "hotspots");
  loaded.report.hotspots = json::parse(
      R"({"ports": [{"host": "n", "device": "eth0", "port": 1, "rdma": false, "sent": {"GBps": 1}, "received": {"GBps": 2}},
                    {"host": "n", "device": "mlx5_0", "port": 1, "sent": {}, "received": {}}],
          "signs": [{"severity": "warning", "host": "n", "device": "mlx5_0", "port": 1, "counter": "a"},
                    {"severity": "warning", "host": "n", "device": "eth0", "port": 1, "counter": "b"}]})");
  for (const char* device : {"mlx5_0", "eth0"})
    loaded.report.nic_counters.push_back({"n", device, "packets", 1, 1, 2, 1});
  const json section = find_section(page_model({{loaded}, {}}), "nics");
  const auto nics_of = [&section](const char* title, std::size_t column) {
    std::set<std::string> names;
    for (const json& block : view::list(section, "blocks"))
      if (view::text(block, "title") == title)
        for (const json& row : block.at("rows"))
          names.insert(row.at(column).get<std::string>());
    return names;
  };
  const std::set<std::string> expected = {"eth0", "mlx5_0:1"};
  EXPECT_EQ(nics_of("Loads", 1), expected);
  EXPECT_EQ(nics_of("Counters above their thresholds", 2), expected);
  EXPECT_EQ(nics_of("Counters", 1), expected);
}

} // namespace
} // namespace shmemctl::html
