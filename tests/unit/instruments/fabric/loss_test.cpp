#include "src/instruments/fabric/loss.h"

#include <algorithm>
#include <random>
#include <set>

#include <gtest/gtest.h>

namespace shmemctl::fabric {
namespace {

/// Hosts with one or more NICs; each measurement sends some packets, and the cables lose some.
class Network {
public:
  Network(int hosts, int rails, unsigned seed)
      : sending_(static_cast<std::size_t>(hosts), 0), receiving_(sending_), random_(seed) {
    for (int host = 0; host < hosts; ++host)
      for (int rail = 0; rail < rails; ++rail)
        endpoints_.push_back({host, rail});
  }
  void lose(int host, Direction direction, double share) {
    if (direction != Direction::receiving)
      sending_[static_cast<std::size_t>(host)] = share;
    if (direction != Direction::sending)
      receiving_[static_cast<std::size_t>(host)] = share;
  }
  /// All cables, both ways.
  void lose_everywhere(double share) {
    std::fill(sending_.begin(), sending_.end(), share);
    std::fill(receiving_.begin(), receiving_.end(), share);
  }
  const std::vector<Endpoint>& endpoints() const { return endpoints_; }

  PairFigure measure(int source, int target) {
    const auto host = [&](int pe) {
      return static_cast<std::size_t>(endpoints_[static_cast<std::size_t>(pe)].host);
    };
    std::binomial_distribution<int> lost(packets,
                                         sending_[host(source)] + receiving_[host(target)]);
    PairFigure figure;
    figure.source = source;
    figure.target = target;
    figure.resent = static_cast<float>(lost(random_)) / packets;
    return figure;
  }
  std::vector<PairFigure> measure_all() {
    std::vector<PairFigure> figures;
    const Schedule schedule(endpoints_, false);
    for (int round = 0; round < schedule.rounds(); ++round)
      for (const Pairing& pair : schedule.round(round)) {
        figures.push_back(measure(pair.first, pair.second));
        figures.push_back(measure(pair.second, pair.first));
      }
    return figures;
  }
  std::vector<LossyHost> find() {
    return confirm_lossy(endpoints_, find_lossy(endpoints_, measure_all()),
                         [this](const std::vector<Round>& rounds) {
                           std::vector<PairFigure> figures;
                           for (const Round& round : rounds)
                             for (const Pairing& pair : round) {
                               figures.push_back(measure(pair.first, pair.second));
                               figures.push_back(measure(pair.second, pair.first));
                             }
                           return figures;
                         });
  }

private:
  static constexpr int packets = 400;
  std::vector<Endpoint> endpoints_;
  std::vector<double> sending_, receiving_;
  std::mt19937 random_;
};

TEST(Loss, TheHostOfACableThatLosesPacketsIsNamed) {
  for (const int hosts : {3, 4, 5, 8, 40})
    for (unsigned seed = 1; seed <= 50; ++seed) {
      Network network(hosts, 1, seed);
      network.lose(1, Direction::both, 0.01);
      const std::vector<LossyHost> found = network.find();
      ASSERT_EQ(found.size(), 1U) << hosts << " hosts, seed " << seed;
      EXPECT_EQ(found[0].host, 1);
      EXPECT_EQ(found[0].direction, Direction::both);
      EXPECT_NEAR(found[0].share, 0.01, 0.006);
      EXPECT_EQ(found[0].peers, 0);
    }
}

TEST(Loss, ADirectionIsNamed) {
  for (const Direction direction : {Direction::sending, Direction::receiving})
    for (const int rails : {1, 2}) {
      Network network(5, rails, 7);
      network.lose(3, direction, 0.02);
      const std::vector<LossyHost> found = network.find();
      ASSERT_EQ(found.size(), 1U);
      EXPECT_EQ(found[0].host, 3);
      EXPECT_EQ(found[0].direction, direction);
      EXPECT_NEAR(found[0].share_again, 0.02, 0.01);
    }
}

TEST(Loss, TwoHostsAreNamed) {
  Network network(8, 1, 5);
  network.lose(2, Direction::both, 0.02);
  network.lose(6, Direction::both, 0.02);
  std::set<int> hosts;
  for (const LossyHost& host : network.find())
    hosts.insert(host.host);
  EXPECT_EQ(hosts, (std::set<int>{2, 6}));
}

TEST(Loss, WhatAllLoseIsNobodys) {
  for (const double share : {0.0, 0.0005, 0.005, 0.05})
    for (unsigned seed = 1; seed <= 50; ++seed) {
      Network network(6, 1, seed);
      network.lose_everywhere(share);
      EXPECT_TRUE(network.find().empty()) << share << ", seed " << seed;
    }
}

TEST(Loss, OnePairThatLosesPacketsIsNoHost) {
  Network network(6, 1, 3);
  std::vector<PairFigure> figures = network.measure_all();
  for (PairFigure& figure : figures)
    if ((figure.source == 1 && figure.target == 4) || (figure.source == 4 && figure.target == 1))
      figure.resent = 0.1F;
  EXPECT_TRUE(find_lossy(network.endpoints(), figures).empty());
}

TEST(Loss, WhatIsNotLostAgainIsNotNamed) {
  Network network(6, 1, 3);
  network.lose(2, Direction::both, 0.02);
  const std::vector<LossyHost> found = find_lossy(network.endpoints(), network.measure_all());
  ASSERT_EQ(found.size(), 1U);
  const Measure nothing = [](const std::vector<Round>& rounds) {
    std::vector<PairFigure> figures;
    for (const Round& round : rounds)
      for (const Pairing& pair : round) {
        PairFigure figure;
        figure.source = pair.first;
        figure.target = pair.second;
        figure.resent = 0;
        figures.push_back(figure);
      }
    return figures;
  };
  EXPECT_TRUE(confirm_lossy(network.endpoints(), found, nothing).empty());
}

TEST(Loss, TwoHostsAndWhatIsNotCountedNameNobody) {
  Network two(2, 1, 1);
  two.lose(0, Direction::both, 0.1);
  EXPECT_TRUE(find_lossy(two.endpoints(), two.measure_all()).empty());
  Network network(4, 1, 1);
  network.lose(0, Direction::both, 0.1);
  std::vector<PairFigure> figures = network.measure_all();
  for (PairFigure& figure : figures)
    figure.resent = not_measured; // not over TCP
  EXPECT_TRUE(find_lossy(network.endpoints(), figures).empty());
}

} // namespace
} // namespace shmemctl::fabric
