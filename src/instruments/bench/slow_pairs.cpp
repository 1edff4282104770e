#include "src/instruments/bench/slow_pairs.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <utility>

#include "reports/json_view.h"
#include "src/base/statistics.h"
#include "src/base/text.h"
#include "src/base/units.h"

namespace shmemctl::bench {

namespace {

/// With fewer pairs their median says too little.
constexpr std::size_t fewest_pairs = 6;
constexpr double times_slower = 1.25;
constexpr std::size_t max_named = 4;

struct Pair {
  int first = 0, second = 0;
  const ResultRow* row = nullptr;
  double usual_us = 0;

  double time_us() const { return row->stats->p50.value_or(0); }
};

std::optional<int> pe_of(const ResultRow& row, const char* name) {
  const auto found = row.params.find(name);
  return found != row.params.end() && found->is_number_integer()
             ? std::optional<int>(found->get<int>())
             : std::nullopt;
}

/// Pairs of one kind: the same size, over the same transports.
using Kind = std::pair<std::uint64_t, std::string>;

std::map<Kind, std::vector<Pair>> pairs_of(const std::vector<ResultRow>& rows) {
  std::map<Kind, std::vector<Pair>> kinds;
  for (const ResultRow& row : rows) {
    const std::optional<int> first = pe_of(row, "first_pe"), second = pe_of(row, "second_pe");
    if (!first || !second || !row.stats || !row.stats->p50 || !row.stats->min)
      continue;
    const std::uint64_t size = row.params.value("size_bytes", std::uint64_t{0});
    kinds[{size, row.path ? join(row.path->transports, ", ") : ""}].push_back(
        {*first, *second, &row, 0});
  }
  return kinds;
}

std::vector<Pair> slow_ones(std::vector<Pair> pairs) {
  if (pairs.size() < fewest_pairs)
    return {};
  std::vector<double> times;
  for (const Pair& pair : pairs)
    times.push_back(pair.time_us());
  const double usual_us = median(times);
  std::vector<Pair> slow;
  for (Pair& pair : pairs)
    if (pair.time_us() > times_slower * usual_us && *pair.row->stats->min > usual_us) {
      pair.usual_us = usual_us;
      slow.push_back(pair);
    }
  std::sort(slow.begin(), slow.end(),
            [](const Pair& a, const Pair& b) { return a.time_us() > b.time_us(); });
  return slow;
}

std::string text_of(const Pair& pair) {
  const std::string pes = fmt::format("PE {} -> PE {}", pair.first, pair.second);
  const double share = pair.usual_us / pair.time_us();
  if (pair.row->bandwidth_GBps)
    return fmt::format("{}: {} GB/s, {:.0f}% of the median", pes,
                       view::decimal(*pair.row->bandwidth_GBps), share * 100);
  return fmt::format("{}: {} us, {:.1f} times the median", pes, view::decimal(pair.time_us()),
                     1 / share);
}

/// The PE that is part of all these pairs; nothing if there is none or only one pair.
std::optional<int> common_pe(const std::vector<Pair>& pairs) {
  if (pairs.size() < 2)
    return std::nullopt;
  for (const int pe : {pairs.front().first, pairs.front().second})
    if (std::all_of(pairs.begin(), pairs.end(),
                    [pe](const Pair& pair) { return pair.first == pe || pair.second == pe; }))
      return pe;
  return std::nullopt;
}

} // namespace

Findings slow_pair_findings(const std::string& subject, const std::vector<ResultRow>& rows) {
  Findings findings;
  for (const auto& [kind, pairs] : pairs_of(rows)) {
    const std::vector<Pair> slow = slow_ones(pairs);
    if (slow.empty())
      continue;
    std::vector<std::string> words;
    for (std::size_t i = 0; i < std::min(slow.size(), max_named); ++i)
      words.push_back(text_of(slow[i]));
    if (slow.size() > max_named)
      words.push_back(fmt::format("and {} more", slow.size() - max_named));
    const std::optional<int> culprit = common_pe(slow);
    const std::string over = kind.second.empty() ? "" : " by " + kind.second;
    findings.push_back(
        {"bench-slow-pair", Severity::warning,
         subject + (kind.first > 0 ? " " + format_size_bytes(kind.first) : ""),
         fmt::format("{} of {} pairs{} are slow{}: {}", slow.size(), pairs.size(), over,
                     culprit ? fmt::format(", all of them from or to PE {}", *culprit) : "",
                     join(words, "; ")),
         culprit ? fmt::format("look at the NIC, the cable, the PCIe link and the cores of PE {}: "
                               "shmemctl doctor on its host",
                               *culprit)
                 : fmt::format("measure one alone (--pair {},{} -D 5), then look at what its NICs "
                               "share: shmemctl hotspots --during CMD",
                               slow.front().first, slow.front().second)});
  }
  return findings;
}

} // namespace shmemctl::bench
