#include "src/instruments/fabric/fabric_report.h"

#include <algorithm>
#include <set>
#include <utility>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "src/instruments/hotspots/hotspots.h"

namespace shmemctl::fabric {
namespace {

/// Hosts a, b, c, d with one NIC each; every pair has 10 GB/s and 5 us.
Result four_hosts() {
  Result result;
  result.job.hosts = {"a", "b", "c", "d"};
  result.job.own_counters = true;
  result.effort.message_bytes = 1000000;
  result.rounds = 3;
  result.runs = 1;
  for (int pe = 0; pe < 4; ++pe) {
    result.job.endpoints.push_back({pe, 0});
    result.job.nics.emplace_back("mlx5_0");
    result.job.transports.emplace_back("ibrc");
    for (int target = 0; target < 4; ++target) {
      if (target == pe)
        continue;
      PairFigure figure;
      figure.source = pe;
      figure.target = target;
      figure.GBps = 10;
      figure.latency_us = 5;
      figure.resent = 0;
      result.figures.push_back(figure);
    }
  }
  return result;
}

Suspect slow_host(int host, Metric metric = Metric::bandwidth) {
  Suspect suspect;
  suspect.part = Part::host;
  suspect.metric = metric;
  suspect.hosts = {host};
  suspect.times = 2;
  suspect.value = metric == Metric::bandwidth ? 5 : 10;
  suspect.peers = metric == Metric::bandwidth ? 10 : 5;
  suspect.values_again = {5.1, 5.1, 5.1, 5.1};
  suspect.peers_again = {10.2, 10.2, 10.2, 10.2};
  return suspect;
}

Suspect slow_pair(int source, int target) {
  Suspect suspect;
  suspect.source = source;
  suspect.target = target;
  suspect.hosts = {source, target};
  suspect.direction = Direction::sending;
  suspect.times = 2;
  suspect.value = 5;
  suspect.peers = 10;
  return suspect;
}

nlohmann::json signs(const char* finding, const char* host) {
  return {{"signs",
           {{{"host", host},
             {"device", "mlx5_0"},
             {"port", 1},
             {"counter", "symbol_error"},
             {"delta", 42},
             {"finding", finding}}}}};
}

std::size_t count_of(const std::vector<ResultRow>& rows, const std::string& name) {
  return static_cast<std::size_t>(std::count_if(
      rows.begin(), rows.end(), [&](const ResultRow& row) { return row.case_name == name; }));
}

TEST(FabricReport, RowsOfNicsAndPairs) {
  const std::vector<ResultRow> rows = rows_of(four_hosts());
  EXPECT_EQ(count_of(rows, "fabric-nic"), 8U);
  EXPECT_EQ(count_of(rows, "fabric-pair"), 12U);
  EXPECT_EQ(count_of(rows, "fabric-latency"), 12U);
  const ResultRow& nic = rows.front();
  EXPECT_EQ(nic.params["host"], "a");
  EXPECT_EQ(nic.params["direction"], "send");
  EXPECT_DOUBLE_EQ(*nic.bandwidth_GBps, 10);
  EXPECT_DOUBLE_EQ(*nic.stats->p50, 100) << "us for 1 MB";
  EXPECT_EQ(nic.verified, Verified::passed);
  ASSERT_TRUE(nic.path);
  EXPECT_EQ(nic.path->nics, std::vector<std::string>{"mlx5_0"});
}

TEST(FabricReport, ManyPairsHaveRowsOnlyIfTheyAreSuspects) {
  Result result = four_hosts();
  const std::vector<PairFigure> some = result.figures;
  while (result.figures.size() <= max_pair_rows)
    result.figures.insert(result.figures.end(), some.begin(), some.end());
  EXPECT_EQ(count_of(rows_of(result), "fabric-pair"), 0U);
  EXPECT_EQ(count_of(rows_of(result), "fabric-nic"), 8U);
  result.slow.push_back({slow_pair(1, 2), 1});
  std::set<std::pair<std::string, std::string>> pairs;
  for (const ResultRow& row : rows_of(result))
    if (row.case_name == "fabric-pair")
      pairs.emplace(row.params["from_host"].get<std::string>(),
                    row.params["to_host"].get<std::string>());
  EXPECT_EQ(pairs, (std::set<std::pair<std::string, std::string>>{{"b", "c"}, {"c", "b"}}));
}

TEST(FabricReport, CorruptDataFailsItsRows) {
  Result result = four_hosts();
  result.corrupt.push_back({0, 3});
  std::size_t failed = 0;
  for (const ResultRow& row : rows_of(result))
    if (row.status == RowStatus::fail) {
      ++failed;
      EXPECT_FALSE(row.reason.empty());
    }
  EXPECT_EQ(failed, 5U) << "the pair, and both NICs in both directions";
  const Findings findings = findings_of(result, nullptr);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].id, "fabric-corrupt");
  EXPECT_EQ(findings[0].severity, Severity::error);
  EXPECT_EQ(findings[0].subject, "a -> d (PE 0 -> PE 3)");
}

