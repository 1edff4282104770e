#include "src/instruments/fabric/confirmation.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "src/base/statistics.h"

namespace shmemctl::fabric {

namespace {

constexpr int checks_of_host = 4, checks_of_nic = 4, checks_of_rail = 6;
constexpr int checked_members = 4, checks_of_member = 2;
constexpr int controls_of_rail = 6;
constexpr std::size_t fewest_controls = 3;

class Planner {
public:
  Planner(const std::vector<Endpoint>& endpoints, const std::vector<Suspect>& suspects, int stage)
      : endpoints_(endpoints), suspects_(suspects), random_(static_cast<unsigned>(stage) + 1) {
    for (std::size_t pe = 0; pe < endpoints.size(); ++pe) {
      pe_at_[{endpoints[pe].host, endpoints[pe].rail}] = static_cast<int>(pe);
      hosts_ = std::max(hosts_, endpoints[pe].host + 1);
      rails_ = std::max(rails_, endpoints[pe].rail + 1);
    }
    for (const Suspect& suspect : suspects)
      accuse(suspect);
    for (int host = 0; host < hosts_; ++host)
      order_.push_back(host);
    std::shuffle(order_.begin(), order_.end(), random_);
  }

  SecondMeasurement plan(std::size_t max_rounds) {
    for (std::size_t i = 0; i < suspects_.size(); ++i)
      add_checks(i);
    // In the order of the suspects, the pairs of a host would follow each other, and no two of them
    // can share a round.
    std::shuffle(wanted_.begin(), wanted_.end(), random_);
    // There may be many pairs: the more important suspects get room first.
    std::stable_partition(wanted_.begin(), wanted_.end(), [&](const auto& check) {
      return suspects_[check.suspect].part != Part::pair;
    });
    add_controls(max_rounds);
    for (const SecondMeasurement::Check& check : wanted_)
      if (place({check.source, check.target}, max_rounds))
        plan_.checks.push_back(check);
    return std::move(plan_);
  }

private:
  void accuse(const Suspect& suspect) {
    switch (suspect.part) {
    case Part::rail:
      slow_rails_.insert(suspect.rail);
      break;
    case Part::group:
    case Part::host:
      slow_hosts_.insert(suspect.hosts.begin(), suspect.hosts.end());
      break;
    case Part::nic:
      slow_nics_.emplace(suspect.hosts.front(), suspect.rail);
      break;
    case Part::pair:
      slow_pairs_.insert(std::minmax(suspect.source, suspect.target));
      break;
    }
  }
  /// The PE of that host on that rail; -1 if there is none.
  int pe_at(int host, int rail) const {
    const auto found = pe_at_.find({host, rail});
    return found == pe_at_.end() ? -1 : found->second;
  }
  bool is_sound(int host, int rail) const {
    return pe_at(host, rail) >= 0 && slow_hosts_.count(host) == 0 &&
           slow_nics_.count({host, rail}) == 0;
  }
  bool is_sound_pair(int a, int b) const { return slow_pairs_.count(std::minmax(a, b)) == 0; }

  /// Adds up to `count` sound partners on the PE's rail, beginning with a random one.
  void add_partners(std::size_t suspect, int pe, int count) {
    const Endpoint& self = endpoints_[static_cast<std::size_t>(pe)];
    const std::size_t from = random_() % order_.size();
    for (std::size_t i = 0; i < order_.size() && count > 0; ++i) {
      const int host = order_[(from + i) % order_.size()];
      if (host == self.host || !is_sound(host, self.rail))
        continue;
      const int partner = pe_at(host, self.rail);
      if (!is_sound_pair(pe, partner))
        continue;
      wanted_.push_back({suspect, pe, partner});
      --count;
    }
  }

  void add_host(std::size_t suspect, int host, int count) {
    std::vector<int> pes;
    for (int rail = 0; rail < rails_; ++rail)
      if (pe_at(host, rail) >= 0)
        pes.push_back(pe_at(host, rail));
    if (pes.empty())
      return;
    const int each = std::max(1, count / static_cast<int>(pes.size()));
    for (const int pe : pes)
      add_partners(suspect, pe, each);
  }

  void add_checks(std::size_t i) {
    const Suspect& suspect = suspects_[i];
    switch (suspect.part) {
    case Part::pair:
      wanted_.push_back({i, suspect.source, suspect.target});
      return;
    case Part::nic:
      add_partners(i, pe_at(suspect.hosts.front(), suspect.rail), checks_of_nic);
      return;
    case Part::host:
      add_host(i, suspect.hosts.front(), checks_of_host);
      return;
    case Part::group: {
      std::vector<int> members = suspect.hosts;
      std::shuffle(members.begin(), members.end(), random_);
      members.resize(std::min<std::size_t>(members.size(), checked_members));
      for (const int member : members)
        add_host(i, member, checks_of_member);
      return;
    }
    case Part::rail:
      for (const Pairing& pair : sound_pairs(suspect.rail, checks_of_rail))
        wanted_.push_back({i, pair.first, pair.second});
      return;
    }
  }

