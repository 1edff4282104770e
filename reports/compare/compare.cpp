#include "reports/compare/compare.h"

#include <algorithm>
#include <cmath>
#include <thread>

#include "reports/compare/measure.h"
#include "src/base/counted.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

/// How a row stands on one side, over its runs: it failed if any did, was skipped if all were.
struct Standing {
  bool failed = false, skipped = true;
  std::string reason;
};

Standing standing_of(const SideRow& row) {
  Standing standing;
  for (const RunOfRow& run : row.runs)
    for (const ResultRow* part : run.rows) {
      const bool failed = part->status == RowStatus::fail || part->verified == Verified::failed;
      standing.skipped = standing.skipped && part->status == RowStatus::skip;
      if ((failed && !standing.failed) || (standing.reason.empty() && !standing.failed))
        standing.reason = part->reason;
      standing.failed = standing.failed || failed;
    }
  return standing;
}

std::string because(const std::string& what, const std::string& reason) {
  return reason.empty() ? what : what + ": " + reason;
}

SideValue side_value(const SideRow& row, const Measured& numbers) {
  return {numbers.value, numbers.samples, row.runs.size()};
}

/// Verdicts that no number is needed for; false if the numbers decide.
bool judge_standing(const Standing& base, const Standing& other, ComparedRow& row) {
  const auto decide = [&row](RowVerdict verdict, std::string reason) {
    row.verdict = verdict;
    row.reason = std::move(reason);
    return true;
  };
  if (base.failed && other.failed)
    return decide(RowVerdict::unclear, because("failed on both sides", other.reason));
  if (other.failed)
    return decide(RowVerdict::worse, because("failed in NEW", other.reason));
  if (base.skipped && other.skipped)
    return decide(RowVerdict::same, because("skipped on both sides", other.reason));
  if (other.skipped)
    return decide(RowVerdict::missing, because("skipped in NEW", other.reason));
  if (base.failed)
    return decide(RowVerdict::better, because("failed in BASE", base.reason));
  if (base.skipped)
    return decide(RowVerdict::added, because("skipped in BASE", base.reason));
  return false;
}

/// The change of a row that both sides measured, as far as one row by itself tells.
void measure(const Measured& base, const Measured& other, ComparedRow& row) {
  const auto unclear = [&row](std::string reason) {
    row.verdict = RowVerdict::unclear;
    row.reason = std::move(reason);
  };
  row.unit = other.unit;
  if (!base.value && !other.value) {
    row.verdict = RowVerdict::same;
    row.reason = "no number is measured, and both sides passed";
    return;
  }
  if (!base.value || !other.value) {
    row.verdict = base.value ? RowVerdict::missing : RowVerdict::added;
    row.reason = std::string("no number in ") + (base.value ? "NEW" : "BASE");
    return;
  }
  if (base.unit != other.unit)
    return unclear("unit " + base.unit + " in BASE, " + other.unit + " in NEW");
  if (!base.positive || !other.positive)
    return unclear("a value is not above 0, so there is no ratio");
  row.change = *other.value / *base.value - 1;
  const Change change = change_between(base, other);
  if (!change.shift)
    return unclear("too few measurements: 5 samples or 3 runs would tell");
  // The tests look at all measurements, and estimate a shift of their own: with two groups of
  // samples it can be far from what the medians did. The change that is told stays that of the
  // values that stand beside it, and the interval reaches to it.
  row.change_low = std::min(*row.change, std::expm1(change.shift->low));
  row.change_high = std::max(*row.change, std::expm1(change.shift->high));
  row.one_direction = change.shift->estimate * *row.change >= 0;
  row.p = change.shift->p;
  row.test = change.tests;
}

ComparedRow compare_row(const SideRow& base, const SideRow& other) {
  ComparedRow row;
  row.case_name = other.first().case_name;
  row.params = other.first().params;
  row.hosts = other.hosts;
  const Measured before = measured(base), after = measured(other);
  row.unit = after.unit;
  row.base = side_value(base, before);
  row.other = side_value(other, after);
  if (!judge_standing(standing_of(base), standing_of(other), row))
    measure(before, after, row);
  return row;
}

/// A row that only one side has.
ComparedRow lone_row(const SideRow& side, RowVerdict verdict) {
  ComparedRow row;
  row.case_name = side.first().case_name;
  row.params = side.first().params;
  row.hosts = side.hosts;
  const Measured numbers = measured(side);
  row.unit = numbers.unit;
  row.verdict = verdict;
  row.reason = std::string("not in ") + (verdict == RowVerdict::missing ? "NEW" : "BASE");
  if (!side.transports.empty())
    row.reason += " by " + side.transports;
  (verdict == RowVerdict::missing ? row.base : row.other) = side_value(side, numbers);
  return row;
}

/// A change beyond the smallest that counts, whichever way; as a ratio, so that swapping the sides
/// changes nothing.
bool beyond(double change, double min_effect) {
  return std::abs(std::log1p(change)) > std::log1p(min_effect);
}