TEST(FabricReport, ASlowHostIsAnErrorWithItsNumbers) {
  Result result = four_hosts();
  result.slow.push_back({slow_host(1), 1});
  const Findings findings = findings_of(result, nullptr);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].id, "fabric-slow-host");
  EXPECT_EQ(findings[0].severity, Severity::error);
  EXPECT_EQ(findings[0].subject, "b");
  EXPECT_EQ(findings[0].message,
            "b sends and receives at 5 GB/s, 2.0 times slower than the median of its peers, 10 "
            "GB/s; measured 4 more times with few others at work: 5.1 GB/s where others have 10.2 "
            "GB/s");
}

TEST(FabricReport, WherePesShareCoresNothingIsAnError) {
  Result result = four_hosts();
  result.slow.push_back({slow_host(1), 1});
  result.shares_cores = true;
  ASSERT_EQ(findings_of(result, nullptr).size(), 1U);
  EXPECT_EQ(findings_of(result, nullptr)[0].severity, Severity::warning);
}

TEST(FabricReport, LatencyIsAWarningAndSaidOnce) {
  Result result = four_hosts();
  result.slow.push_back({slow_host(1, Metric::latency), 1});
  ASSERT_EQ(findings_of(result, nullptr).size(), 1U);
  EXPECT_EQ(findings_of(result, nullptr)[0].severity, Severity::warning);
  result.slow.push_back({slow_host(1), 1});
  ASSERT_EQ(findings_of(result, nullptr).size(), 1U);
  EXPECT_EQ(findings_of(result, nullptr)[0].severity, Severity::error);
}

TEST(FabricReport, DirectionsHaveTheirIds) {
  Result result = four_hosts();
  Suspect sender = slow_host(2);
  sender.direction = Direction::sending;
  result.slow = {{sender, 1}, {slow_pair(0, 3), 1}};
  const Findings findings = findings_of(result, nullptr);
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[0].id, "fabric-one-way");
  EXPECT_NE(findings[0].message.find("c sends at 5 GB/s"), std::string::npos)
      << findings[0].message;
  EXPECT_EQ(findings[1].id, "fabric-slow-pair");
  EXPECT_EQ(findings[1].subject, "a mlx5_0 -> d mlx5_0 (PE 0, PE 3)");
}

TEST(FabricReport, CountersTellLossAndCongestionFromASlowNic) {
  Result result = four_hosts();
  const Suspect suspect = slow_host(1);
  EXPECT_EQ(cause_of(suspect, result, nullptr).text, "");
  EXPECT_EQ(cause_of(suspect, result, signs("nic-lossy", "b")).text,
            "packets are lost: symbol_error of mlx5_0 rose by 42 on b");
  EXPECT_NE(cause_of(suspect, result, signs("nic-congested", "b")).text.find("congested"),
            std::string::npos);
  EXPECT_EQ(cause_of(suspect, result, signs("nic-lossy", "c")).text, "") << "another host's";
  result.job.own_counters = false;
  EXPECT_EQ(cause_of(suspect, result, signs("nic-lossy", "b")).text, "")
      << "hosts that share a kernel share its counters";
}

TEST(FabricReport, SegmentsSentAgainAreLoss) {
  Result result = four_hosts();
  for (PairFigure& figure : result.figures)
    figure.resent = figure.source == 1 ? 0.02F : 0.0001F;
  EXPECT_NE(cause_of(slow_host(1), result, nullptr).text.find("packets are lost"),
            std::string::npos);
  EXPECT_EQ(cause_of(slow_host(2), result, nullptr).text, "");
}

TEST(FabricReport, TransientSuspectsAreOneInfo) {
  Result result = four_hosts();
  result.transient = {slow_pair(0, 1), slow_host(2)};
  const Findings findings = findings_of(result, nullptr);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].id, "fabric-transient");
  EXPECT_EQ(findings[0].severity, Severity::info);
  EXPECT_NE(findings[0].message.find("2 measurements were slow once"), std::string::npos);
}

