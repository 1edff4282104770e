// Which hosts differ from the others, and in what.
#include "reports/compare/host_differences.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <sstream>

#include "reports/text.h"
#include "reports/validate.h"
#include "tests/support/findings.h"

namespace shmemctl {
namespace {

using nlohmann::json;
using testing::contains;

using FactMap = std::map<std::string, std::string>;

FactMap usual_facts() {
  FactMap facts = {{"kernel", "6.8.0"}, {"limit.memlock", "unlimited"}, {"nic.count", "8"}};
  for (int i = 0; i < 8; ++i) {
    const std::string nic = fmt::format("nic.mlx5_{}", i);
    facts[nic] = "15b3:1021";
    facts[nic + ".firmware"] = "28.39.1002";
    facts[nic + ".pcie_width"] = "16";
    facts[nic + ".port1"] = "ACTIVE";
    facts[nic + ".port1.rate_Gbps"] = "400";
  }
  return facts;
}

std::vector<HostFacts> alike(std::size_t count) {
  std::vector<HostFacts> hosts;
  for (std::size_t i = 0; i < count; ++i)
    hosts.push_back({fmt::format("n{:04}", i), usual_facts()});
  return hosts;
}

/// Names of the facts that differ.
std::vector<std::string> names(const HostDifferences& differences) {
  std::vector<std::string> all;
  for (const FactDifference& difference : differences.differences)
    all.push_back(difference.fact);
  return all;
}

/// A report that holds the comparison alone.
Report as_report(const HostDifferences& differences) {
  Report report;
  report.host_differences = to_json(differences);
  report.findings = host_findings(differences);
  return report;
}

/// The findings; fails the test if they, or what the report holds, are malformed.
Findings well_formed(const HostDifferences& differences) {
  const Report report = as_report(differences);
  testing::expect_well_formed(report.findings);
  EXPECT_TRUE(validate_report(to_json(report)).empty());
  for (const Finding& finding : report.findings) {
    EXPECT_EQ(finding.id, "hosts-differ");
    EXPECT_EQ(finding.severity, Severity::warning);
  }
  return report.findings;
}

std::string as_text(const HostDifferences& differences) {
  return host_differences_text(to_json(differences), {});
}

TEST(HostDifferences, HostsThatAreAlike) {
  const HostDifferences differences = compare_hosts(alike(4));
  EXPECT_EQ(differences.facts, usual_facts().size());
  EXPECT_EQ(well_formed(differences), Findings{});
  EXPECT_EQ(as_text(differences), "4 hosts: all 43 facts are the same\n");
}

TEST(HostDifferences, TheOutlierIsNamedWithBothValues) {
  std::vector<HostFacts> hosts = alike(4);
  hosts[2].facts["nic.mlx5_3.firmware"] = "28.38.1002";
  hosts[2].facts["limit.memlock"] = "64K";
  const HostDifferences differences = compare_hosts(hosts);
  ASSERT_EQ(names(differences), (std::vector<std::string>{"limit.memlock", "nic.mlx5_3.firmware"}));
  EXPECT_EQ(differences.differences[0].usual, (HostsOfValue{{"unlimited"}, {0, 1, 3}}));
  EXPECT_EQ(differences.differences[0].others, (std::vector<HostsOfValue>{{{"64K"}, {2}}}));
  const Findings findings = well_formed(differences);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].subject, "n0002");
  EXPECT_EQ(findings[0].message,
            "n0002 differs from the 3 other hosts in 2 facts: limit.memlock is 64K (others "
            "unlimited); nic.mlx5_3.firmware is 28.38.1002 (others 28.39.1002)");
  EXPECT_TRUE(contains(findings[0].fix, "limits.d")) << findings[0].fix;
  const std::string text = as_text(differences);
  EXPECT_TRUE(contains(text, "4 hosts: 2 of 43 facts differ\n")) << text;
  EXPECT_TRUE(contains(text, "28.39.1002     28.38.1002 on n0002\n")) << text;
}

TEST(HostDifferences, AFindingForEachSetOfOutliers) {
  std::vector<HostFacts> hosts = alike(6);
  hosts[1].facts["kernel"] = "5.15.0";
  hosts[4].facts["kernel"] = "6.1.0";
  hosts[4].facts["limit.memlock"] = "64K";
  const Findings findings = well_formed(compare_hosts(hosts));
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[0].subject, "n0004");
  EXPECT_EQ(findings[1].message, "n0001, n0004 differ from the 4 other hosts in 1 fact: kernel is "
                                 "5.15.0 on n0001, 6.1.0 on n0004 (others 6.8.0)");
}

