#include "src/instruments/bench/ladder.h"

#include <fmt/format.h>

#include "src/base/text.h"
#include "src/instruments/bench/rows.h"

namespace shmemctl::bench {

namespace {

constexpr double bits_per_byte = 8;
constexpr const char *memcpy_case = "memcpy", *verbs_case = "verbs-write";

/// The limit of the rows' link; empty if the rows are compared with a reference (memcpy, or a call
/// without the proxy).
std::optional<Rung> link_of(const std::vector<ResultRow>& rows) {
  for (const ResultRow& row : rows)
    if (row.link_fraction && *row.link_fraction > 0 && row.limited_by && row.bandwidth_GBps &&
        *row.limited_by != reference_name && *row.limited_by != direct_name)
      return Rung{"limit: " + *row.limited_by, *row.bandwidth_GBps / *row.link_fraction};
  return std::nullopt;
}

/// The rung that loses most compared with the one before it; there are at least two rungs.
std::size_t worst_of(const std::vector<Rung>& rungs) {
  std::size_t worst = 1;
  for (std::size_t i = 1; i < rungs.size(); ++i)
    if (rungs[i].GBps / rungs[i - 1].GBps < rungs[worst].GBps / rungs[worst - 1].GBps)
      worst = i;
  return worst;
}

} // namespace

std::vector<std::string> ladder_cases(Initiator initiator) {
  return initiator == Initiator::gpu
             ? std::vector<std::string>{"st", "put"}
             : std::vector<std::string>{memcpy_case, verbs_case, "transport-put", "put"};
}

std::vector<Rung> rungs_of(const std::vector<ResultRow>& rows) {
  std::vector<Rung> rungs;
  if (const auto link = link_of(rows))
    rungs.push_back(*link);
  for (const ResultRow& row : rows) {
    const std::optional<double> rate = row.wire_GBps ? row.wire_GBps : row.bandwidth_GBps;
    if (rate && *rate > 0)
      rungs.push_back({row.case_name, *rate});
  }
  return rungs;
}

std::string ladder_note(const std::vector<ResultRow>& rows, const std::vector<Rung>& rungs) {
  std::string reason;
  for (const ResultRow& row : rows) {
    if (row.case_name == memcpy_case && row.bandwidth_GBps)
      return "";
    if (row.case_name == verbs_case && row.status == RowStatus::skip)
      reason = row.reason;
  }
  return reason.empty() || rungs.size() < 2
             ? ""
             : fmt::format("RDMA writes by verbs are no step: {}; the first step is {}", reason,
                           rungs.front().name);
}

std::string ladder_text(const std::vector<Rung>& rungs, const TextStyle& style) {
  if (rungs.size() < 2)
    return "";
  Table table({{"step"},
               {style.gigabits ? "Gb/s" : "GB/s", Align::right},
               {"of the step before", Align::right},
               {"of the first", Align::right}});
  for (std::size_t i = 0; i < rungs.size(); ++i) {
    const double rate = rungs[i].GBps * (style.gigabits ? bits_per_byte : 1);
    const auto share = [&](std::size_t of) {
      return i == 0 ? std::string("-")
                    : fmt::format("{:.1f}%", rungs[i].GBps / rungs[of].GBps * 100);
    };
    table.add({safe_text(rungs[i].name), fmt::format("{:.4g}", rate), share(i == 0 ? 0 : i - 1),
               share(0)});
  }
  return table.text(style);
}

std::optional<Finding> ladder_finding(const std::vector<Rung>& rungs) {
  if (rungs.size() < 2)
    return std::nullopt;
  std::vector<std::string> words;
  for (const Rung& rung : rungs)
    words.push_back(fmt::format("{} {:.4g} GB/s", rung.name, rung.GBps));
  const std::size_t worst = worst_of(rungs);
  return Finding{"bench-ladder", Severity::info, "bench --ladder",
                 fmt::format("{}; most is lost from {} to {}: {:.1f}% is left", join(words, ", "),
                             rungs[worst - 1].name, rungs[worst].name,
                             rungs[worst].GBps / rungs[worst - 1].GBps * 100),
                 "look at that step alone: shmemctl bench --list says what each case measures"};
}

} // namespace shmemctl::bench
