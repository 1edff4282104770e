#include "src/instruments/fabric/diagnosis.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "src/base/statistics.h"

namespace shmemctl::fabric {

const char* to_string(Part part) {
  switch (part) {
  case Part::rail:
    return "rail";
  case Part::group:
    return "group";
  case Part::host:
    return "host";
  case Part::nic:
    return "nic";
  case Part::pair:
    return "pair";
  }
  return "pair";
}

double Criteria::least_times(Part part, Metric metric) const {
  if (metric == Metric::latency)
    return part == Part::pair ? pair_latency_times : host_latency_times;
  return part == Part::pair ? pair_times : host_times;
}

namespace {

constexpr int polish_rounds = 3;
/// With one partner, a slow NIC cannot be told from a slow partner.
constexpr std::size_t fewest_partners = 2;
/// With fewer pairs, one slow pair would increase the spread so much that it hides itself.
constexpr std::size_t fewest_for_spread = 5;
/// A host with several NICs is slow if at least this share of them is slow.
constexpr double share_of_nics = 0.75;
/// Hosts form a group if at least this share of the pairs between them is fast.
constexpr double share_of_fast_pairs = 0.75;

/// The median, or the lower of two values in the middle: of two logarithms of times, one of which
/// is slow, the lower one is the usual value. 0 for no values.
double low_median(std::vector<double>& values) {
  if (values.empty())
    return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double deviation(const std::vector<double>& values) {
  std::vector<double> copy = values;
  const double middle = low_median(copy);
  for (double& value : copy)
    value = std::abs(value - middle);
  return mad_to_sigma * low_median(copy);
}

/// For each element, the median of all other elements.
std::vector<double> medians_of_others(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> medians(values.size(), 0);
  if (values.size() < 2)
    return medians;
  const std::size_t middle = (values.size() - 2) / 2;
  for (std::size_t rank = 0; rank < order.size(); ++rank)
    medians[order[rank]] = values[order[middle < rank ? middle : middle + 1]];
  return medians;
}

/// One ordered pair, with the logarithm of its time.
struct Cell {
  std::size_t source = 0, target = 0;
  std::size_t kind = 0; ///< index of its pair of rails
  double time = 0;
};

/// Effects of NICs in one direction, by PE.
struct Effects {
  std::vector<double> value;
  std::vector<std::size_t> partners;
  std::vector<double> excess; ///< above the median of the others that have enough partners
  /// Spread of what `value` and the partners' effects leave unexplained.
  std::vector<double> spread;
  double typical = 0, scale = 0;
};

class Model {
public:
  Model(const std::vector<Endpoint>& endpoints, const std::vector<PairFigure>& figures,
        Metric metric, const Criteria& criteria)
      : endpoints_(endpoints), metric_(metric), criteria_(criteria) {
    for (const Endpoint& endpoint : endpoints) {
      hosts_ = std::max(hosts_, endpoint.host + 1);
      rails_ = std::max(rails_, endpoint.rail + 1);
    }
    metric == Metric::bandwidth ? read_bandwidths(figures) : read_latencies(figures);
    index();
    find_kinds();
    polish();
  }

  Diagnosis diagnose() {
    Diagnosis result;
    result.noise = noise_;
    if (cells_.empty())
      return result;
    result.usual = value_of(usual());
    find_rails(result.suspects);
    find_hosts_and_nics(result.suspects);
    find_pairs(result.suspects);
    std::stable_sort(result.suspects.begin(), result.suspects.end(),
                     [](const Suspect& a, const Suspect& b) { return a.times > b.times; });
    return result;
  }

private:
  void add(const PairFigure& figure, double time) {
    const auto source = static_cast<std::size_t>(figure.source),
               target = static_cast<std::size_t>(figure.target);
    const int rails = endpoints_[source].rail * rails_ + endpoints_[target].rail;
    const auto [found, is_new] = kind_of_.emplace(hosts_ > 2 ? rails : 0, kind_of_.size());
    if (is_new)
      rails_of_kind_.emplace_back(endpoints_[source].rail, endpoints_[target].rail);
    cells_.push_back({source, target, found->second, time});
  }

  void read_bandwidths(const std::vector<PairFigure>& figures) {
    std::vector<double> noises;
    for (const PairFigure& figure : figures)
      if (figure.GBps > 0) {
        add(figure, -std::log(static_cast<double>(figure.GBps)));
        if (figure.noise >= 0)
          noises.push_back(static_cast<double>(figure.noise));
      }
    noise_ = low_median(noises);
  }

  /// Reads the latencies as the mean of the logarithms of both directions.
  void read_latencies(const std::vector<PairFigure>& figures) {
    std::vector<double> noises;
    std::map<std::pair<int, int>, double> back;
    for (const PairFigure& figure : figures)
      if (figure.latency_us > 0)
        back[{figure.target, figure.source}] = std::log(static_cast<double>(figure.latency_us));
    for (const PairFigure& figure : figures) {
      if (!(figure.latency_us > 0))
        continue;
      const double time = std::log(static_cast<double>(figure.latency_us));
      const auto other = back.find({figure.source, figure.target});
      add(figure, other == back.end() ? time : (time + other->second) / 2);
      if (figure.latency_noise >= 0)
        noises.push_back(static_cast<double>(figure.latency_noise));
    }
    noise_ = low_median(noises);
  }

  void index() {
    by_source_.resize(endpoints_.size());
    by_target_.resize(endpoints_.size());
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      by_source_[cells_[i].source].push_back(i);
      by_target_[cells_[i].target].push_back(i);
    }
  }

  void find_kinds() {
    std::vector<std::vector<double>> times(kind_of_.size());
    for (const Cell& cell : cells_)
      times[cell.kind].push_back(cell.time);
    for (std::vector<double>& each : times) {
      cells_of_kind_.push_back(each.size());
      of_kind_.push_back(low_median(each));
    }
  }

  void polish() {
    sends_.value.assign(endpoints_.size(), 0);
    receives_.value.assign(endpoints_.size(), 0);
    std::vector<double> rest;
    const auto fit = [&](const std::vector<std::vector<std::size_t>>& cells_of,
                         const std::vector<double>& others, std::size_t Cell::*other,
                         std::vector<double>& effects) {
      for (std::size_t pe = 0; pe < effects.size(); ++pe) {
        if (cells_of[pe].size() < fewest_partners)
          continue;
        rest.clear();
        for (const std::size_t i : cells_of[pe])
          rest.push_back(cells_[i].time - of_kind_[cells_[i].kind] - others[cells_[i].*other]);
        effects[pe] = low_median(rest);
      }
    };
    for (int round = 0; round < polish_rounds; ++round) {
      fit(by_source_, receives_.value, &Cell::target, sends_.value);
      fit(by_target_, sends_.value, &Cell::source, receives_.value);
    }
    move_typical_to_rails();
    rest.clear();
    for (const Cell& cell : cells_)
      rest.push_back(std::abs(rest_of(cell)));
    noise_ = std::max(noise_, mad_to_sigma * low_median(rest));
    sends_.spread = spreads(by_source_);
    receives_.spread = spreads(by_target_);
    judge(by_source_, sends_);
    judge(by_target_, receives_);
  }

  /// Moves the effect that most NICs of a rail have in common to the rail. This is needed because,
  /// if a third of the hosts is slow, more than half of the pairs are slow, so that the median over
  /// the pairs is that of slow pairs.
  void move_typical_to_rails() {
    if (hosts_ <= 2) // pairs of rails are not distinguished
      return;
    std::vector<double> of_senders, of_receivers;
    for (const auto& [effects, typical] :
         {std::pair(&sends_, &of_senders), std::pair(&receives_, &of_receivers)}) {
      std::vector<std::vector<double>> values(static_cast<std::size_t>(rails_));
      const auto& cells_of = effects == &sends_ ? by_source_ : by_target_;
      for (std::size_t pe = 0; pe < endpoints_.size(); ++pe)
        if (cells_of[pe].size() >= fewest_partners)
          values[static_cast<std::size_t>(endpoints_[pe].rail)].push_back(effects->value[pe]);
      for (std::vector<double>& each : values)
        typical->push_back(low_median(each));
      for (std::size_t pe = 0; pe < endpoints_.size(); ++pe)
        if (cells_of[pe].size() >= fewest_partners)
          effects->value[pe] -= (*typical)[static_cast<std::size_t>(endpoints_[pe].rail)];
    }
    for (std::size_t kind = 0; kind < of_kind_.size(); ++kind)
      of_kind_[kind] += of_senders[static_cast<std::size_t>(rails_of_kind_[kind].first)] +
                        of_receivers[static_cast<std::size_t>(rails_of_kind_[kind].second)];
  }

  /// For each PE, how far its pairs deviate from the model. The pairs of a cable that loses packets
  /// deviate widely, so none of them is an outlier.
  std::vector<double> spreads(const std::vector<std::vector<std::size_t>>& cells_of) const {
    std::vector<double> found, rest;
    for (const std::vector<std::size_t>& cells : cells_of) {
      rest.clear();
      if (cells.size() >= fewest_for_spread)
        for (const std::size_t i : cells)
          rest.push_back(std::abs(rest_of(cells_[i])));
      found.push_back(mad_to_sigma * low_median(rest));
    }
    return found;
  }

  double rest_of(const Cell& cell) const { return cell.time - expected(cell); }
  double expected(const Cell& cell) const {
    return of_kind_[cell.kind] + sends_.value[cell.source] + receives_.value[cell.target];
  }

  void judge(const std::vector<std::vector<std::size_t>>& cells_of, Effects& effects) const {
    effects.excess.assign(endpoints_.size(), 0);
    std::vector<double> values;
    std::vector<std::size_t> pes;
    for (std::size_t pe = 0; pe < endpoints_.size(); ++pe) {
      effects.partners.push_back(cells_of[pe].size());
      if (cells_of[pe].size() < fewest_partners)
        continue;
      values.push_back(effects.value[pe]);
      pes.push_back(pe);
    }
    if (values.size() < 2)
      return;
    effects.scale = deviation(values);
    const std::vector<double> others = medians_of_others(values);
    for (std::size_t i = 0; i < pes.size(); ++i)
      effects.excess[pes[i]] = values[i] - others[i];
    effects.typical = low_median(values);
  }

  double least(Part part) const { return std::log(criteria_.least_times(part, metric_)); }
  double nic_threshold(const Effects& effects, std::size_t pe) const {
    const double error =
        median_error_factor * noise_ /
        std::sqrt(static_cast<double>(std::max<std::size_t>(effects.partners[pe], 1)));
    return std::max(least(Part::nic), criteria_.sigmas * std::max(effects.scale, error));
  }

  /// Converts the logarithm of a time to the metric's unit.
  double value_of(double time) const {
    return metric_ == Metric::bandwidth ? std::exp(-time) : std::exp(time);
  }
  double kind_usual() const {
    std::vector<double> kinds = of_kind_;
    return low_median(kinds);
  }
  double usual() const { return kind_usual() + sends_.typical + receives_.typical; }

  /// Sets the values of a suspect and adds it, unless the excess of its latency is too small.
  void add_suspect(Suspect suspect, double time, double peers, std::vector<Suspect>& to) const {
    suspect.metric = metric_;
    suspect.times = std::exp(time - peers);
    suspect.value = value_of(time);
    suspect.peers = value_of(peers);
    if (metric_ == Metric::latency) {
      if (suspect.value - suspect.peers < criteria_.min_latency_us)
        return;
      suspect.direction = Direction::both;
    }
    to.push_back(std::move(suspect));
  }

  void find_rails(std::vector<Suspect>& to) const {
    std::vector<double> values;
    std::vector<std::size_t> kinds;
    for (std::size_t kind = 0; kind < of_kind_.size(); ++kind)
      if (rails_of_kind_[kind].first == rails_of_kind_[kind].second) {
        values.push_back(of_kind_[kind]);
        kinds.push_back(kind);
      }
    if (values.size() < 2 || hosts_ <= 2)
      return;
    const std::vector<double> others = medians_of_others(values);
    const double scale = values.size() > 4 ? deviation(values) : 0;
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      const double error =
          median_error_factor * noise_ / std::sqrt(static_cast<double>(cells_of_kind_[kinds[i]]));
      const double excess = values[i] - others[i];
      if (excess <= std::max(least(Part::rail), criteria_.sigmas * std::max(scale, error)))
        continue;
      Suspect suspect;
      suspect.part = Part::rail;
      suspect.rail = rails_of_kind_[kinds[i]].first;
      const double rest = sends_.typical + receives_.typical;
      add_suspect(suspect, values[i] + rest, others[i] + rest, to);
    }
  }

