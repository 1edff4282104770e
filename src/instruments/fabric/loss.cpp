#include "src/instruments/fabric/loss.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>

namespace shmemctl::fabric {

namespace {

constexpr int fewest_hosts = 3;
/// A pair loses packets if it retransmits more than this share.
constexpr double share_of_lossy_pair = lossy_share / 4;
constexpr double share_of_lossy_pairs = 0.5;

class Mean {
public:
  void add(double value) {
    sum_ += value;
    ++count_;
  }
  double value() const { return count_ > 0 ? sum_ / count_ : 0; }
  int count() const { return count_; }

private:
  double sum_ = 0;
  int count_ = 0;
};

/// Lost segments of one host, in one direction.
struct Loss {
  Mean share;
  int lossy_pairs = 0;
  void add(double resent) {
    share.add(resent);
    lossy_pairs += resent > share_of_lossy_pair ? 1 : 0;
  }
  bool loses() const {
    return share.value() > lossy_share && lossy_pairs >= share_of_lossy_pairs * share.count();
  }
  bool stands_out(double peers) const { return loses() && share.value() > lossy_times * peers; }
};

int host_of(const std::vector<Endpoint>& endpoints, int pe) {
  return endpoints[static_cast<std::size_t>(pe)].host;
}

} // namespace

std::vector<LossyHost> find_lossy(const std::vector<Endpoint>& endpoints,
                                  const std::vector<PairFigure>& figures) {
  int hosts = 0;
  for (const Endpoint& endpoint : endpoints)
    hosts = std::max(hosts, endpoint.host + 1);
  if (hosts < fewest_hosts)
    return {};
  std::vector<Loss> sends(static_cast<std::size_t>(hosts)), receives(sends);
  for (const PairFigure& figure : figures) {
    if (!(figure.resent >= 0))
      continue;
    const auto resent = static_cast<double>(figure.resent);
    sends[static_cast<std::size_t>(host_of(endpoints, figure.source))].add(resent);
    receives[static_cast<std::size_t>(host_of(endpoints, figure.target))].add(resent);
  }
  // Peers are the pairs of hosts without loss, so that one lossy host does not hide another. If
  // most hosts lose packets, peers are all pairs without this host.
  std::set<int> candidates;
  for (int host = 0; host < hosts; ++host)
    if (sends[static_cast<std::size_t>(host)].loses() ||
        receives[static_cast<std::size_t>(host)].loses())
      candidates.insert(host);
  const bool most_lose = candidates.size() * 2 > static_cast<std::size_t>(hosts);
  Mean all, sound;
  for (const PairFigure& figure : figures) {
    if (!(figure.resent >= 0))
      continue;
    all.add(static_cast<double>(figure.resent));
    if (candidates.count(host_of(endpoints, figure.source)) == 0 &&
        candidates.count(host_of(endpoints, figure.target)) == 0)
      sound.add(static_cast<double>(figure.resent));
  }
  std::vector<LossyHost> lossy;
  for (int host = 0; host < hosts; ++host) {
    const Loss &sent = sends[static_cast<std::size_t>(host)],
               &received = receives[static_cast<std::size_t>(host)];
    if (!sent.loses() && !received.loses())
      continue;
    const int own = sent.share.count() + received.share.count();
    const int others = most_lose ? all.count() - own : sound.count();
    if (others <= 0)
      continue;
    const double own_sum =
        sent.share.value() * sent.share.count() + received.share.value() * received.share.count();
    LossyHost found;
    found.host = host;
    found.peers =
        most_lose ? std::max(0.0, (all.value() * all.count() - own_sum) / others) : sound.value();
    const bool sending = sent.stands_out(found.peers), receiving = received.stands_out(found.peers);
    if (!sending && !receiving)
      continue;
    found.direction = sending && receiving ? Direction::both
                      : sending            ? Direction::sending
                                           : Direction::receiving;
    found.share = sending && receiving ? own_sum / own
                  : sending            ? sent.share.value()
                                       : received.share.value();
    lossy.push_back(found);
  }
  std::stable_sort(lossy.begin(), lossy.end(),
                   [](const LossyHost& a, const LossyHost& b) { return a.share > b.share; });
  return lossy;
}

std::vector<LossyHost> confirm_lossy(const std::vector<Endpoint>& endpoints,
                                     const std::vector<LossyHost>& lossy, const Measure& measure) {
  if (lossy.empty())
    return {};
  std::vector<Suspect> suspects;
  std::set<int> hosts;
  for (const LossyHost& host : lossy) {
    Suspect suspect;
    suspect.part = Part::host;
    suspect.hosts = {host.host};
    suspects.push_back(std::move(suspect));
    hosts.insert(host.host);
  }
  std::vector<Mean> own(lossy.size());
  Mean peers;
  for (int stage = 0; stage < second_measurements; ++stage) {
    const SecondMeasurement plan =
        plan_second_measurement(endpoints, suspects, stage, max_second_rounds);
    for (const PairFigure& figure : measure(plan.rounds)) {
      if (!(figure.resent >= 0))
        continue;
      const int source = host_of(endpoints, figure.source),
                target = host_of(endpoints, figure.target);
      const auto resent = static_cast<double>(figure.resent);
      for (std::size_t i = 0; i < lossy.size(); ++i)
        if ((lossy[i].direction != Direction::receiving && source == lossy[i].host) ||
            (lossy[i].direction != Direction::sending && target == lossy[i].host))
          own[i].add(resent);
      if (hosts.count(source) == 0 && hosts.count(target) == 0)
        peers.add(resent);
    }
  }
  std::vector<LossyHost> confirmed;
  for (std::size_t i = 0; i < lossy.size(); ++i) {
    LossyHost host = lossy[i];
    host.share_again = own[i].value();
    // If no pair of sound hosts was measured again, the peers' share of the first measurement
    // counts.
    host.peers_again = peers.count() > 0 ? peers.value() : host.peers;
    if (host.share_again > lossy_share && host.share_again > lossy_times * host.peers_again)
      confirmed.push_back(host);
  }
  return confirmed;
}

} // namespace shmemctl::fabric
