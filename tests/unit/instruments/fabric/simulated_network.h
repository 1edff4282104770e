// A network of hosts with planted faults and noise, for tests of what finds the faults.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "src/instruments/fabric/confirmation.h"
#include "src/instruments/fabric/diagnosis.h"
#include "src/instruments/fabric/schedule.h"

namespace shmemctl::fabric {

/// One endpoint per rail of each host in block placement: PE = host * rails + rail.
inline std::vector<Endpoint> grid(int hosts, int rails) {
  std::vector<Endpoint> endpoints;
  for (int host = 0; host < hosts; ++host)
    for (int rail = 0; rail < rails; ++rail)
      endpoints.push_back({host, rail});
  return endpoints;
}

struct Noise {
  double sigma = 0.03; ///< of the logarithm of each measurement
  /// Shares a link with other traffic: one measurement in so many, at 0.3 to 0.9 of the rate.
  double collisions = 0;
};

/// All NICs are 400 Gb/s with 5 us, whatever goes wrong with some of them.
class SimulatedNetwork {
public:
  SimulatedNetwork(int hosts, int rails, Noise noise, unsigned seed)
      : hosts_(hosts), rails_(rails), noise_(noise), random_(seed), endpoints_(grid(hosts, rails)) {
    sends_.assign(endpoints_.size(), 1);
    receives_.assign(endpoints_.size(), 1);
    lossy_.assign(endpoints_.size(), false);
    rail_.assign(static_cast<std::size_t>(rails), 1);
  }

  const std::vector<Endpoint>& endpoints() const { return endpoints_; }
  int pe(int host, int rail = 0) const { return host * rails_ + rail; }

  // Faults. A share is what is left of the rate.
  void slow_host(int host, double share) {
    for (int rail = 0; rail < rails_; ++rail)
      slow_nic(host, rail, share);
  }
  void slow_nic(int host, int rail, double share) {
    sends_[at(pe(host, rail))] = receives_[at(pe(host, rail))] = share;
  }
  void slow_sender(int host, double share) {
    for (int rail = 0; rail < rails_; ++rail)
      sends_[at(pe(host, rail))] = share;
  }
  void slow_receiver(int host, double share) {
    for (int rail = 0; rail < rails_; ++rail)
      receives_[at(pe(host, rail))] = share;
  }
  void slow_pair(int source, int target, double share) { pairs_[{source, target}] = share; }
  /// Packets are lost at random: the rate is low, and never twice the same.
  void lossy_cable(int host) {
    for (int rail = 0; rail < rails_; ++rail)
      lossy_[at(pe(host, rail))] = true;
  }
  void slow_rail(int rail, double share) { rail_[at(rail)] = share; }
  /// These hosts share an uplink that is slow.
  void slow_uplink(const std::set<int>& hosts, double share) {
    behind_uplink_ = hosts;
    uplink_ = share;
  }
  void late_host(int host, double more_us) { late_us_[host] = more_us; }

  PairFigure measure(int source, int target) {
    double share = std::min({sends_[at(source)], receives_[at(target)],
                             std::min(rail_[at(source % rails_)], rail_[at(target % rails_)])});
    if (const auto found = pairs_.find({source, target}); found != pairs_.end())
      share = std::min(share, found->second);
    if (behind_uplink_.count(source / rails_) != behind_uplink_.count(target / rails_))
      share = std::min(share, uplink_);
    if (lossy_[at(source)] || lossy_[at(target)])
      share = std::min(share, 0.2 * std::exp(0.5 * normal_(random_)));
    if (uniform_(random_) < noise_.collisions)
      share *= 0.3 + 0.6 * uniform_(random_);
    const double late = late_us_[source / rails_] + late_us_[target / rails_];
    PairFigure figure;
    figure.source = source;
    figure.target = target;
    figure.GBps = static_cast<float>(48 * share * std::exp(noise_.sigma * normal_(random_)));
    figure.latency_us =
        static_cast<float>((5 + late) * std::exp(2 * noise_.sigma * std::abs(normal_(random_))));
    return figure;
  }
  std::vector<PairFigure> measure_rounds(const std::vector<Round>& rounds) {
    std::vector<PairFigure> figures;
    for (const Round& round : rounds)
      for (const Pairing& pair : round) {
        figures.push_back(measure(pair.first, pair.second));
        figures.push_back(measure(pair.second, pair.first));
      }
    return figures;
  }
  std::vector<PairFigure> measure_all(bool cross_rail = false) {
    const Schedule schedule(endpoints_, cross_rail);
    std::vector<Round> rounds;
    for (int number = 0; number < schedule.rounds(); ++number)
      rounds.push_back(schedule.round(number));
    return measure_rounds(rounds);
  }

  /// First measurement, diagnosis by bandwidth and latency, second measurements.
  Confirmed find(bool cross_rail = false) {
    const Criteria criteria;
    const std::vector<PairFigure> figures = measure_all(cross_rail);
    std::vector<Suspect> suspects =
        diagnose(endpoints_, figures, Metric::bandwidth, criteria).suspects;
    for (Suspect& suspect : diagnose(endpoints_, figures, Metric::latency, criteria).suspects)
      suspects.push_back(std::move(suspect));
    return confirm(
        endpoints_, suspects,
        [this](const std::vector<Round>& rounds) { return measure_rounds(rounds); }, criteria);
  }

private:
  static std::size_t at(int index) { return static_cast<std::size_t>(index); }

  int hosts_, rails_;
  Noise noise_;
  std::mt19937 random_;
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> uniform_;
  std::vector<Endpoint> endpoints_;
  std::vector<double> sends_, receives_, rail_;
  std::vector<bool> lossy_;
  std::map<std::pair<int, int>, double> pairs_;
  std::map<int, double> late_us_;
  std::set<int> behind_uplink_;
  double uplink_ = 1;
};

/// "host 17", "host 17 sends", "nic 3.1", "pair 4-9", "pair 4->9", "rail 2", "group 1,2,3"; of
/// latencies with "late" before it.
inline std::string name_of(const Suspect& suspect) {
  std::string name = suspect.metric == Metric::latency ? "late " : "";
  name += to_string(suspect.part);
  name += " ";
  if (suspect.part == Part::pair)
    return name + std::to_string(suspect.source) +
           (suspect.direction == Direction::both ? "-" : "->") + std::to_string(suspect.target);
  for (std::size_t i = 0; i < suspect.hosts.size(); ++i)
    name += (i > 0 ? "," : "") + std::to_string(suspect.hosts[i]);
  if (suspect.part == Part::nic)
    name += ".";
  if (suspect.rail >= 0)
    name += std::to_string(suspect.rail);
  if (suspect.direction == Direction::sending)
    name += " sends";
  if (suspect.direction == Direction::receiving)
    name += " receives";
  return name;
}

inline std::set<std::string> names_of(const std::vector<Suspect>& suspects) {
  std::set<std::string> names;
  for (const Suspect& suspect : suspects)
    names.insert(name_of(suspect));
  return names;
}

} // namespace shmemctl::fabric