  /// Slow directions of one host or NIC.
  struct Slow {
    double sending = 0, receiving = 0; ///< the excess; 0 if not slow
    bool any() const { return sending > 0 || receiving > 0; }
    double most() const { return std::max(sending, receiving); }
    Direction direction() const {
      return sending > 0 && receiving > 0 ? Direction::both
             : sending > 0                ? Direction::sending
                                          : Direction::receiving;
    }
  };

  /// The excess of each PE if it is more than the noise explains, otherwise 0.
  std::vector<double> slow_nics(const Effects& effects) const {
    std::vector<double> slow(endpoints_.size(), 0);
    for (std::size_t pe = 0; pe < slow.size(); ++pe)
      if (effects.partners[pe] >= fewest_partners &&
          effects.excess[pe] > nic_threshold(effects, pe))
        slow[pe] = effects.excess[pe];
    return slow;
  }

  /// The median excess of a host's slow NICs if most of its NICs are slow, otherwise 0. The NICs of
  /// a slow host are then no longer suspects themselves.
  static double slow_host(const std::vector<std::size_t>& pes, std::vector<double>& slow) {
    std::vector<double> values;
    for (const std::size_t pe : pes)
      if (slow[pe] > 0)
        values.push_back(slow[pe]);
    if (pes.empty() ||
        static_cast<double>(values.size()) < share_of_nics * static_cast<double>(pes.size()))
      return 0;
    for (const std::size_t pe : pes)
      slow[pe] = 0;
    return low_median(values);
  }