TEST(HostDifferences, OfTwoHostsNoneIsTheOutlier) {
  std::vector<HostFacts> hosts = alike(2);
  hosts[1].facts["kernel"] = "5.15.0";
  const HostDifferences differences = compare_hosts(hosts);
  ASSERT_EQ(names(differences), std::vector<std::string>{"kernel"});
  EXPECT_FALSE(differences.differences[0].usual);
  const Findings findings = well_formed(differences);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].message, "n0000, n0001 differ from one another in 1 fact: kernel is 6.8.0 "
                                 "on n0000, 5.15.0 on n0001");
}

TEST(HostDifferences, HalfIsNoMajority) {
  std::vector<HostFacts> hosts = alike(4);
  hosts[2].facts["kernel"] = hosts[3].facts["kernel"] = "5.15.0";
  const HostDifferences differences = compare_hosts(hosts);
  ASSERT_EQ(differences.differences.size(), 1U);
  EXPECT_FALSE(differences.differences[0].usual);
  const Findings findings = well_formed(differences);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_TRUE(contains(findings[0].message, "no value is that of most")) << findings[0].message;
}

TEST(HostDifferences, AMissingFactIsAValue) {
  std::vector<HostFacts> hosts = alike(3);
  hosts[1].facts.erase("limit.memlock");
  hosts[2].facts["library.libucp"] = "1.17";
  const HostDifferences differences = compare_hosts(hosts);
  ASSERT_EQ(names(differences), (std::vector<std::string>{"library.libucp", "limit.memlock"}));
  EXPECT_EQ(differences.differences[0].usual, (HostsOfValue{std::nullopt, {0, 1}}));
  const Findings findings = well_formed(differences);
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_TRUE(contains(findings[0].message, "limit.memlock is missing (others unlimited)"));
  EXPECT_TRUE(contains(findings[1].message, "library.libucp is 1.17 (others missing)"));
}

/// Removes a NIC with its parts.
void lose_nic(HostFacts& host, const std::string& name) {
  std::erase_if(host.facts, [&name](const auto& fact) {
    return fact.first == name || fact.first.starts_with(name + ".");
  });
}

TEST(HostDifferences, WhatFollowsFromAMissingDeviceIsNotSaid) {
  for (const std::size_t count : {2U, 5U}) {
    std::vector<HostFacts> hosts = alike(count);
    lose_nic(hosts[1], "nic.mlx5_7");
    hosts[1].facts["nic.count"] = "7";
    EXPECT_EQ(names(compare_hosts(hosts)), (std::vector<std::string>{"nic.count", "nic.mlx5_7"}))
        << count;
  }
  std::vector<HostFacts> hosts = alike(5); // a fact that only this host has
  for (std::size_t i : {0U, 1U, 2U, 3U})
    lose_nic(hosts[i], "nic.mlx5_7");
  EXPECT_EQ(names(compare_hosts(hosts)), std::vector<std::string>{"nic.mlx5_7"});
  hosts = alike(5); // the rate of a port that is down does not count
  hosts[3].facts["nic.mlx5_2.port1"] = "DOWN";
  hosts[3].facts.erase("nic.mlx5_2.port1.rate_Gbps");
  EXPECT_EQ(names(compare_hosts(hosts)), std::vector<std::string>{"nic.mlx5_2.port1"});
}

TEST(HostDifferences, ADeviceThatDiffersDoesNotHideItsParts) {
  std::vector<HostFacts> hosts = alike(5);
  hosts[3].facts["nic.mlx5_2"] = "15b3:101b";
  hosts[3].facts["nic.mlx5_2.firmware"] = "20.1";
  lose_nic(hosts[4], "nic.mlx5_2");
  EXPECT_EQ(names(compare_hosts(hosts)),
            (std::vector<std::string>{"nic.mlx5_2", "nic.mlx5_2.firmware"}));
}

TEST(HostDifferences, TheGoldenHostIsRightEvenAgainstMost) {
  std::vector<HostFacts> hosts = alike(3);
  HostFacts golden{"good (golden.json)", usual_facts()};
  golden.facts["kernel"] = "6.9.0";
  hosts[1].facts["nic.mlx5_0.pcie_width"] = "8";
  hosts[2].facts["kernel"] = "6.9.0";
  const HostDifferences differences = compare_with_golden(golden, hosts);
  ASSERT_EQ(names(differences), (std::vector<std::string>{"kernel", "nic.mlx5_0.pcie_width"}));
  EXPECT_EQ(differences.differences[0].usual, (HostsOfValue{{"6.9.0"}, {2}}));
  const Findings findings = well_formed(differences);
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[0].message, "n0001 differs from good (golden.json) in 1 fact: "
                                 "nic.mlx5_0.pcie_width is 8 (golden 16)");
  EXPECT_EQ(findings[1].subject, "n0000, n0001");
  const std::string text = as_text(differences);
  EXPECT_TRUE(contains(text, "3 hosts compared with good (golden.json): 2 of 43 facts differ"))
      << text;
}

