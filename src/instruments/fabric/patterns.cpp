#include "src/instruments/fabric/patterns.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "src/base/statistics.h"

namespace shmemctl::fabric {

namespace {

constexpr double times_slower = 1.5, sigmas = 6;
constexpr std::size_t fewest_peers = 4;

} // namespace

const char* to_string(Pattern pattern) {
  return pattern == Pattern::incast ? "incast" : "all-to-all";
}

PatternPlan::PatternPlan(const std::vector<Endpoint>& endpoints, Pattern pattern)
    : place_(endpoints.size()), pattern_(pattern) {
  int rails = 0;
  for (const Endpoint& endpoint : endpoints)
    rails = std::max(rails, endpoint.rail + 1);
  rails_.resize(static_cast<std::size_t>(rails));
  std::vector<int> by_host(endpoints.size());
  for (std::size_t pe = 0; pe < endpoints.size(); ++pe)
    by_host[pe] = static_cast<int>(pe);
  std::sort(by_host.begin(), by_host.end(), [&](int a, int b) {
    return endpoints[static_cast<std::size_t>(a)].host <
           endpoints[static_cast<std::size_t>(b)].host;
  });
  int most = 0;
  for (const int pe : by_host) {
    const int rail = endpoints[static_cast<std::size_t>(pe)].rail;
    std::vector<int>& members = rails_[static_cast<std::size_t>(rail)];
    place_[static_cast<std::size_t>(pe)] = {rail, static_cast<int>(members.size())};
    members.push_back(pe);
    most = std::max(most, static_cast<int>(members.size()));
  }
  rounds_ = pattern == Pattern::all_to_all ? 1 : std::min(max_senders + 1, most);
}

std::vector<int> PatternPlan::targets(int pe, int round) const {
  const Place& place = place_[static_cast<std::size_t>(pe)];
  const std::vector<int>& members = rails_[static_cast<std::size_t>(place.rail)];
  const auto count = static_cast<int>(members.size());
  std::vector<int> targets;
  if (pattern_ == Pattern::all_to_all) {
    for (int step = 1; step < count; ++step)
      targets.push_back(members[static_cast<std::size_t>((place.position + step) % count)]);
    return targets;
  }
  const int first = place.position / (max_senders + 1) * (max_senders + 1);
  const int target = first + round;
  if (target < count && target != place.position)
    targets.push_back(members[static_cast<std::size_t>(target)]);
  return targets;
}

std::vector<PatternRate> rates_of(const PatternPlan& plan, Pattern pattern, std::size_t n_pes,
                                  const std::vector<std::vector<double>>& sent) {
  std::map<int, PatternRate> rates;
  for (std::size_t round = 0; round < sent.size(); ++round)
    for (std::size_t pe = 0; pe < n_pes; ++pe) {
      const std::vector<int> targets = plan.targets(static_cast<int>(pe), static_cast<int>(round));
      if (targets.empty() || !(sent[round][pe] > 0))
        continue;
      const int who = pattern == Pattern::incast ? targets.front() : static_cast<int>(pe);
      PatternRate& rate = rates[who];
      rate.pe = who;
      rate.GBps += sent[round][pe];
      rate.senders += pattern == Pattern::incast ? 1 : 0;
    }
  std::vector<PatternRate> list;
  for (const auto& [pe, rate] : rates)
    list.push_back(rate);
  return list;
}

std::vector<SlowUnderLoad> slow_under_load(Pattern pattern,
                                           const std::vector<std::vector<PatternRate>>& runs) {
  std::map<int, std::vector<SlowUnderLoad>> slow; // by PE, of each run
  for (const std::vector<PatternRate>& run : runs) {
    std::map<int, std::vector<double>> logarithms; // by number of senders
    for (const PatternRate& rate : run)
      logarithms[rate.senders].push_back(std::log(rate.GBps));
    for (const PatternRate& rate : run) {
      const std::vector<double>& peers = logarithms[rate.senders];
      const double usual = median(peers);
      const double least = std::max(std::log(times_slower), sigmas * median_deviation(peers));
      if (peers.size() >= fewest_peers && usual - std::log(rate.GBps) > least)
        slow[rate.pe].push_back({pattern, rate.pe, rate.GBps, std::exp(usual)});
    }
  }
  std::vector<SlowUnderLoad> found;
  for (const auto& [pe, of_runs] : slow)
    if (of_runs.size() == runs.size())
      found.push_back(of_runs.back());
  return found;
}

} // namespace shmemctl::fabric