/// The verdict of a row with numbers and a probability.
void judge_change(const CompareOptions& options, ComparedRow& row) {
  const bool larger_than_noise = *row.p_adjusted < options.alpha;
  if (beyond(*row.change, options.min_effect) && larger_than_noise && !row.one_direction) {
    row.reason = "the medians moved one way and most of the samples the other: measure longer, or "
                 "several runs";
    return;
  }
  if (beyond(*row.change, options.min_effect) && larger_than_noise) {
    const std::optional<bool> less = less_is_better(row.unit);
    if (!less) {
      row.reason = "it changed, but whether less of " +
                   (row.unit.empty() ? "a unit without name" : row.unit) +
                   " is better is not known";
      return;
    }
    row.verdict = (*row.change < 0) == *less ? RowVerdict::better : RowVerdict::worse;
    return;
  }
  if (!beyond(*row.change_low, options.min_effect) &&
      !beyond(*row.change_high, options.min_effect)) {
    row.verdict = RowVerdict::same;
    return;
  }
  row.verdict = RowVerdict::unclear;
  row.reason = larger_than_noise ? "the change may be larger or smaller than what counts"
                                 : "the noise is larger than what counts: measure longer, or "
                                   "several runs";
}

/// Calls `work` for 0 to count - 1, on all cores where that is worth a thread.
template <class Work>
void for_each_index(std::size_t count, const Work& work) {
  constexpr std::size_t worth_a_thread = 500;
  const std::size_t n_threads = std::min<std::size_t>(
      std::max(1U, std::thread::hardware_concurrency()), 1 + count / worth_a_thread);
  const auto part = [&](std::size_t first) {
    for (std::size_t i = first; i < count; i += n_threads)
      work(i);
  };
  std::vector<std::jthread> threads;
  for (std::size_t t = 1; t < n_threads; ++t)
    threads.emplace_back(part, t);
  part(0);
}

ComparedSide described(const std::vector<LoadedReport>& reports, const Side& side) {
  ComparedSide description;
  for (const LoadedReport& loaded : reports)
    description.files.push_back(loaded.path);
  description.runs = side.n_runs;
  description.rows = side.rows.size();
  return description;
}

Error no_rows(const ComparedSide& side, const char* which) {
  return input_error(side.files.front() + (side.files.size() > 1 ? ", ..." : ""), "",
                     std::string("no results to compare as ") + which,
                     "pass reports of check, bench, moe or bringup");
}

void adjust_and_judge(const CompareOptions& options, std::vector<ComparedRow>& rows) {
  std::vector<ComparedRow*> tested;
  std::vector<double> p;
  for (ComparedRow& row : rows)
    if (row.p) {
      tested.push_back(&row);
      p.push_back(*row.p);
    }
  const std::vector<double> adjusted = holm_adjusted(p);
  for (std::size_t i = 0; i < tested.size(); ++i) {
    tested[i]->p_adjusted = adjusted[i];
    judge_change(options, *tested[i]);
  }
}

} // namespace

const char* to_string(RowVerdict verdict) {
  switch (verdict) {
  case RowVerdict::better:
    return "better";
  case RowVerdict::worse:
    return "worse";
  case RowVerdict::same:
    return "same";
  case RowVerdict::unclear:
    return "unclear";
  case RowVerdict::missing:
    return "missing";
  case RowVerdict::added:
    return "new";
  }
  return "unclear";
}

std::size_t Comparison::count(RowVerdict verdict) const {
  return static_cast<std::size_t>(
      std::count_if(rows.begin(), rows.end(),
                    [verdict](const ComparedRow& row) { return row.verdict == verdict; }));
}

Comparison compare_reports(const std::vector<LoadedReport>& base,
                           const std::vector<LoadedReport>& other, const CompareOptions& options) {
  const bool by_host = matches_by_host(base, other);
  CarriersOfRows carriers;
  carriers.learn(base);
  carriers.learn(other);
  const Side before = side_of(base, by_host, carriers), after = side_of(other, by_host, carriers);
  Comparison comparison;
  comparison.options = options;
  comparison.base = described(base, before);
  comparison.other = described(other, after);
  if (before.rows.empty())
    throw no_rows(comparison.base, "BASE");
  if (after.rows.empty())
    throw no_rows(comparison.other, "NEW");
  comparison.differences = differences_between(base, other);
  comparison.rows.resize(before.rows.size());
  for_each_index(before.rows.size(), [&](std::size_t i) {
    const SideRow& row = before.rows[i];
    const auto found = after.index.find(row.key);
    comparison.rows[i] = found == after.index.end() ? lone_row(row, RowVerdict::missing)
                                                    : compare_row(row, after.rows[found->second]);
  });
  std::size_t n_new = 0;
  for (const SideRow& row : after.rows)
    if (!before.index.contains(row.key)) {
      comparison.rows.push_back(lone_row(row, RowVerdict::added));
      ++n_new;
    }
  if (n_new == after.rows.size())
    throw input_error(comparison.other.files.front(), "",
                      "none of its " + counted(n_new, "row") + " is in BASE (" +
                          before.rows.front().first().case_name + ", ... of " +
                          comparison.base.files.front() + ")",
                      by_host ? "compare reports of the same cases and the same hosts"
                              : "compare reports of the same cases");
  adjust_and_judge(options, comparison.rows);
  return comparison;
}

} // namespace shmemctl