TEST(FabricReport, SuspectsThatWereNotMeasuredAgainAreOneWarning) {
  Result result = four_hosts();
  result.unconfirmed = {slow_host(2)};
  const Findings findings = findings_of(result, nullptr);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].id, "fabric-unconfirmed");
  EXPECT_EQ(findings[0].severity, Severity::warning);
  EXPECT_NE(findings[0].message.find("1 measurement was slow once, and not measured again"),
            std::string::npos)
      << findings[0].message;
}

TEST(FabricReport, RepeatedRunsAreCounted) {
  Result result = four_hosts();
  result.runs = 5;
  add_verdicts({slow_host(1), slow_pair(0, 3)}, result.slow);
  add_verdicts({slow_host(1)}, result.slow);
  ASSERT_EQ(result.slow.size(), 2U);
  const Findings findings = findings_of(result, nullptr);
  EXPECT_NE(findings[0].message.find("in 2 of 5 runs"), std::string::npos) << findings[0].message;
  EXPECT_NE(findings[1].message.find("in 1 of 5 runs"), std::string::npos) << findings[1].message;
}

TEST(FabricReport, HostsOfOneNameAreTold) {
  PeHost host;
  host.host_name = "vm";
  std::vector<PeHost> hosts;
  for (const std::uint64_t node : {7, 8, 7, 8}) {
    host.node_id = node;
    hosts.push_back(host);
  }
  const JobMap job = map_of(place(0, hosts));
  EXPECT_EQ(job.hosts, (std::vector<std::string>{"vm node 0", "vm node 1"}));
  EXPECT_EQ(job.rails(), 2);
  EXPECT_EQ(job.endpoints[3].host, 1);
  EXPECT_EQ(job.endpoints[3].rail, 1);
  EXPECT_FALSE(job.own_counters);
}

/// The hotspots of the job give the hosts the same names, so that the signs of a suspect are found.
TEST(FabricReport, MachinesOfOneNameHaveTheNamesOfTheirHotspots) {
  std::vector<PeHost> hosts;
  std::vector<PeMachine> machines;
  for (const std::uint64_t machine : {3, 3, 4, 5}) {
    PeHost host;
    host.host_name = machine == 5 ? "other" : "vm";
    host.machine_id = host.node_id = machine;
    hosts.push_back(host);
    machines.push_back({machine, host.host_name});
  }
  const JobMap job = map_of(place(0, hosts));
  EXPECT_TRUE(job.own_counters);
  std::vector<std::string> names;
  for (const JobHost& host : job_hosts(machines))
    names.push_back(host.name);
  EXPECT_EQ(job.hosts, names);
  EXPECT_EQ(job.hosts, (std::vector<std::string>{"vm (PE 0)", "vm (PE 2)", "other"}));
}

TEST(FabricReport, TheSummaryNamesHostsAndCounts) {
  const std::string text = summary_of(four_hosts(), TextStyle());
  EXPECT_NE(text.find("4 hosts, 1 rail: 12 ordered pairs in 3 rounds"), std::string::npos) << text;
  EXPECT_NE(text.find("mlx5_0"), std::string::npos);
}

TEST(FabricReport, AHostThatLosesPacketsIsNamedWithItsDirection) {
  Result result = four_hosts();
  LossyHost lossy;
  lossy.host = 2;
  lossy.direction = Direction::sending;
  lossy.share = 0.011;
  lossy.share_again = 0.009;
  result.lossy.push_back({lossy, 1});
  const Findings findings = findings_of(result, {});
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].id, "fabric-lossy");
  EXPECT_EQ(findings[0].severity, Severity::error);
  EXPECT_EQ(findings[0].subject, "c");
  EXPECT_NE(findings[0].message.find("1.1% of the TCP segments that c sends are sent again"),
            std::string::npos)
      << findings[0].message;
  EXPECT_NE(findings[0].message.find("measured again: 0.9% and 0%"), std::string::npos);
}

TEST(FabricReport, AHostThatIsSlowBecauseItLosesPacketsIsOneFinding) {
  Result result = four_hosts();
  LossyHost lossy;
  lossy.host = 2;
  lossy.share = 0.01;
  result.lossy.push_back({lossy, 1});
  result.slow.push_back({slow_host(2), 1});
  const Findings findings = findings_of(result, {});
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].id, "fabric-slow-host");
}

} // namespace
} // namespace shmemctl::fabric