  /// Up to `count` pairs of sound hosts, with each host in at most one pair.
  std::vector<Pairing> sound_pairs(int rail, int count) {
    std::vector<Pairing> pairs;
    int waiting = -1;
    for (const int host : order_) {
      if (!is_sound(host, rail) || static_cast<int>(pairs.size()) == count)
        continue;
      const int pe = pe_at(host, rail);
      if (waiting < 0) {
        waiting = pe;
      } else if (is_sound_pair(waiting, pe)) {
        pairs.push_back({waiting, pe});
        waiting = -1;
      }
    }
    return pairs;
  }

  /// Adds controls on each rail that is not a suspect. With few sound hosts, all pairs of them are
  /// candidates.
  void add_controls(std::size_t max_rounds) {
    for (int rail = 0; rail < rails_; ++rail) {
      if (slow_rails_.count(rail) != 0)
        continue;
      std::vector<Pairing> pairs = sound_pairs(rail, controls_of_rail);
      if (pairs.size() < fewest_controls)
        pairs = all_sound_pairs(rail);
      for (const Pairing& pair : pairs)
        if (place(pair, max_rounds))
          plan_.controls.push_back(pair);
    }
  }
  std::vector<Pairing> all_sound_pairs(int rail) const {
    std::vector<Pairing> pairs;
    for (const int a : order_)
      for (const int b : order_)
        if (a < b && is_sound(a, rail) && is_sound(b, rail) &&
            is_sound_pair(pe_at(a, rail), pe_at(b, rail)) &&
            static_cast<int>(pairs.size()) < controls_of_rail)
          pairs.push_back({pe_at(a, rail), pe_at(b, rail)});
    return pairs;
  }

  /// Puts a pair into the first round in which both PEs are free.
  bool place(const Pairing& pair, std::size_t max_rounds) {
    for (std::size_t i = 0; i <= busy_.size() && i < max_rounds; ++i) {
      if (i == busy_.size()) {
        busy_.emplace_back(endpoints_.size(), 0);
        plan_.rounds.emplace_back();
      }
      char &first = busy_[i][static_cast<std::size_t>(pair.first)],
           &second = busy_[i][static_cast<std::size_t>(pair.second)];
      if (first != 0 || second != 0)
        continue;
      first = second = 1;
      plan_.rounds[i].push_back(pair);
      return true;
    }
    return false;
  }

