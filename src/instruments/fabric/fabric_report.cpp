#include "src/instruments/fabric/fabric_report.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "reports/json_view.h"
#include "reports/text.h"
#include "src/base/statistics.h"
#include "src/base/text.h"
#include "src/base/units.h"
#include "src/instruments/bench/statistics.h"

namespace shmemctl::fabric {

namespace {

using nlohmann::json;

constexpr std::size_t latency_bytes = 8;
constexpr std::size_t max_named = 8;

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

/// The time of a message in microseconds; 1 GB/s is one byte per nanosecond.
double message_us(std::size_t size_bytes, double GBps) {
  return static_cast<double>(size_bytes) / GBps * 1e-3;
}

const std::string& host_of(const Result& result, int pe) {
  return result.job.hosts[at(result.job.endpoints[at(pe)].host)];
}

/// PEs whose data was corrupt.
std::set<int> corrupt_pes(const Result& result) {
  std::set<int> pes;
  for (const CorruptPair& pair : result.corrupt)
    pes.insert({pair.source, pair.target});
  return pes;
}

bool is_corrupt(const Result& result, int source, int target) {
  return std::any_of(result.corrupt.begin(), result.corrupt.end(), [&](const CorruptPair& pair) {
    return pair.source == source && pair.target == target;
  });
}

void set_verified(ResultRow& row, bool corrupt) {
  row.verified = corrupt ? Verified::failed : Verified::passed;
  row.status = corrupt ? RowStatus::fail : RowStatus::pass;
  if (corrupt)
    row.reason = "data did not arrive as it was sent";
}

std::optional<RowPath> path_of(const Result& result, int pe) {
  if (result.job.transports[at(pe)].empty())
    return std::nullopt;
  RowPath path;
  path.transports = split(result.job.transports[at(pe)], ',');
  for (std::string& name : path.transports)
    name = std::string(trim(name));
  if (!result.job.nics[at(pe)].empty())
    path.nics = split(result.job.nics[at(pe)], ',');
  for (std::string& name : path.nics)
    name = std::string(trim(name));
  return path;
}

/// The row of a NIC in one direction.
ResultRow nic_row(const Result& result, int pe, bool sends, const std::vector<double>& times_us) {
  ResultRow row;
  row.case_name = "fabric-nic";
  row.params = {{"host", host_of(result, pe)},
                {"rail", result.job.endpoints[at(pe)].rail},
                {"direction", sends ? "send" : "receive"},
                {"size_bytes", result.effort.message_bytes}};
  row.stats = bench::stats_of(times_us);
  row.unit = "us";
  row.bandwidth_GBps =
      static_cast<double>(result.effort.message_bytes) * 1e-3 / row.stats->p50.value_or(1);
  row.samples = bench::kept_samples({times_us});
  row.path = path_of(result, pe);
  return row;
}

void add_nic_rows(const Result& result, std::vector<ResultRow>& rows) {
  const std::size_t n_pes = result.job.endpoints.size();
  std::vector<std::vector<double>> sent(n_pes), received(n_pes);
  for (const PairFigure& figure : result.figures)
    if (figure.GBps > 0) {
      const double time_us =
          message_us(result.effort.message_bytes, static_cast<double>(figure.GBps));
      sent[at(figure.source)].push_back(time_us);
      received[at(figure.target)].push_back(time_us);
    }
  const std::set<int> corrupt = corrupt_pes(result);
  for (int pe = 0; pe < static_cast<int>(n_pes); ++pe)
    for (const bool sends : {true, false}) {
      const std::vector<double>& times_us = sends ? sent[at(pe)] : received[at(pe)];
      if (times_us.empty())
        continue;
      rows.push_back(nic_row(result, pe, sends, times_us));
      set_verified(rows.back(), corrupt.count(pe) != 0);
    }
}

/// The suspects that are pairs, in both directions.
std::set<std::pair<int, int>> suspect_pairs(const Result& result) {
  std::set<std::pair<int, int>> pairs;
  const auto add = [&](const Suspect& suspect) {
    if (suspect.part == Part::pair)
      pairs.insert({{suspect.source, suspect.target}, {suspect.target, suspect.source}});
  };
  for (const Verdict& verdict : result.slow)
    add(verdict.suspect);
  for (const std::vector<Suspect>* suspects : {&result.unconfirmed, &result.transient})
    for (const Suspect& suspect : *suspects)
      if (pairs.size() < max_pair_rows)
        add(suspect);
  return pairs;
}

Stats single(double value) {
  Stats stats;
  stats.n = 1;
  stats.min = stats.p50 = stats.max = stats.mean = value;
  return stats;
}

ResultRow pair_row(const Result& result, const PairFigure& figure, bool latency) {
  ResultRow row;
  row.case_name = latency ? "fabric-latency" : "fabric-pair";
  const int rail = result.job.endpoints[at(figure.source)].rail;
  const std::size_t size_bytes = latency ? latency_bytes : result.effort.message_bytes;
  row.params = {{"from_host", host_of(result, figure.source)},
                {"to_host", host_of(result, figure.target)},
                {"rail", rail},
                {"size_bytes", size_bytes}};
  if (result.cross_rail)
    row.params["to_rail"] = result.job.endpoints[at(figure.target)].rail;
  row.unit = "us";
  if (latency) {
    row.stats = single(static_cast<double>(figure.latency_us));
    row.reason = "8-byte puts are not compared";
  } else {
    const auto GBps = static_cast<double>(figure.GBps);
    row.stats = single(message_us(size_bytes, GBps));
    row.bandwidth_GBps = GBps;
    set_verified(row, is_corrupt(result, figure.source, figure.target));
  }
  row.path = path_of(result, figure.source);
  return row;
}

void add_pair_rows(const Result& result, std::vector<ResultRow>& rows) {
  const bool all = result.figures.size() <= max_pair_rows;
  const std::set<std::pair<int, int>> suspects = suspect_pairs(result);
  for (const bool latency : {false, true})
    for (const PairFigure& figure : result.figures) {
      const bool measured = latency ? figure.latency_us > 0 : figure.GBps > 0;
      if (measured && (all || suspects.count({figure.source, figure.target}) != 0))
        rows.push_back(pair_row(result, figure, latency));
    }
}

void add_pattern_rows(const Result& result, std::vector<ResultRow>& rows) {
  for (const PatternResult& pattern : result.patterns)
    for (const PatternRate& rate : pattern.rates) {
      ResultRow row;
      row.case_name = std::string("fabric-") + to_string(pattern.pattern);
      row.params = {{"host", host_of(result, rate.pe)},
                    {"rail", result.job.endpoints[at(rate.pe)].rail},
                    {"size_bytes", result.effort.message_bytes}};
      if (pattern.pattern == Pattern::incast)
        row.params["senders"] = rate.senders;
      row.unit = "us";
      row.stats = single(message_us(result.effort.message_bytes, rate.GBps));
      row.bandwidth_GBps = rate.GBps;
      row.reason = "several PEs write to the same memory";
      row.path = path_of(result, rate.pe);
      rows.push_back(std::move(row));
    }
}

std::string number_text(double value, Metric metric) {
  return view::decimal(value, 3) + (metric == Metric::bandwidth ? " GB/s" : " us");
}

std::string host_list(const Result& result, const std::vector<int>& hosts) {
  std::vector<std::string> names;
  for (const int host : hosts)
    names.push_back(result.job.hosts[at(host)]);
  if (names.size() > max_named) {
    const std::size_t more = names.size() - max_named;
    names.resize(max_named);
    names.push_back(fmt::format("{} more", more));
  }
  return join(names, ", ");
}

int pe_of(const Result& result, int host, int rail) {
  for (std::size_t pe = 0; pe < result.job.endpoints.size(); ++pe)
    if (result.job.endpoints[pe].host == host && result.job.endpoints[pe].rail == rail)
      return static_cast<int>(pe);
  return -1;
}

/// "b", "b mlx5_3 (rail 3, PE 11)", "rail 3".
std::string subject_of(const Suspect& suspect, const Result& result) {
  const auto nic_of = [&](int pe) {
    const std::string& nic = result.job.nics[at(pe)];
    return nic.empty() ? std::string() : " " + nic;
  };
  switch (suspect.part) {
  case Part::rail:
    return fmt::format("rail {}", suspect.rail);
  case Part::group:
    return host_list(result, suspect.hosts);
  case Part::host:
    return result.job.hosts[at(suspect.hosts.front())];
  case Part::nic: {
    const int pe = pe_of(result, suspect.hosts.front(), suspect.rail);
    return fmt::format("{}{} (rail {}, PE {})", result.job.hosts[at(suspect.hosts.front())],
                       nic_of(pe), suspect.rail, pe);
  }
  case Part::pair:
    return fmt::format("{}{} {} {}{} (PE {}, PE {})", host_of(result, suspect.source),
                       nic_of(suspect.source), suspect.direction == Direction::both ? "<->" : "->",
                       host_of(result, suspect.target), nic_of(suspect.target), suspect.source,
                       suspect.target);
  }
  return "";
}

std::string suspect_text(const Suspect& suspect, const Result& result) {
  const std::string subject = subject_of(suspect, result);
  const char* const verb = suspect.metric == Metric::latency           ? "takes"
                           : suspect.direction == Direction::sending   ? "sends at"
                           : suspect.direction == Direction::receiving ? "receives at"
                                                                       : "sends and receives at";
  const std::string values = fmt::format("{}, {:.1f} times slower than",
                                         number_text(suspect.value, suspect.metric), suspect.times);
  const std::string peers = number_text(suspect.peers, suspect.metric);
  switch (suspect.part) {
  case Part::rail:
    return fmt::format("{}: a pair of hosts has {} the median of the other rails, {}", subject,
                       values, peers);
  case Part::group:
    return fmt::format("{}: fast among themselves, but to all other hosts they have {} the median "
                       "of the other pairs, {}",
                       subject, values, peers);
  case Part::pair:
    return fmt::format("{}: {} what these two have with others, {}", subject, values, peers);
  case Part::host:
  case Part::nic:
    break;
  }
  return fmt::format("{} {} {} the median of its peers, {}", subject, verb, values, peers);
}

std::string again_of(const Suspect& suspect) {
  if (suspect.values_again.empty())
    return "";
  return fmt::format("; measured {} more times with few others at work: {} where others have {}",
                     suspect.values_again.size(),
                     number_text(median(suspect.values_again), suspect.metric),
                     number_text(median(suspect.peers_again), suspect.metric));
}

const char* id_of(const Suspect& suspect) {
  const bool one_way = suspect.direction != Direction::both;
  switch (suspect.part) {
  case Part::rail:
    return "fabric-slow-rail";
  case Part::group:
    return "fabric-slow-group";
  case Part::host:
    return one_way ? "fabric-one-way" : "fabric-slow-host";
  case Part::nic:
    return one_way ? "fabric-one-way" : "fabric-slow-nic";
  case Part::pair:
    return "fabric-slow-pair";
  }
  return "fabric-slow-pair";
}

std::string fix_of(const Suspect& suspect, const Result& result) {
  switch (suspect.part) {
  case Part::rail:
    return fmt::format("look at the leaf switches of rail {}, and at what else they carry",
                       suspect.rail);
  case Part::group:
    return "look at what these hosts share: the uplinks of their leaf switch, or its routes";
  case Part::host:
  case Part::nic:
    return fmt::format(
        "on {}, look at the rate of the NIC's port and its PCIe link (shmemctl "
        "doctor, shmemctl topo), its cable and switch port, and what else runs there",
        result.job.hosts[at(suspect.hosts.front())]);
  case Part::pair:
    return fmt::format("look at the path between {} and {}: links between their switches, routes "
                       "(ibtracert, traceroute); both are faster with other hosts",
                       host_of(result, suspect.source), host_of(result, suspect.target));
  }
  return "";
}

/// Mean share of retransmitted segments: over the part's pairs, and over all other pairs.
struct Resent {
  double own = 0, others = 0;
};
std::optional<Resent> resent_of(const Suspect& suspect, const Result& result) {
  double own = 0, others = 0;
  int n_own = 0, n_others = 0;
  const auto is_own = [&](const PairFigure& figure) {
    if (suspect.part == Part::pair)
      return std::minmax(figure.source, figure.target) ==
             std::minmax(suspect.source, suspect.target);
    const Endpoint &source = result.job.endpoints[at(figure.source)],
                   &target = result.job.endpoints[at(figure.target)];
    if (suspect.part == Part::rail)
      return source.rail == suspect.rail;
    return std::any_of(suspect.hosts.begin(), suspect.hosts.end(), [&](int host) {
      return (source.host == host && (suspect.rail < 0 || source.rail == suspect.rail)) ||
             (target.host == host && (suspect.rail < 0 || target.rail == suspect.rail));
    });
  };
  for (const PairFigure& figure : result.figures) {
    if (!(figure.resent >= 0))
      continue;
    const bool mine = is_own(figure);
    (mine ? own : others) += static_cast<double>(figure.resent);
    ++(mine ? n_own : n_others);
  }
  if (n_own == 0 || n_others == 0)
    return std::nullopt;
  return Resent{own / n_own, others / n_others};
}

/// Violated counter rules (hotspots.signs) with that finding, of the suspect's hosts or its NIC.
std::vector<const json*> signs_of(const Suspect& suspect, const Result& result,
                                  const json& hotspots, const char* finding) {
  std::vector<const json*> signs;
  for (const json& sign : view::list(hotspots, "signs")) {
    if (view::text(sign, "finding") != finding)
      continue;
    const std::string host = view::text(sign, "host"), device = view::text(sign, "device");
    for (const int number : suspect.hosts) {
      const std::string& name = result.job.hosts[at(number)];
      const int pe = suspect.part == Part::nic ? pe_of(result, number, suspect.rail) : -1;
      const bool other_nic = pe >= 0 && !result.job.nics[at(pe)].empty() &&
                             result.job.nics[at(pe)].find(device) == std::string::npos;
      if (host == name && !other_nic)
        signs.push_back(&sign);
    }
  }
  return signs;
}

Finding finding_of(const Verdict& verdict, const Result& result, const json& hotspots) {
  const Suspect& suspect = verdict.suspect;
  const Cause cause = cause_of(suspect, result, hotspots);
  const std::string often =
      result.runs > 1 ? fmt::format("; in {} of {} runs", verdict.runs, result.runs) : "";
  return {id_of(suspect),
          suspect.metric == Metric::bandwidth && !result.shares_cores ? Severity::error
                                                                      : Severity::warning,
          subject_of(suspect, result),
          suspect_text(suspect, result) + again_of(suspect) + often +
              (cause.text.empty() ? "" : "; " + cause.text),
          cause.fix.empty() ? fix_of(suspect, result) : cause.fix};
}

Finding finding_of(const LossVerdict& verdict, const Result& result) {
  const LossyHost& lossy = verdict.host;
  const std::string& host = result.job.hosts[at(lossy.host)];
  const char* const which = lossy.direction == Direction::both      ? "sends or receives"
                            : lossy.direction == Direction::sending ? "sends"
                                                                    : "receives";
  const std::string often =
      result.runs > 1 ? fmt::format("; in {} of {} runs", verdict.runs, result.runs) : "";
  return {"fabric-lossy", result.shares_cores ? Severity::warning : Severity::error, host,
          fmt::format("packets are lost: {:.2g}% of the TCP segments that {} {} are sent again, "
                      "{:.2g}% of those among others; measured again: {:.2g}% and {:.2g}%",
                      lossy.share * 100, host, which, lossy.peers * 100, lossy.share_again * 100,
                      lossy.peers_again * 100) +
              often,
          fmt::format("on {} and at its switch port, look for drops and errors (ethtool -S, "
                      "shmemctl hotspots): cable, optics, MTU, full queues",
                      host)};
}

/// Whether this host, its group or a NIC of it has a finding about its bandwidth, which suffices.
bool is_said(const LossVerdict& verdict, const std::vector<Verdict>& slow) {
  return std::any_of(slow.begin(), slow.end(), [&](const Verdict& other) {
    const std::vector<int>& hosts = other.suspect.hosts;
    return other.suspect.metric == Metric::bandwidth && other.suspect.part != Part::pair &&
           std::find(hosts.begin(), hosts.end(), verdict.host.host) != hosts.end();
  });
}

/// Whether another finding covers this one: a part with a finding about its bandwidth gets none
/// about its latency.
bool is_said(const Verdict& verdict, const std::vector<Verdict>& all) {
  return verdict.suspect.metric == Metric::latency &&
         std::any_of(all.begin(), all.end(), [&](const Verdict& other) {
           return other.suspect.metric == Metric::bandwidth &&
                  other.suspect.part == verdict.suspect.part &&
                  other.suspect.hosts == verdict.suspect.hosts &&
                  other.suspect.rail == verdict.suspect.rail;
         });
}

} // namespace

std::vector<ResultRow> rows_of(const Result& result) {
  std::vector<ResultRow> rows;
  add_nic_rows(result, rows);
  add_pair_rows(result, rows);
  add_pattern_rows(result, rows);
  return rows;
}

Cause cause_of(const Suspect& suspect, const Result& result, const json& hotspots) {
  if (!result.job.own_counters)
    return {};
  const auto named = [](const std::vector<const json*>& signs) {
    std::vector<std::string> texts;
    for (const json* sign : signs)
      if (texts.size() < max_named)
        texts.push_back(fmt::format(
            "{} of {} rose by {} on {}", view::text(*sign, "counter"), view::text(*sign, "device"),
            view::scalar(view::member(*sign, "delta")).value_or("?"), view::text(*sign, "host")));
    return join(texts, ", ");
  };
  for (const char* id : {"link-flapping", "nic-lossy"})
    if (const auto signs = signs_of(suspect, result, hotspots, id); !signs.empty())
      return {"packets are lost: " + named(signs),
              "replace or reseat the cable, and clean the optics, of the port whose counters rose"};
  if (const std::optional<Resent> resent = resent_of(suspect, result);
      resent && resent->own > lossy_share && resent->own > lossy_times * resent->others)
    return {fmt::format("packets are lost: {:.2g}% of TCP segments were sent again, {:.2g}% of "
                        "those of others",
                        resent->own * 100, resent->others * 100),
            "look for drops on that path (ethtool -S, shmemctl hotspots): cable, optics, MTU, "
            "full queues"};
  if (const auto signs = signs_of(suspect, result, hotspots, "nic-congested"); !signs.empty())
    return {"the network is congested there, the NIC itself may be sound: " + named(signs),
            "look at what else uses these switch ports, and at the settings of ECN and PFC on both "
            "ends"};
  return {};
}

Findings findings_of(const Result& result, const json& hotspots) {
  Findings findings;
  for (const CorruptPair& pair : result.corrupt)
    if (findings.size() < max_named)
      findings.push_back(
          {"fabric-corrupt", Severity::error,
           fmt::format("{} -> {} (PE {} -> PE {})", host_of(result, pair.source),
                       host_of(result, pair.target), pair.source, pair.target),
           fmt::format("what PE {} put did not arrive unchanged at PE {}; {} in all", pair.source,
                       pair.target, counted(result.corrupt.size(), "pair")),
           "verify these pairs byte by byte: shmemctl bringup"});
  for (const Verdict& verdict : result.slow)
    if (!is_said(verdict, result.slow))
      findings.push_back(finding_of(verdict, result, hotspots));
  for (const LossVerdict& verdict : result.lossy)
    if (!is_said(verdict, result.slow))
      findings.push_back(finding_of(verdict, result));
  for (const SlowUnderLoad& slow : result.slow_under_load)
    findings.push_back(
        {"fabric-slow-under-load", Severity::warning,
         fmt::format("{} (PE {})", host_of(result, slow.pe), slow.pe),
         fmt::format("{}: PE {} on {} {} {} GB/s, its peers {} (median), in both measurements",
                     to_string(slow.pattern), slow.pe, host_of(result, slow.pe),
                     slow.pattern == Pattern::incast ? "receives" : "sends",
                     view::decimal(slow.GBps, 3), view::decimal(slow.peers_GBps, 3)),
         "look at the switch port of that NIC: its buffers, ECN and PFC; shmemctl hotspots shows "
         "pauses and drops"});
  const auto add_count = [&](const char* id, Severity severity,
                             const std::vector<Suspect>& suspects, const char* words,
                             const char* fix) {
    if (suspects.empty())
      return;
    const Suspect& worst =
        *std::max_element(suspects.begin(), suspects.end(),
                          [](const Suspect& a, const Suspect& b) { return a.times < b.times; });
    findings.push_back(
        {id, severity, subject_of(worst, result),
         fmt::format("{} slow once, and {}; the slowest: {}",
                     suspects.size() == 1 ? "1 measurement was"
                                          : fmt::format("{} measurements were", suspects.size()),
                     words, suspect_text(worst, result)),
         fix});
  };
  add_count("fabric-unconfirmed", Severity::warning, result.unconfirmed, "not measured again",
            "run fabric again with more hosts that are not slow, or only with the slow hosts");
  add_count("fabric-transient", Severity::info, result.transient, "not when measured again",
            "other traffic or another process was in the way; --soak DURATION shows how often");
  return findings;
}

std::string summary_of(const Result& result, const TextStyle& style) {
  std::vector<double> rates, latencies;
  for (const PairFigure& figure : result.figures) {
    if (figure.GBps > 0)
      rates.push_back(static_cast<double>(figure.GBps));
    if (figure.latency_us > 0)
      latencies.push_back(static_cast<double>(figure.latency_us));
  }
  std::string text = fmt::format(
      "{}, {}{}: {} in {} of disjoint pairs, {} of {} each, {:.1f} s\n",
      counted(result.job.hosts.size(), "host"), counted(at(result.job.rails()), "rail"),
      result.cross_rail ? " (across)" : "", counted(result.figures.size(), "ordered pair"),
      counted(at(result.rounds), "round"),
      result.effort.passes == 1 ? "1 pass" : fmt::format("{} passes", result.effort.passes),
      format_size_bytes(result.effort.message_bytes), result.taken_s);
  if (!rates.empty())
    text += fmt::format("a pair: {} GB/s (median), noise {:.1f}%", view::decimal(median(rates), 3),
                        result.noise * 100);
  if (!latencies.empty())
    text += fmt::format("; {} us until 8 bytes are complete", view::decimal(median(latencies), 3));
  text += '\n';
  if (result.figures.size() > max_pair_rows)
    text += fmt::format("more than {} pairs: the report has rows of NICs, and of pairs that were "
                        "suspects\n",
                        max_pair_rows);
  std::vector<ResultRow> nics;
  add_nic_rows(result, nics);
  constexpr std::size_t max_shown = 32;
  if (nics.size() > max_shown && !style.verbose) {
    std::stable_sort(nics.begin(), nics.end(), [](const ResultRow& a, const ResultRow& b) {
      return a.bandwidth_GBps.value_or(0) < b.bandwidth_GBps.value_or(0);
    });
    nics.resize(max_shown);
    text += fmt::format("the slowest {} NICs and directions:\n", max_shown);
  }
  Table table({{"host"},
               {"rail", Align::right},
               {"NIC"},
               {"direction"},
               {"p50 [GB/s]", Align::right},
               {"slowest pair", Align::right},
               {"pairs", Align::right}});
  for (const ResultRow& row : nics)
    table.add({safe_text(row.params["host"].get<std::string>()), row.params["rail"].dump(),
               row.path ? safe_text(join(row.path->nics, ", ")) : "",
               row.params["direction"].get<std::string>(),
               view::decimal(row.bandwidth_GBps.value_or(0), 3),
               view::decimal(static_cast<double>(result.effort.message_bytes) * 1e-3 /
                                 row.stats->max.value_or(1),
                             3),
               std::to_string(row.stats->n)});
  return text + (table.empty() ? "" : table.text(style));
}

} // namespace shmemctl::fabric
