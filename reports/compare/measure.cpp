#include "reports/compare/measure.h"

#include <algorithm>
#include <cmath>

#include "src/base/quantiles.h"

namespace shmemctl {

namespace {

/// Fewer measurements than this do not tell how far their mean is off.
constexpr std::size_t fewest_for_summary = 10;

/// The row's number and its unit; nothing if nothing was measured.
struct Value {
  std::optional<double> value;
  std::string unit;
};

Value value_of(const ResultRow& row) {
  if (row.stats && row.stats->p50)
    return {row.stats->p50, row.unit};
  if (!row.samples.empty())
    return {median(row.samples), row.unit};
  if (row.stats && row.stats->mean)
    return {row.stats->mean, row.unit};
  if (row.bandwidth_GBps)
    return {row.bandwidth_GBps, "GBps"};
  if (row.rate_Mops)
    return {row.rate_Mops, "Mops"};
  return {std::nullopt, row.unit};
}

std::optional<MeanAndSpread> summary_of(const ResultRow& row) {
  if (!row.stats || row.stats->n < fewest_for_summary || !row.stats->mean || !row.stats->stddev ||
      *row.stats->mean <= 0)
    return std::nullopt;
  return MeanAndSpread{static_cast<double>(row.stats->n), *row.stats->mean, *row.stats->stddev};
}

std::vector<double> logarithms(std::vector<double> values) {
  for (double& value : values)
    value = std::log(value);
  std::sort(values.begin(), values.end());
  return values;
}

/// Takes the logarithms, if there are any.
void set_logarithms(std::vector<double> samples, std::vector<double> runs, Measured& into) {
  const auto not_positive = [](double value) { return !(value > 0); };
  into.positive = std::none_of(samples.begin(), samples.end(), not_positive) &&
                  std::none_of(runs.begin(), runs.end(), not_positive);
  if (!into.positive)
    return;
  into.log_samples = logarithms(std::move(samples));
  into.log_runs = logarithms(std::move(runs));
}

} // namespace

Measured measured(const SideRow& row) {
  Measured result;
  std::vector<double> samples, middles;
  bool all_kept = true;
  for (const RunOfRow& run : row.runs) {
    std::vector<double> values;
    for (const ResultRow* part : run.rows) {
      const Value value = value_of(*part);
      if (!value.value)
        continue;
      if (result.unit.empty())
        result.unit = value.unit;
      if (value.unit != result.unit)
        continue; // one name with two units: the first one counts
      values.push_back(*value.value);
      samples.insert(samples.end(), part->samples.begin(), part->samples.end());
      all_kept = all_kept && !part->samples.empty();
    }
    if (!values.empty())
      middles.push_back(median(std::move(values)));
  }
  if (result.unit.empty())
    result.unit = row.first().unit;
  if (middles.empty())
    return result;
  if (!all_kept)
    samples.clear();
  result.samples = samples.size();
  result.value = median(middles);
  if (row.runs.size() == 1 && row.runs[0].rows.size() == 1)
    result.summary = summary_of(row.first());
  set_logarithms(std::move(samples), std::move(middles), result);
  return result;
}

std::optional<bool> less_is_better(const std::string& unit) {
  for (const char* time : {"ns", "us", "ms", "s"})
    if (unit == time)
      return true;
  for (const char* rate : {"B/s", "MBps", "GBps", "Gbps", "op/s", "Kops", "Mops", "Gops"})
    if (unit == rate)
      return false;
  return std::nullopt;
}

Change change_between(const Measured& base, const Measured& other) {
  Change change;
  const auto add = [&change](const Shift& shift, const char* name) {
    const double p = change.shift ? std::max(change.shift->p, shift.p) : shift.p;
    change.shift = shift; // the last one's interval: runs see more noise than samples do
    change.shift->p = p;
    change.tests += (change.tests.empty() ? "" : " and ") + std::string(name);
  };
  const bool several_runs = !base.log_runs.empty() && !other.log_runs.empty() &&
                            base.log_runs.size() + other.log_runs.size() >= 3;
  if (std::min(base.log_samples.size(), other.log_samples.size()) >= fewest_for_rank_test)
    add(rank_shift(base.log_samples, other.log_samples, interval_confidence), "samples");
  else if (!several_runs && base.summary && other.summary)
    add(welch_log_shift(*base.summary, *other.summary, interval_confidence), "stats");
  if (several_runs)
    add(student_shift(base.log_runs, other.log_runs, interval_confidence), "runs");
  return change;
}

} // namespace shmemctl