  const std::vector<Endpoint>& endpoints_;
  const std::vector<Suspect>& suspects_;
  std::minstd_rand random_;
  int hosts_ = 0, rails_ = 0;
  std::map<std::pair<int, int>, int> pe_at_; ///< by host and rail
  std::set<int> slow_hosts_, slow_rails_;
  std::set<std::pair<int, int>> slow_nics_;  ///< host, rail
  std::set<std::pair<int, int>> slow_pairs_; ///< PEs, the lower one first
  std::vector<int> order_;                   ///< hosts in the order of the measurements
  std::vector<SecondMeasurement::Check> wanted_;
  std::vector<std::vector<char>> busy_; ///< by round, by PE
  SecondMeasurement plan_;
};

double value_in(const PairFigure& figure, Metric metric) {
  return static_cast<double>(metric == Metric::bandwidth ? figure.GBps : figure.latency_us);
}

/// Figures by pair; a pair that several suspects check has several figures.
class Figures {
public:
  explicit Figures(const std::vector<PairFigure>& figures) {
    for (const PairFigure& figure : figures)
      by_pair_[{figure.source, figure.target}].push_back(&figure);
  }
  /// Appends the median of one direction of a pair to `to`, if it was measured.
  void add(int source, int target, Metric metric, std::vector<double>& to) const {
    const auto found = by_pair_.find({source, target});
    if (found == by_pair_.end())
      return;
    std::vector<double> values;
    for (const PairFigure* figure : found->second)
      if (const double value = value_in(*figure, metric); value > 0)
        values.push_back(value);
    if (!values.empty())
      to.push_back(median(std::move(values)));
  }

private:
  std::map<std::pair<int, int>, std::vector<const PairFigure*>> by_pair_;
};

/// Whether the PE belongs to the suspect; for a pair, only its source does.
bool has_pe(const Suspect& suspect, const Endpoint& endpoint, int pe) {
  if (suspect.part == Part::pair)
    return pe == suspect.source;
  if (suspect.part == Part::rail)
    return true;
  const auto& hosts = suspect.hosts;
  return std::find(hosts.begin(), hosts.end(), endpoint.host) != hosts.end();
}

/// The values of a check, in the directions in which the suspect is slow.
std::vector<double> values_of(const Suspect& suspect, const SecondMeasurement::Check& check,
                              const std::vector<Endpoint>& endpoints, const Figures& figures) {
  const bool source_is_it =
      has_pe(suspect, endpoints[static_cast<std::size_t>(check.source)], check.source);
  const int own = source_is_it ? check.source : check.target;
  const int other = source_is_it ? check.target : check.source;
  std::vector<double> values;
  if (suspect.direction != Direction::receiving)
    figures.add(own, other, suspect.metric, values);
  if (suspect.direction != Direction::sending)
    figures.add(other, own, suspect.metric, values);
  return values;
}

} // namespace

SecondMeasurement plan_second_measurement(const std::vector<Endpoint>& endpoints,
                                          const std::vector<Suspect>& suspects, int stage,
                                          std::size_t max_rounds) {
  return Planner(endpoints, suspects, stage).plan(max_rounds);
}

std::vector<Suspect> still_slow(const std::vector<Endpoint>& endpoints,
                                const std::vector<Suspect>& suspects, const SecondMeasurement& plan,
                                const std::vector<PairFigure>& figures, const Criteria& criteria) {
  const Figures by_pair(figures);
  std::vector<std::vector<double>> values(suspects.size());
  std::vector<std::set<int>> rails(suspects.size());
  for (const SecondMeasurement::Check& check : plan.checks) {
    for (const double value : values_of(suspects[check.suspect], check, endpoints, by_pair))
      values[check.suspect].push_back(value);
    rails[check.suspect].insert(endpoints[static_cast<std::size_t>(check.source)].rail);
  }
  std::vector<Suspect> slow;
  for (std::size_t i = 0; i < suspects.size(); ++i) {
    Suspect suspect = suspects[i];
    if (values[i].empty()) {
      slow.push_back(std::move(suspect));
      continue;
    }
    std::vector<double> peers;
    for (const Pairing& control : plan.controls)
      if (suspect.part == Part::rail ||
          rails[i].count(endpoints[static_cast<std::size_t>(control.first)].rail) != 0) {
        by_pair.add(control.first, control.second, suspect.metric, peers);
        by_pair.add(control.second, control.first, suspect.metric, peers);
      }
    const bool rates = suspect.metric == Metric::bandwidth;
    double usual = suspect.peers;
    if (peers.size() >= fewest_controls)
      usual = rates ? median(peers) / suspect.explained : median(peers) * suspect.explained;
    const double value = median(values[i]);
    const double times = rates ? usual / value : value / usual;
    if (times <
        std::pow(criteria.least_times(suspect.part, suspect.metric), criteria.confirmed_share))
      continue;
    suspect.values_again.push_back(value);
    suspect.peers_again.push_back(usual);
    slow.push_back(std::move(suspect));
  }
  return slow;
}

Confirmed confirm(const std::vector<Endpoint>& endpoints, std::vector<Suspect> suspects,
                  const Measure& measure, const Criteria& criteria) {
  Confirmed result;
  for (int stage = 0; stage < second_measurements && !suspects.empty(); ++stage) {
    const SecondMeasurement plan =
        plan_second_measurement(endpoints, suspects, stage, max_second_rounds);
    if (plan.checks.empty()) // nor would the next plan have any
      break;
    std::vector<Suspect> slow =
        still_slow(endpoints, suspects, plan, measure(plan.rounds), criteria);
    // `slow` is in the order of `suspects`; those that it lacks were not found slow again.
    std::size_t next = 0;
    for (Suspect& suspect : suspects) {
      const bool stays = next < slow.size() && slow[next].part == suspect.part &&
                         slow[next].metric == suspect.metric && slow[next].hosts == suspect.hosts &&
                         slow[next].rail == suspect.rail && slow[next].source == suspect.source &&
                         slow[next].target == suspect.target;
      if (stays)
        ++next;
      else
        result.transient.push_back(std::move(suspect));
    }
    suspects = std::move(slow);
  }
  for (Suspect& suspect : suspects)
    (suspect.values_again.empty() ? result.unconfirmed : result.slow).push_back(std::move(suspect));
  return result;
}

} // namespace shmemctl::fabric