  void find_hosts_and_nics(std::vector<Suspect>& to) const {
    std::vector<double> sending = slow_nics(sends_), receiving = slow_nics(receives_);
    std::vector<std::vector<std::size_t>> pes_of(static_cast<std::size_t>(hosts_));
    for (std::size_t pe = 0; pe < endpoints_.size(); ++pe)
      if (sends_.partners[pe] >= fewest_partners || receives_.partners[pe] >= fewest_partners)
        pes_of[static_cast<std::size_t>(endpoints_[pe].host)].push_back(pe);
    std::map<int, Slow> hosts;
    for (int host = 0; host < hosts_; ++host) {
      const std::vector<std::size_t>& pes = pes_of[static_cast<std::size_t>(host)];
      const Slow slow{slow_host(pes, sending), slow_host(pes, receiving)};
      if (slow.any())
        hosts[host] = slow;
    }
    find_groups(hosts, to);
    for (const auto& [host, slow] : hosts) {
      Suspect suspect;
      suspect.part = Part::host;
      suspect.hosts = {host};
      suspect.direction = slow.direction();
      add_suspect(suspect, usual() + slow.most(), usual(), to);
    }
    for (std::size_t pe = 0; pe < endpoints_.size(); ++pe) {
      const Slow slow{sending[pe], receiving[pe]};
      if (!slow.any())
        continue;
      Suspect suspect;
      suspect.part = Part::nic;
      suspect.hosts = {endpoints_[pe].host};
      suspect.rail = endpoints_[pe].rail;
      suspect.direction = slow.direction();
      add_suspect(suspect, usual() + slow.most(), usual(), to);
    }
  }