TEST(HostDifferences, OneHostAndTheGoldenOne) {
  std::vector<HostFacts> hosts = alike(1);
  const HostFacts golden{"good", usual_facts()};
  EXPECT_EQ(well_formed(compare_with_golden(golden, hosts)), Findings{});
  lose_nic(hosts[0], "nic.mlx5_4");
  hosts[0].facts["extra"] = "1";
  EXPECT_EQ(names(compare_with_golden(golden, hosts)),
            (std::vector<std::string>{"extra", "nic.mlx5_4"}));
}

TEST(HostDifferences, ThreeOfAThousandHosts) {
  std::vector<HostFacts> hosts = alike(1024);
  for (HostFacts& host : hosts)
    for (int i = 0; i < 200; ++i)
      host.facts[fmt::format("setting.{}", i)] = std::to_string(i);
  hosts[17].facts["nic.mlx5_5.firmware"] = "28.38.1002";
  hosts[400].facts["nic.mlx5_1.pcie_width"] = "8";
  lose_nic(hosts[1023], "nic.mlx5_6");
  const auto begin = std::chrono::steady_clock::now();
  const Findings findings = well_formed(compare_hosts(hosts));
  // Seconds would mean that the time grows with the square of the hosts.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
  std::vector<std::string> subjects;
  for (const Finding& finding : findings)
    subjects.push_back(finding.subject);
  std::sort(subjects.begin(), subjects.end());
  EXPECT_EQ(subjects, (std::vector<std::string>{"n0017", "n0400", "n1023"}));
}

TEST(HostDifferences, WhatIsSaidIsBounded) {
  std::mt19937_64 random(41);
  std::vector<HostFacts> hosts = alike(1024);
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    hosts[i].facts["serial"] = std::to_string(i); // a value for each
    for (int fact = 0; fact < 300; ++fact)        // each with outliers of its own
      hosts[i].facts[fmt::format("setting.{}", fact)] = random() % 4 == 0 ? "on" : "off";
  }
  const HostDifferences differences = compare_hosts(hosts);
  EXPECT_EQ(differences.differences.size(), 301U);
  const Findings findings = well_formed(differences);
  EXPECT_EQ(findings.size(), 32U);
  EXPECT_EQ(findings.back().subject, "270 more sets of hosts");
  for (const Finding& finding : findings)
    EXPECT_LT(finding.message.size(), 2000U) << finding.message;
  const json section = to_json(differences);
  EXPECT_EQ(section.at("differences").size(), 256U);
  EXPECT_EQ(section.at("more_differences"), 45);
  EXPECT_LT(section.dump().size(), 200'000U);
  const std::string text = as_text(differences);
  EXPECT_LT(text.size(), 20'000U);
  EXPECT_TRUE(contains(text, "... and 261 more: --verbose or --json has them")) << text;
}

TEST(HostDifferences, HostsOfOneNameAreToldApart) {
  std::vector<HostFacts> hosts = {{"a", {}}, {"a", {}}, {"b", {}}, {"", {}}, {"a", {}}};
  tell_hosts_apart(hosts, {"x.json", "y.json", "y.json", "y.json", "x.json"});
  std::vector<std::string> all;
  for (const HostFacts& host : hosts)
    all.push_back(host.host);
  EXPECT_EQ(
      all, (std::vector<std::string>{"a (x.json)", "a (y.json)", "b", "unnamed", "a (x.json) #2"}));
}

TEST(HostDifferences, FactsAreReadFromAReport) {
  Report report;
  report.hosts = json::array({{{"name", "a"}, {"facts", {{"kernel", "6.8.0"}}}},
                              {{"name", "b"}},
                              {{"name", nullptr}, {"name_reason", "?"}, {"facts", {{"os", "x"}}}}});
  EXPECT_EQ(facts_of(report),
            (std::vector<HostFacts>{{"a", {{"kernel", "6.8.0"}}}, {"", {{"os", "x"}}}}));
}

TEST(HostDifferences, TextOfHostsCannotActOnATerminal) {
  std::vector<HostFacts> hosts = alike(3);
  hosts[1].host = "\x1b[2Jevil";
  hosts[1].facts["\x1b]0;x\x07"] = "\x9b\n31m";
  std::ostringstream out;
  write_text(out, as_report(compare_hosts(hosts)), {});
  EXPECT_EQ(out.str().find('\x1b'), std::string::npos) << out.str();
  EXPECT_TRUE(contains(out.str(), "evil"));
}

} // namespace
} // namespace shmemctl
