// Which ports are outliers, and which are not.
#include "src/instruments/hotspots/load.h"

#include <gtest/gtest.h>
#include <random>

using namespace shmemctl;

namespace {

PortLoad port(const std::string& host, int rail, double sent_GBps) {
  PortLoad load;
  load.host = host;
  load.device = "mlx5_" + std::to_string(rail);
  load.rail = rail;
  load.fabric = load.rdma = true;
  load.link_Gbps = 400;
  load.sent.GBps = sent_GBps;
  load.received.GBps = 0;
  return load;
}

std::vector<PortLoad> host(const std::string& name, const std::vector<double>& sent_GBps) {
  std::vector<PortLoad> loads;
  for (double GBps : sent_GBps)
    loads.push_back(port(name, static_cast<int>(loads.size()), GBps));
  return loads;
}

using Ports = std::vector<std::size_t>;

Ports hot_of(const std::vector<PortLoad>& loads) {
  return judge_balance(loads, {}).at(0).hot;
}

TEST(Balance, OneOfEightIsHot) {
  EXPECT_EQ(hot_of(host("a", {5, 5.2, 4.9, 40, 5.1, 5, 5.3, 4.8})), Ports{3});
  // All others idle: the MAD is 0, and the minimum decides.
  EXPECT_EQ(hot_of(host("a", {0, 0, 0, 40, 0, 0, 0, 0})), Ports{3});
  EXPECT_EQ(hot_of(host("a", {0, 38, 0, 40, 0, 0, 0, 0})), (Ports{1, 3}));
}

TEST(Balance, OneOfTwoAndOneOfThree) {
  EXPECT_EQ(hot_of(host("a", {40, 1})), Ports{0});
  EXPECT_EQ(hot_of(host("a", {40, 1, 1.2})), Ports{0});
  EXPECT_EQ(hot_of(host("a", {40, 39})), Ports{});
}

TEST(Balance, WhatIsEvenOrIdleDoesNotAlarm) {
  std::mt19937 random(1);
  std::normal_distribution<double> even(30, 1);
  for (int run = 0; run < 1000; ++run) {
    std::vector<double> sent;
    for (int i = 0; i < 8; ++i)
      sent.push_back(even(random));
    EXPECT_EQ(hot_of(host("a", sent)), Ports{});
  }
  EXPECT_EQ(hot_of(host("a", {0, 0, 0, 0.9, 0, 0})), Ports{}); // less than a tenth of the link
  EXPECT_EQ(hot_of(host("a", {0, 0})), Ports{});
}

TEST(Balance, OnePortIsNoGroup) {
  EXPECT_TRUE(judge_balance(host("a", {40}), {}).empty());
  EXPECT_TRUE(judge_balance({}, {}).empty());
}

TEST(Balance, SkewAndTheMedian) {
  const auto groups = judge_balance(host("a", {1, 1, 1, 5}), {});
  ASSERT_EQ(groups.size(), 2u); // sent and received
  EXPECT_DOUBLE_EQ(groups[0].median, 1);
  EXPECT_DOUBLE_EQ(groups[0].skew, 2.5);
  EXPECT_DOUBLE_EQ(groups[1].skew, 1);
}

TEST(Balance, APortThatCarriesLittleIsLow) {
  EXPECT_EQ(judge_balance(host("a", {40, 41, 39, 2, 40}), {}).at(0).low, Ports{3});
}

TEST(Balance, ARailIsComparedAcrossHosts) {
  std::vector<PortLoad> loads;
  for (const std::string name : {"a", "b", "c", "d", "e"})
    for (PortLoad& load : host(name, {10, name == "c" ? 45.0 : 10.0, 10, 10}))
      loads.push_back(load);
  Ports hot_rail;
  for (const LoadGroup& group : judge_balance(loads, {}))
    if (group.kind == "rail" && group.name == "1" && group.direction == WireDirection::sent)
      hot_rail = group.hot;
  EXPECT_EQ(hot_rail, Ports{9});
  // A whole host that sends more is not uneven in itself, but each of its rails is.
  loads.clear();
  for (const std::string name : {"a", "b", "c", "d", "e"})
    for (PortLoad& load : host(name, std::vector<double>(2, name == "c" ? 45.0 : 10.0)))
      loads.push_back(load);
  std::size_t hot_nodes = 0, hot_rails = 0;
  for (const LoadGroup& group : judge_balance(loads, {}))
    (group.kind == "node" ? hot_nodes : hot_rails) += group.hot.size();
  EXPECT_EQ(hot_nodes, 0u);
  EXPECT_EQ(hot_rails, 2u);
}

TEST(Balance, PortsOutsideTheFabricAreNotCompared) {
  auto loads = host("a", {10, 10, 10, 49});
  loads[3].fabric = false;
  EXPECT_EQ(judge_balance(loads, {}).at(0).hot, Ports{});
}

TEST(Balance, WithoutALinkRateTwiceTheMedianCounts) {
  auto loads = host("a", {0.010, 0.011, 0.010, 0.050});
  for (PortLoad& load : loads)
    load.link_Gbps.reset();
  EXPECT_EQ(hot_of(loads), Ports{3});
  loads[3].sent.GBps = 0.019;
  EXPECT_EQ(hot_of(loads), Ports{});
}

TEST(Balance, PacketsWhereBytesAreNotKnown) {
  auto loads = host("a", {0, 0, 0});
  for (PortLoad& load : loads) {
    load.sent.GBps.reset();
    load.sent.packets_per_s = 10;
  }
  loads[1].sent.packets_per_s = 20000;
  const LoadGroup group = judge_balance(loads, {}).at(0);
  EXPECT_TRUE(group.packets);
  EXPECT_EQ(group.hot, Ports{1});
}

TEST(Balance, AnUnknownLoadIsNotZero) {
  auto loads = host("a", {10, 10, 10, 10, 10});
  loads[2].sent.GBps.reset();
  const LoadGroup group = judge_balance(loads, {}).at(0);
  EXPECT_EQ(group.members, (Ports{0, 1, 3, 4}));
  EXPECT_EQ(group.unknown, Ports{2});
  EXPECT_EQ(group.low, Ports{});
}

} // namespace