  /// Moves hosts that are slow to all others, but not among themselves, from `hosts` to groups.
  void find_groups(std::map<int, Slow>& hosts, std::vector<Suspect>& to) const {
    if (hosts.size() < 2)
      return;
    // By pair of slow hosts: the number of fast pairs of NICs, and of all pairs of NICs.
    std::map<std::pair<int, int>, std::pair<int, int>> fast;
    for (const auto& [host, slow] : hosts)
      for (std::size_t pe = 0; pe < endpoints_.size(); ++pe)
        if (endpoints_[pe].host == host)
          count_fast(pe, host, hosts, fast);
    const auto are_fast = [&](int a, int b) {
      const auto& [count, all] = fast[std::minmax(a, b)];
      return all > 0 && count >= share_of_fast_pairs * all;
    };
    std::vector<std::vector<int>> groups;
    for (const auto& [slow_host_index, slow] : hosts) {
      // clang 14 does not capture a structured binding in a lambda.
      const int host = slow_host_index;
      auto found = std::find_if(groups.begin(), groups.end(), [&](const std::vector<int>& group) {
        const auto near = std::count_if(group.begin(), group.end(),
                                        [&](int member) { return are_fast(member, host); });
        return static_cast<double>(near) >= share_of_fast_pairs * static_cast<double>(group.size());
      });
      if (found == groups.end())
        groups.push_back({host});
      else
        found->push_back(host);
    }
    for (const std::vector<int>& group : groups)
      if (group.size() > 1)
        add_group(group, hosts, to);
  }

