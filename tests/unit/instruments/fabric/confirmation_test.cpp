#include "src/instruments/fabric/confirmation.h"

#include <gtest/gtest.h>

#include "tests/unit/instruments/fabric/simulated_network.h"

namespace shmemctl::fabric {
namespace {

using Names = std::set<std::string>;

/// What was planted, what was found.
struct Score {
  int planted = 0, named = 0, right = 0;

  void add(const Names& expected, const Names& found) {
    planted += static_cast<int>(expected.size());
    named += static_cast<int>(found.size());
    for (const std::string& name : found)
      right += static_cast<int>(expected.count(name));
  }
  double precision() const { return named == 0 ? 1 : static_cast<double>(right) / named; }
  double recall() const { return planted == 0 ? 1 : static_cast<double>(right) / planted; }
};

/// docs/explanation/fabric.md states these numbers.
TEST(FabricConfirmation, FaultsAmongAThousandHostsAreNamedAndNothingElse) {
  Score score;
  for (unsigned seed = 1; seed <= 3; ++seed) {
    SimulatedNetwork network(1024, 1, Noise{0.05, 0.01}, seed);
    network.slow_host(17, 0.5);
    network.slow_host(400, 0.7);
    network.slow_sender(33, 0.5);
    network.slow_receiver(700, 0.6);
    network.lossy_cable(900);
    network.slow_pair(5, 6, 0.5);
    network.slow_pair(6, 5, 0.5);
    network.slow_pair(100, 800, 0.5);
    network.late_host(321, 15);
    const Names expected = {"host 17",  "host 400", "host 33 sends", "host 700 receives",
                            "host 900", "pair 5-6", "pair 100->800", "late host 321"};
    const Names found = names_of(network.find().slow);
    EXPECT_EQ(found, expected) << "seed " << seed;
    score.add(expected, found);
  }
  EXPECT_EQ(score.precision(), 1);
  EXPECT_EQ(score.recall(), 1);
}

TEST(FabricConfirmation, NicsAndRailsOfManyHostsAreNamed) {
  Score score;
  for (unsigned seed = 1; seed <= 3; ++seed) {
    SimulatedNetwork network(128, 8, Noise{0.05, 0.01}, seed);
    network.slow_nic(17, 3, 0.5);
    network.slow_nic(18, 4, 0.7);
    network.slow_host(100, 0.6);
    network.slow_rail(6, 0.7);
    network.slow_pair(network.pe(1, 2), network.pe(2, 2), 0.4);
    const Names expected = {"nic 17.3", "nic 18.4", "host 100", "rail 6", "pair 10->18"};
    const Names found = names_of(network.find().slow);
    EXPECT_EQ(found, expected) << "seed " << seed;
    score.add(expected, found);
  }
  EXPECT_EQ(score.precision(), 1);
  EXPECT_EQ(score.recall(), 1);
}

TEST(FabricConfirmation, NoAlarmOnANoisyNetwork) {
  for (unsigned seed = 1; seed <= 2; ++seed)
    EXPECT_EQ(names_of(SimulatedNetwork(512, 1, Noise{0.15, 0.03}, seed).find().slow), Names());
  for (unsigned seed = 1; seed <= 200; ++seed)
    for (const int hosts : {2, 3, 4, 8}) {
      SimulatedNetwork network(hosts, 2, Noise{0.05, 0.02}, seed);
      EXPECT_EQ(names_of(network.find().slow), Names()) << hosts << " hosts, seed " << seed;
    }
}

TEST(FabricConfirmation, FaultsOfSmallJobsAreNamed) {
  Score score;
  for (unsigned seed = 1; seed <= 50; ++seed)
    for (const int hosts : {4, 6, 8}) {
      SimulatedNetwork slow(hosts, 1, Noise{0.03, 0.01}, seed),
          one_way(hosts, 1, Noise{0.03, 0.01}, seed), pair(hosts, 1, Noise{0.03, 0.01}, seed);
      slow.slow_host(1, 0.5);
      one_way.slow_sender(2, 0.5);
      pair.slow_pair(0, 3, 0.4);
      score.add({"host 1"}, names_of(slow.find().slow));
      score.add({"host 2 sends"}, names_of(one_way.find().slow));
      score.add({"pair 0->3"}, names_of(pair.find().slow));
    }
  RecordProperty("precision", std::to_string(score.precision()));
  RecordProperty("recall", std::to_string(score.recall()));
  EXPECT_GE(score.precision(), 0.98);
  EXPECT_GE(score.recall(), 0.98);
}

TEST(FabricConfirmation, WhatWasSlowOnceIsTransient) {
  SimulatedNetwork slow(8, 1, Noise{0.02, 0}, 1), sound(8, 1, Noise{0.02, 0}, 2);
  slow.slow_host(3, 0.5);
  const std::vector<Suspect> suspects =
      diagnose(slow.endpoints(), slow.measure_all(), Metric::bandwidth, Criteria()).suspects;
  ASSERT_EQ(suspects.size(), 1U);
  int measurements = 0;
  const Confirmed result = confirm(
      slow.endpoints(), suspects,
      [&](const std::vector<Round>& rounds) {
        return (++measurements == 1 ? slow : sound).measure_rounds(rounds);
      },
      Criteria());
  EXPECT_TRUE(result.slow.empty());
  EXPECT_EQ(names_of(result.transient), Names{"host 3"});
  EXPECT_EQ(measurements, 2) << "there is nothing left to measure";
}

/// A host that is half as fast as its peers.
Suspect half_as_fast(int host) {
  Suspect suspect;
  suspect.part = Part::host;
  suspect.hosts = {host};
  suspect.times = 2;
  suspect.value = 24;
  suspect.peers = 48;
  return suspect;
}

TEST(FabricConfirmation, SuspectsWithoutSoundPartnersAreNotTransient) {
  SimulatedNetwork network(2, 1, Noise{0, 0}, 1);
  network.slow_host(0, 0.5);
  int measurements = 0;
  const Confirmed result = confirm(
      network.endpoints(), {half_as_fast(0), half_as_fast(1)},
      [&](const std::vector<Round>& rounds) {
        ++measurements;
        return network.measure_rounds(rounds);
      },
      Criteria());
  EXPECT_TRUE(result.slow.empty());
  EXPECT_TRUE(result.transient.empty());
  EXPECT_EQ(names_of(result.unconfirmed), (Names{"host 0", "host 1"}));
  EXPECT_EQ(measurements, 0) << "there is nothing to compare them with";
}

TEST(FabricConfirmation, SuspectsThatAMeasurementLeavesOutStayForTheNextOne) {
  // More pairs of PE 0 than there are rounds.
  constexpr int hosts = static_cast<int>(max_second_rounds) + 40;
  SimulatedNetwork network(hosts, 1, Noise{0, 0}, 1);
  std::vector<Suspect> suspects;
  for (int target = 1; target < hosts; ++target) {
    Suspect suspect;
    suspect.source = network.pe(0, 0);
    suspect.target = network.pe(target, 0);
    suspect.hosts = {0, target};
    suspect.times = 2;
    suspect.value = 24;
    suspect.peers = 48;
    suspects.push_back(suspect);
    network.slow_pair(suspect.source, suspect.target, 0.5);
  }
  const Confirmed all_slow = confirm(
      network.endpoints(), suspects,
      [&](const std::vector<Round>& rounds) { return network.measure_rounds(rounds); }, Criteria());
  EXPECT_TRUE(all_slow.transient.empty());
  EXPECT_EQ(all_slow.slow.size() + all_slow.unconfirmed.size(), suspects.size());
  EXPECT_GT(all_slow.slow.size(), max_second_rounds);
  SimulatedNetwork sound(hosts, 1, Noise{0, 0}, 1);
  const Confirmed none_slow = confirm(
      network.endpoints(), suspects,
      [&](const std::vector<Round>& rounds) { return sound.measure_rounds(rounds); }, Criteria());
  EXPECT_EQ(none_slow.transient.size(), suspects.size()) << "all of them were measured again";
}

TEST(FabricConfirmation, SecondFiguresAreKept) {
  SimulatedNetwork network(8, 1, Noise{0, 0}, 1);
  network.slow_host(3, 0.5);
  const Confirmed result = network.find();
  ASSERT_EQ(result.slow.size(), 1U);
  EXPECT_EQ(result.slow[0].values_again.size(), static_cast<std::size_t>(second_measurements));
  EXPECT_NEAR(result.slow[0].values_again[0], 24, 0.01);
  EXPECT_NEAR(result.slow[0].peers_again[0], 48, 0.01);
}

TEST(FabricConfirmation, PlannedRoundsAreOfDisjointPairsOfDifferentHosts) {
  SimulatedNetwork network(16, 2, Noise{0, 0}, 1);
  network.slow_host(3, 0.5);
  network.slow_nic(5, 1, 0.5);
  network.slow_pair(network.pe(8, 0), network.pe(9, 0), 0.4);
  network.slow_rail(1, 0.7);
  const std::vector<Suspect> suspects =
      diagnose(network.endpoints(), network.measure_all(), Metric::bandwidth, Criteria()).suspects;
  ASSERT_EQ(suspects.size(), 4U);
  for (int stage = 0; stage < second_measurements; ++stage) {
    const SecondMeasurement plan =
        plan_second_measurement(network.endpoints(), suspects, stage, max_second_rounds);
    std::set<std::size_t> checked;
    for (const SecondMeasurement::Check& check : plan.checks)
      checked.insert(check.suspect);
    EXPECT_EQ(checked.size(), suspects.size());
    EXPECT_GE(plan.controls.size(), 3U);
    for (const Round& round : plan.rounds) {
      std::set<int> busy;
      for (const Pairing& pair : round) {
        EXPECT_TRUE(busy.insert(pair.first).second);
        EXPECT_TRUE(busy.insert(pair.second).second);
        EXPECT_NE(pair.first / 2, pair.second / 2) << "of one host";
      }
    }
  }
}

TEST(FabricConfirmation, RoundsAreLimited) {
  SimulatedNetwork network(8, 1, Noise{0, 0}, 1);
  std::vector<Suspect> suspects;
  for (int target = 1; target < 8; ++target) {
    Suspect suspect;
    suspect.source = 0;
    suspect.target = target;
    suspect.hosts = {0, target};
    suspects.push_back(suspect);
  }
  const SecondMeasurement plan = plan_second_measurement(network.endpoints(), suspects, 0, 3);
  EXPECT_EQ(plan.rounds.size(), 3U);
  EXPECT_LE(plan.checks.size(), 3U) << "PE 0 is in all of them";
  EXPECT_GE(plan.checks.size(), 1U);
}

} // namespace
} // namespace shmemctl::fabric
