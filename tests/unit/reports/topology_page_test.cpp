// Nodes as pictures.
#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <map>
#include <set>

#include "reports/compare/merge.h"
#include "reports/html/page_model.h"
#include "reports/html/topology.h"
#include "tests/unit/reports/page.h"
#include "tests/unit/reports/samples.h"

namespace shmemctl::html {
namespace {

using HostNics = std::set<std::pair<std::string, std::string>>;

TEST(Topology, DevicesOfASwitchStandTogether) {
  const NodeGroups groups = group_devices(sample_topology());
  ASSERT_EQ(groups.devices.size(), 4U);
  ASSERT_EQ(groups.domains.size(), 2U); // GPU1's NUMA node is unknown, and it is far from the rest
  EXPECT_EQ(groups.domains[0].label, "NUMA 0");
  EXPECT_EQ(groups.domains[1].label, "NUMA node unknown");
  const SwitchGroup& first = groups.domains[0].groups.front();
  EXPECT_FALSE(first.loose);
  EXPECT_EQ(first.gpus, std::vector<std::size_t>{0});
  EXPECT_EQ(first.nics, std::vector<std::size_t>{2});
}

TEST(Topology, PictureShowsTheMappingAndHotNics) {
  const Report report = sample_report();
  EXPECT_EQ(measured_hot_nics(report), HostNics{});
  EXPECT_EQ(nics_hot_by_mapping(report), std::set<std::string>{"mlx5_0"});
  const auto picture = topology_picture(report.topology, report.mapping, {"mlx5_0"});
  ASSERT_TRUE(picture);
  std::map<std::string, PictureBox> devices;
  for (const PictureBox& box : picture->boxes) {
    EXPECT_LE(box.x + box.width, picture->width);
    EXPECT_LE(box.y + box.height, picture->height);
    if (box.kind == BoxKind::gpu || box.kind == BoxKind::nic)
      devices[box.label] = box;
  }
  ASSERT_EQ(devices.size(), 4U);
  EXPECT_EQ(devices["mlx5_0"].state, DeviceState::hot);
  EXPECT_EQ(devices["mlx5_1"].state, DeviceState::idle);
  EXPECT_EQ(devices["GPU1"].detail, "PE 1");
  std::map<LineKind, int> lines;
  for (const PictureLine& line : picture->lines)
    ++lines[line.kind];
  EXPECT_EQ(lines[LineKind::near], 1);   // PE 0, PIX
  EXPECT_EQ(lines[LineKind::far], 1);    // PE 1, SYS
  EXPECT_EQ(lines[LineKind::nvlink], 2); // a bar over two GPUs
}

TEST(Topology, NamesOfNicsAreFoundInSubjects) {
  Report report;
  report.hosts = json::array({{{"name", "node1"}}});
  report.findings = {{"nic-hotspot-measured", Severity::warning, "node7 mlx5_3:1", "", "x"},
                     {"mapping-collapse", Severity::error, "mlx5_0/1, mlx5_4/2", "", "x"},
                     {"nic-hotspot", Severity::info, "mlx5_7/1", "", "x"},
                     {"slow", Severity::error, "mlx5_8/1", "", "x"}};
  report.hotspots = {{"ports",
                      {{{"device", "mlx5_9"}, {"hot", true}},
                       {{"device", "mlx5_6"}, {"host", "node2"}, {"hot", true}},
                       {{"device", "mlx5_5"}, {"hot", false}}}}};
  EXPECT_EQ(measured_hot_nics(report),
            (HostNics{{"node1", "mlx5_9"}, {"node2", "mlx5_6"}, {"node7", "mlx5_3"}}));
  EXPECT_EQ(nics_hot_by_mapping(report), (std::set<std::string>{"mlx5_0", "mlx5_4"}));
}

TEST(Topology, ANicWithAnErrorIsDrawnAsOne) {
  // Its counters show that its link flaps; another one is hot; a third is only slow.
  LoadedReport loaded = run_of("2026-11-21T03:33:00Z", 1, "hotspots");
  Report& report = loaded.report;
  report.topology = sample_topology();
  report.mapping = sample_report().mapping;
  report.findings = {{"link-flapping", Severity::error, "node7 mlx5_1:1", "", "x"},
                     {"nic-hotspot", Severity::error, "mlx5_0/1", "", "x"},
                     {"port-down", Severity::error, "mlx5_2/1, mlx5_3/1", "", "x"},
                     {"port-slow", Severity::warning, "mlx5_4/1", "", "x"}};
  EXPECT_EQ(faulty_nics(report),
            (HostNics{{"node7", "mlx5_1"}, {"node7", "mlx5_2"}, {"node7", "mlx5_3"}}));
  std::map<std::string, std::string> states;
  const json section = find_section(page_model({{loaded}, {}}), "topology");
  const json picture = find_block(section, "topology");
  for (const json& box : picture.at("boxes"))
    if (box.at("kind") == "nic")
      states[box.at("label")] = box.at("state");
  EXPECT_EQ(states, (std::map<std::string, std::string>{{"mlx5_0", "hot"}, {"mlx5_1", "faulty"}}));
}

TEST(Topology, ANicThatASimulationPredictsHotIsRed) {
  Report report;
  report.findings = {{"nic-hotspot-predicted", Severity::warning, "node 3 mlx5_2/1", "", "x"}};
  EXPECT_EQ(nics_hot_by_mapping(report), std::set<std::string>{"mlx5_2"});
}

/// Names of NICs that are drawn red, by the title of their picture.
std::map<std::string, std::set<std::string>> red_nics(const json& model) {
  std::map<std::string, std::set<std::string>> red;
  const json section = find_section(model, "topology");
  for (const json& block : view::list(section, "blocks"))
    if (block.at("type") == "topology") {
      std::set<std::string>& names = red[block.at("title")];
      for (const json& box : block.at("boxes"))
        if (box.at("state") == "hot")
          names.insert(box.at("label").get<std::string>());
    }
  return red;
}

TEST(Topology, HotNicsAreThoseOfTheirHostWhicheverReportNamesThem) {
  std::vector<LoadedReport> reports;
  for (const char* host : {"n1", "n2", "n3"}) {
    LoadedReport loaded = run_of(std::string("2026-11-21T03:33:0") + host[1] + "Z", 1, "topo");
    loaded.report.hosts = json::array({{{"name", host}}});
    loaded.report.topology = sample_topology();
    loaded.report.topology["hostname"] = host;
    loaded.report.mapping = sample_report().mapping;
    reports.push_back(loaded);
  }
  EXPECT_EQ(red_nics(page_model({reports, {}})),
            (std::map<std::string, std::set<std::string>>{{"n1, n2, n3: GPUs and NICs", {}}}));
  // What a job counted has no topology; n2 differs from the others by its hot NIC.
  LoadedReport job = run_of("2026-11-21T04:00:00Z", 1, "hotspots");
  job.report.hosts = json::array({{{"name", "n1"}}, {{"name", "n2"}}});
  job.report.hotspots = {{"ports",
                          {{{"host", "n1"}, {"device", "mlx5_1"}, {"port", 1}, {"hot", false}},
                           {{"host", "n2"}, {"device", "mlx5_1"}, {"port", 1}, {"hot", true}}}}};
  reports.push_back(job);
  EXPECT_EQ(red_nics(page_model({reports, {}})),
            (std::map<std::string, std::set<std::string>>{{"n1, n3: GPUs and NICs", {}},
                                                          {"n2: GPUs and NICs", {"mlx5_1"}}}));
}

TEST(Topology, NodesThatAreLeftOutAreCounted) {
  std::vector<LoadedReport> reports;
  const auto add_node = [&reports] {
    LoadedReport loaded = run_of(fmt::format("2026-11-21T03:33:{:02}Z", reports.size()), 1, "topo");
    loaded.report.hosts = json::array({{{"name", fmt::format("n{}", reports.size())}}});
    loaded.report.topology = sample_topology();
    loaded.report.mapping = sample_report().mapping;
    loaded.report.mapping["load_factor"] = 1 + static_cast<double>(reports.size());
    reports.push_back(std::move(loaded));
  };
  const auto says = [&reports](const std::string& words) {
    return find_section(page_model({reports, {}}), "topology").dump().find(words) !=
           std::string::npos;
  };
  while (reports.size() < 17)
    add_node();
  EXPECT_TRUE(says("1 more node differs from these and is left out."));
  add_node();
  EXPECT_TRUE(says("2 more nodes differ from these and are left out."));
}

TEST(Topology, AMergedReportShowsEachNodeThatDiffers) {
  std::vector<LoadedReport> reports;
  for (const char* host : {"n1", "n2", "n3"}) {
    LoadedReport loaded = run_of(std::string("2026-11-21T03:33:0") + host[1] + "Z", 1, "topo");
    loaded.report.hosts = json::array({{{"name", host}}});
    loaded.report.topology = sample_topology();
    loaded.report.topology["hostname"] = host;
    loaded.report.mapping = sample_report().mapping;
    reports.push_back(loaded);
  }
  // A subject without a host: the run says whose NIC it is.
  reports[1].report.findings = {{"nic-hotspot", Severity::error, "mlx5_0/1", "shared", "x"}};
  const std::map<std::string, std::set<std::string>> apart{{"n1, n3: GPUs and NICs", {}},
                                                           {"n2: GPUs and NICs", {"mlx5_0"}}};
  EXPECT_EQ(red_nics(page_model({reports, {}})), apart);
  const LoadedReport merged{"merged.json", merge_reports(reports)};
  EXPECT_TRUE(merged.report.topology.is_null());
  EXPECT_EQ(red_nics(page_model({{merged}, {}})), apart);
  // A report of one more node beside the merged one.
  LoadedReport fourth = run_of("2026-11-21T03:33:04Z", 1, "topo");
  fourth.report.hosts = json::array({{{"name", "n4"}}});
  fourth.report.topology = sample_topology();
  fourth.report.topology["hostname"] = "n4";
  fourth.report.topology["distances"]["matrix"][0][1] = "SYS";
  fourth.report.mapping = sample_report().mapping;
  const LoadedReport all{"all.json", merge_reports({merged, fourth})};
  EXPECT_EQ(red_nics(page_model({{all}, {}})).size(), 3u);
}

TEST(Topology, NodesOfAJobThatDifferAreDrawnToo) {
  LoadedReport run = run_of("2026-11-20T00:00:00Z");
  run.report.hosts = json::array();
  for (int number = 0; number < 4; ++number)
    run.report.hosts.push_back(
        {{"name", "node" + std::to_string(number)}, {"nodes", json::array({number})}});
  run.report.topology = sample_topology();
  run.report.topology["hostname"] = "node0";
  json other = sample_topology();
  other["hostname"] = "node1";
  other["distances"]["matrix"][0][1] = "SYS";
  run.report.other_nodes = {{{"nodes", {1, 3}}, {"topology", other}},
                            {{"nodes", {2}}, {"left_out", "too long"}}};
  std::set<std::string> titles;
  const json section = find_section(page_model({{run}, {}}), "topology");
  for (const json& block : view::list(section, "blocks"))
    if (block.at("type") == "topology")
      titles.insert(block.at("title"));
  EXPECT_EQ(titles, (std::set<std::string>{"node0: GPUs and NICs", "node[1,3]: GPUs and NICs"}));
}

TEST(Machine, HostsAndNetworksOfAJobAreTables) {
  LoadedReport run = run_of("2026-11-20T00:00:00Z");
  run.report.hosts = json::array();
  for (int number = 0; number < 3; ++number)
    run.report.hosts.push_back({{"name", "node" + std::to_string(number)},
                                {"nodes", json::array({number})},
                                {"pes", json::array({number})},
                                {"kernel", number == 2 ? "6.2" : "6.1"}});
  NetworkRow row;
  row.transport = "libfabric";
  row.links = {{{"eth0", 1}, {"eth0", 1}}};
  row.first = row.second = {0, 1, 2};
  row.pairs = 3;
  run.report.networks = {row};
  const json machine = find_section(page_model({{run}, {}}), "machine");
  const json hosts = table_titled(machine, "Hosts");
  EXPECT_EQ(hosts, json::parse(R"([[2, "node[0-1]", "0-1", "0-1, 1 each", "6.1"],
                                              [1, "node2", "2", "2", "6.2 *"]])"));
  const json networks = table_titled(machine, "Networks");
  EXPECT_EQ(networks, json::parse(R"([["", null, "among node[0-2]", 3, "libfabric",
                                                  "eth0 <-> eth0"]])"));
}

/// A NIC that one mapping overloads is not hot in the picture of another mapping of that host.
TEST(Topology, WhatAMappingMakesHotIsThatOfItsReport) {
  LoadedReport collapsed = run_of("2026-11-21T03:33:01Z", 1, "topo");
  collapsed.report.hosts = json::array({{{"name", "n1"}}});
  collapsed.report.topology = sample_topology();
  collapsed.report.mapping = sample_report().mapping;
  LoadedReport even = run_of("2026-11-21T03:33:02Z", 1, "sim");
  even.report.hosts = collapsed.report.hosts;
  even.report.topology = sample_topology();
  even.report.mapping = sample_report().mapping;
  even.report.mapping["policy"] = "optimal";
  collapsed.report.findings = {{"mapping-collapse", Severity::error, "mlx5_0/1", "", "x"}};
  const json section = find_section(page_model({{collapsed, even}, {}}), "topology");
  std::vector<int> red;
  for (const json& block : view::list(section, "blocks"))
    if (block.at("type") == "topology")
      red.push_back(static_cast<int>(
          std::count_if(block.at("boxes").begin(), block.at("boxes").end(),
                        [](const json& box) { return box.at("state") == "hot"; })));
  std::sort(red.begin(), red.end());
  EXPECT_EQ(red, (std::vector<int>{0, 1}));
}

} // namespace
} // namespace shmemctl::html