  void count_fast(std::size_t pe, int host, const std::map<int, Slow>& hosts,
                  std::map<std::pair<int, int>, std::pair<int, int>>& fast) const {
    for (const std::size_t i : by_source_[pe]) {
      const Cell& cell = cells_[i];
      const int other = endpoints_[cell.target].host;
      const auto found = hosts.find(other);
      if (found == hosts.end())
        continue;
      const double slow = std::max(hosts.at(host).most(), found->second.most());
      auto& [count, all] = fast[std::minmax(host, other)];
      ++all;
      const double beyond = cell.time - of_kind_[cell.kind] - sends_.typical - receives_.typical;
      count += beyond < slow / 2 ? 1 : 0;
    }
  }

  void add_group(const std::vector<int>& group, std::map<int, Slow>& hosts,
                 std::vector<Suspect>& to) const {
    std::vector<double> excess;
    std::size_t sending = 0, receiving = 0;
    for (const int host : group) {
      excess.push_back(hosts[host].most());
      sending += hosts[host].sending > 0 ? 1 : 0;
      receiving += hosts[host].receiving > 0 ? 1 : 0;
      hosts.erase(host);
    }
    Suspect suspect;
    suspect.part = Part::group;
    suspect.hosts = group;
    suspect.direction = 2 * receiving < group.size() ? Direction::sending
                        : 2 * sending < group.size() ? Direction::receiving
                                                     : Direction::both;
    add_suspect(suspect, usual() + low_median(excess), usual(), to);
  }

  void find_pairs(std::vector<Suspect>& to) const {
    std::map<std::pair<std::size_t, std::size_t>, const Cell*> slow;
    for (const Cell& cell : cells_) {
      const double noise =
          std::max({noise_, sends_.spread[cell.source], receives_.spread[cell.target]});
      if (rest_of(cell) > std::max(least(Part::pair), criteria_.sigmas * noise))
        slow[{cell.source, cell.target}] = &cell;
    }
    for (const auto& [pair, cell] : slow) {
      const auto other = slow.find({pair.second, pair.first});
      const bool both = other != slow.end();
      if (both && pair.second < pair.first)
        continue;
      const Cell& worst = both && rest_of(*other->second) > rest_of(*cell) ? *other->second : *cell;
      Suspect suspect;
      suspect.part = Part::pair;
      suspect.source = static_cast<int>(pair.first);
      suspect.target = static_cast<int>(pair.second);
      suspect.hosts = {endpoints_[pair.first].host, endpoints_[pair.second].host};
      suspect.direction = both ? Direction::both : Direction::sending;
      suspect.explained = std::max(1.0, std::exp(expected(worst) - usual()));
      add_suspect(suspect, worst.time, expected(worst), to);
    }
  }

  const std::vector<Endpoint>& endpoints_;
  Metric metric_;
  const Criteria& criteria_;
  int hosts_ = 0, rails_ = 0;
  std::vector<Cell> cells_;
  std::map<int, std::size_t> kind_of_; ///< by both rails
  std::vector<std::pair<int, int>> rails_of_kind_;
  std::vector<std::size_t> cells_of_kind_;
  std::vector<double> of_kind_;
  std::vector<std::vector<std::size_t>> by_source_, by_target_; ///< cells by PE
  Effects sends_, receives_;
  double noise_ = 0;
};

} // namespace

Diagnosis diagnose(const std::vector<Endpoint>& endpoints, const std::vector<PairFigure>& figures,
                   Metric metric, const Criteria& criteria) {
  return Model(endpoints, figures, metric, criteria).diagnose();
}

} // namespace shmemctl::fabric
