#include "src/instruments/fabric/diagnosis.h"

#include <gtest/gtest.h>

#include "tests/unit/instruments/fabric/simulated_network.h"

namespace shmemctl::fabric {
namespace {

using Names = std::set<std::string>;

/// A network without any noise: what is found follows from the faults alone.
SimulatedNetwork quiet(int hosts, int rails = 1) {
  return SimulatedNetwork(hosts, rails, Noise{0, 0}, 1);
}

Names suspects_of(SimulatedNetwork& network, bool cross_rail = false) {
  return names_of(
      diagnose(network.endpoints(), network.measure_all(cross_rail), Metric::bandwidth, Criteria())
          .suspects);
}

TEST(FabricDiagnosis, NothingIsFoundWhereNothingIsSlow) {
  for (const int hosts : {2, 3, 4, 8, 64})
    for (const int rails : {1, 4}) {
      SimulatedNetwork network = quiet(hosts, rails);
      EXPECT_EQ(suspects_of(network), Names()) << hosts << " hosts, " << rails << " rails";
    }
  EXPECT_TRUE(diagnose({{0, 0}, {1, 0}}, {}, Metric::bandwidth, Criteria()).suspects.empty());
}

TEST(FabricDiagnosis, ASlowHostIsNamedFromThreeHostsOn) {
  for (const int hosts : {3, 4, 5, 8, 33}) {
    SimulatedNetwork network = quiet(hosts);
    network.slow_host(hosts - 1, 0.5);
    EXPECT_EQ(suspects_of(network), Names{"host " + std::to_string(hosts - 1)});
  }
}

TEST(FabricDiagnosis, OneDirectionOfAHostIsNamed) {
  for (const int hosts : {3, 4, 9}) {
    SimulatedNetwork sender = quiet(hosts), receiver = quiet(hosts);
    sender.slow_sender(1, 0.5);
    receiver.slow_receiver(1, 0.5);
    EXPECT_EQ(suspects_of(sender), Names{"host 1 sends"}) << hosts;
    EXPECT_EQ(suspects_of(receiver), Names{"host 1 receives"}) << hosts;
  }
}

TEST(FabricDiagnosis, TwoHostsHavePairsOnly) {
  SimulatedNetwork network = quiet(2);
  network.slow_pair(0, 1, 0.5);
  EXPECT_EQ(suspects_of(network), Names{"pair 0->1"});
  SimulatedNetwork rails = quiet(2, 4);
  rails.slow_nic(1, 2, 0.5);
  EXPECT_EQ(suspects_of(rails), Names{"pair 2-6"});
}

TEST(FabricDiagnosis, APairIsNamedInItsDirection) {
  for (const int hosts : {4, 8, 20}) {
    SimulatedNetwork network = quiet(hosts);
    network.slow_pair(1, 2, 0.5);
    EXPECT_EQ(suspects_of(network), Names{"pair 1->2"}) << hosts;
    network.slow_pair(2, 1, 0.6);
    EXPECT_EQ(suspects_of(network), Names{"pair 1-2"}) << hosts;
  }
}

TEST(FabricDiagnosis, ASlowNicIsNotItsHost) {
  SimulatedNetwork network = quiet(6, 4);
  network.slow_nic(3, 2, 0.6);
  EXPECT_EQ(suspects_of(network), Names{"nic 3.2"});
  EXPECT_EQ(suspects_of(network, true), Names{"nic 3.2"}) << "across rails";
  network.slow_host(5, 0.6);
  EXPECT_EQ(suspects_of(network), (Names{"nic 3.2", "host 5"}));
}

TEST(FabricDiagnosis, ASlowRailIsNotItsNics) {
  for (const int rails : {2, 3, 8}) {
    SimulatedNetwork network = quiet(5, rails);
    network.slow_rail(1, 0.5);
    EXPECT_EQ(suspects_of(network), Names{"rail 1"}) << rails;
    EXPECT_EQ(suspects_of(network, true), Names{"rail 1"}) << rails << " rails, across";
  }
}

TEST(FabricDiagnosis, HostsBehindASlowUplinkAreAGroup) {
  SimulatedNetwork network = quiet(12);
  network.slow_uplink({2, 5, 7}, 0.5);
  EXPECT_EQ(suspects_of(network), Names{"group 2,5,7"});
  SimulatedNetwork apart = quiet(12);
  for (const int host : {2, 5, 7})
    apart.slow_host(host, 0.5);
  EXPECT_EQ(suspects_of(apart), (Names{"host 2", "host 5", "host 7"}))
      << "hosts that are slow among themselves, too, are no group";
}

TEST(FabricDiagnosis, SmallEffectsAreNoFault) {
  SimulatedNetwork network = quiet(8);
  network.slow_host(2, 0.88);
  network.slow_pair(4, 5, 0.8);
  EXPECT_EQ(suspects_of(network), Names());
}

TEST(FabricDiagnosis, NumbersAreThoseOfTheHostAndOfItsPeers) {
  SimulatedNetwork network = quiet(8);
  network.slow_host(2, 0.5);
  const Diagnosis found =
      diagnose(network.endpoints(), network.measure_all(), Metric::bandwidth, Criteria());
  ASSERT_EQ(found.suspects.size(), 1U);
  EXPECT_NEAR(found.suspects[0].value, 24, 0.01);
  EXPECT_NEAR(found.suspects[0].peers, 48, 0.01);
  EXPECT_NEAR(found.suspects[0].times, 2, 0.001);
  EXPECT_NEAR(found.usual, 48, 0.01);
}

TEST(FabricDiagnosis, LatencyIsJudgedByItself) {
  SimulatedNetwork network = quiet(8);
  network.late_host(3, 20);
  const std::vector<PairFigure> figures = network.measure_all();
  EXPECT_TRUE(
      diagnose(network.endpoints(), figures, Metric::bandwidth, Criteria()).suspects.empty());
  const Diagnosis found = diagnose(network.endpoints(), figures, Metric::latency, Criteria());
  EXPECT_EQ(names_of(found.suspects), Names{"late host 3"});
  EXPECT_NEAR(found.suspects[0].value, 25, 0.01);
  SimulatedNetwork near = quiet(8);
  near.late_host(3, 1.5); // 1.3 times the others', and a pair of such hosts 1.6 times
  EXPECT_TRUE(
      diagnose(near.endpoints(), near.measure_all(), Metric::latency, Criteria()).suspects.empty());
}

TEST(FabricDiagnosis, WhatRepetitionsShowAsNoiseIsNoFault) {
  SimulatedNetwork network = quiet(4);
  network.slow_pair(0, 1, 0.6);
  std::vector<PairFigure> figures = network.measure_all();
  for (PairFigure& figure : figures)
    figure.noise = 0.2F;
  EXPECT_TRUE(
      diagnose(network.endpoints(), figures, Metric::bandwidth, Criteria()).suspects.empty());
  for (PairFigure& figure : figures)
    figure.noise = 0.02F;
  EXPECT_EQ(diagnose(network.endpoints(), figures, Metric::bandwidth, Criteria()).suspects.size(),
            1U);
}

TEST(FabricDiagnosis, PairsWithoutAFigureAreLeftOut) {
  SimulatedNetwork network = quiet(6);
  network.slow_host(2, 0.5);
  std::vector<PairFigure> figures = network.measure_all();
  figures[0].GBps = not_measured;
  figures[3].GBps = 0;
  EXPECT_EQ(
      names_of(diagnose(network.endpoints(), figures, Metric::bandwidth, Criteria()).suspects),
      Names{"host 2"});
}

} // namespace
} // namespace shmemctl::fabric
