#include "src/instruments/bench/moe/summary.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "reports/json_view.h"
#include "reports/table.h"
#include "src/base/text.h"

namespace shmemctl::moe {

namespace {

/// The share of its limit from which a link counts as the bottleneck, and the share of a call from
/// which a phase does.
constexpr double much_of_link = 0.7, most_of_call = 0.5;
/// The routing counts as the bottleneck if the busiest rank receives this many times the mean.
constexpr double uneven_routing = 1.5;

const ResultRow* row_of(const std::vector<ResultRow>& rows, const std::string& name,
                        const std::string& phase) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const ResultRow& row) {
    return row.case_name == name && row.params.value("phase", "") == phase;
  });
  return found == rows.end() ? nullptr : &*found;
}

/// "dispatch 0.084 GB/s in 39907 us (86.1% of NVLink of GPU 0)"
std::string reached_by(const std::string& what, const ResultRow* row, bool gigabits) {
  if (!row || !row->stats || !row->stats->p50)
    return "";
  constexpr double bits_per_byte = 8;
  std::string text = what + " ";
  if (row->bandwidth_GBps)
    text += fmt::format("{} {} in ",
                        view::decimal(*row->bandwidth_GBps * (gigabits ? bits_per_byte : 1)),
                        gigabits ? "Gb/s" : "GB/s");
  text += view::decimal(*row->stats->p50) + " us";
  if (row->link_fraction && row->limited_by)
    text += fmt::format(" ({:.1f}% of {})", *row->link_fraction * 100, *row->limited_by);
  return text;
}

struct Bound {
  std::string by, fix;
};

std::optional<Bound> by_slow_rank(const Point& point) {
  for (const OperationResult& result : point.result.operations)
    for (const WaitVerdict& verdict : verdicts_of(point, result))
      return Bound{fmt::format("{}: {}", to_string(result.operation), describe(verdict)),
                   verdict.culprit == Culprit::rank
                       ? "see what else runs on the CPUs and the GPU of that PE, and their clocks"
                       : "measure that path alone, with the same launcher: shmemctl bench put "
                         "--traffic matrix"};
  return std::nullopt;
}

std::optional<Bound> by_link(const Point& point, const std::vector<ResultRow>& rows) {
  for (const char* name : {"moe-dispatch", "moe-combine"})
    if (const ResultRow* row = row_of(rows, name, "total");
        row && row->link_fraction.value_or(0) >= much_of_link && row->limited_by)
      return Bound{fmt::format("{}, of which {} has {:.0f}%", *row->limited_by, name,
                               *row->link_fraction * 100),
                   point.setup.format == Format::bf16
                       ? "fewer bytes: --dtype fp8, or fewer experts per token that are far away"
                       : "fewer experts per token that are far away: --routing grouped"};
  return std::nullopt;
}

std::optional<Bound> by_routing(const Point& point) {
  const auto counts = row_counts(point.setup.shape, *point.setup.routing);
  std::vector<double> received;
  for (std::int32_t rank = 0; rank < point.setup.shape.n_ranks; ++rank)
    received.push_back(rows_of(counts.data(), point.setup.shape.n_ranks, rank));
  const double sum = std::accumulate(received.begin(), received.end(), 0.0);
  const auto most = std::max_element(received.begin(), received.end());
  if (received.size() < 2 || !(sum > 0))
    return std::nullopt;
  const double times = *most * static_cast<double>(received.size()) / sum;
  if (times < uneven_routing)
    return std::nullopt;
  return Bound{fmt::format("the routing: PE {} receives {:.1f} times the mean",
                           most - received.begin(), times),
               "spread the popular experts over PEs, or replicate them; shmemctl sim shows what "
               "that changes"};
}

/// The exchange of counts, if it takes most of a high-throughput dispatch.
std::optional<Bound> by_counts(const Point& point, const std::vector<ResultRow>& rows) {
  const ResultRow *total = row_of(rows, "moe-dispatch", "total"),
                  *counts = row_of(rows, "moe-dispatch", "counts");
  if (!total || !counts || !total->stats || !counts->stats || point.setup.mode == Mode::low_latency)
    return std::nullopt;
  const double share = counts->stats->p50.value_or(0) / total->stats->p50.value_or(1);
  if (share < most_of_call)
    return std::nullopt;
  return Bound{
      fmt::format("the exchange of counts before the rows: {:.0f}% of dispatch", share * 100),
      "more --num-tokens in a call, or --mode ll, which sends rows immediately"};
}

Bound by_transfer(const Point& point, const std::vector<ResultRow>& rows) {
  const ResultRow* total = row_of(rows, "moe-dispatch", "total");
  const std::string transports = join(point.links.transports, ", ");
  const std::string carried = transports.empty() ? "" : " by " + transports;
  std::string by = "moving the rows" + carried;
  if (total && total->link_fraction && total->limited_by)
    by += fmt::format(", at {:.0f}% of {}", *total->link_fraction * 100, *total->limited_by);
  else
    by += ", of which no limit is known";
  if (point.backend == "host")
    return {by + "; one core of each PE copies",
            "--backend gpu where there are GPUs; else more PEs, each on a core of its own"};
  if (point.was_tuned)
    return {by, "the settings that --tune found, which these rows were measured with"};
  return {by, "--tune, which tries launch settings and prints the best"};
}

/// The options that select the best settings in another run.
std::string tuned_options(const Point& point) {
  std::string options;
  for (const Tuned& tuned : point.tuned)
    if (!tuned.attempts.empty())
      options += fmt::format(" --{}-settings {}", to_string(tuned.direction),
                             to_text(tuned.choice().settings));
  return options;
}

} // namespace

Summary summary_of(const Point& point, const std::vector<ResultRow>& rows, bool gigabits) {
  Summary summary;
  std::vector<std::string> reached;
  for (const auto& [what, name, phase] : {std::tuple("dispatch", "moe-dispatch", "total"),
                                          std::tuple("combine", "moe-combine", "total"),
                                          std::tuple("both in turn", "moe-round-trip", "period")})
    if (std::string text = reached_by(what, row_of(rows, name, phase), gigabits); !text.empty())
      reached.push_back(std::move(text));
  summary.reached = join(reached, "; ");
  std::optional<Bound> bound;
  if (!point.result.wrong.empty())
    bound = Bound{"wrong data: " + point.result.wrong.front(), "shmemctl bringup"};
  if (!bound && point.oversubscribed && !point.straggler)
    bound = Bound{"the scheduler: " + point.oversubscribed->message, point.oversubscribed->fix};
  if (!bound && point.disturbed && !point.straggler)
    bound = Bound{"the CPUs: " + point.disturbed->message, point.disturbed->fix};
  if (!bound)
    bound = by_slow_rank(point);
  if (!bound)
    bound = by_link(point, rows);
  if (!bound)
    bound = by_routing(point);
  if (!bound)
    bound = by_counts(point, rows);
  if (!bound)
    bound = by_transfer(point, rows);
  summary.bounded_by = bound->by;
  summary.to_try = bound->fix;
  if (const std::string options = tuned_options(point); !options.empty())
    summary.to_try += "; the best settings again:" + options;
  return summary;
}

std::string to_text(const Summary& summary, const TextStyle& style) {
  const auto line = [&](const char* name, const std::string& text) {
    constexpr int indent = 12;
    return wrapped(fmt::format("{:<11} {}", name, safe_text(text)), style.width, indent) + "\n";
  };
  return line("reached:", summary.reached) + line("bounded by:", summary.bounded_by) +
         line("to try:", summary.to_try);
}

} // namespace shmemctl::moe
