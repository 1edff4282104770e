// Compares reports row by row.
#include "reports/compare/compare.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <thread>

#include "reports/json_view.h"
#include "src/base/json_values.h"
#include "src/base/statistics.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

using nlohmann::json;

/// The text of a parameter; 1 and 1.0 are the same.
std::string value_text(const json& value) {
  if (value.is_number_float()) {
    const double number = value.get<double>();
    if (std::abs(number) < 9e15 && number == std::trunc(number))
      return std::to_string(static_cast<long long>(number));
  }
  return json_line(value);
}

std::string carriers_of(const ResultRow& row) {
  return row.path ? join(row.path->transports, ", ") : "";
}

std::string key_of(const ResultRow& row, const std::vector<std::string>& hosts) {
  std::string key = row.case_name;
  for (const auto& [name, value] : row.params.items())
    if (!is_dependent(name))
      key.append(1, '\0').append(name).append(1, '\0').append(value_text(value));
  for (const std::string& host : hosts)
    key.append(1, '\1').append(host);
  return key;
}

} // namespace

bool is_dependent(const std::string& parameter) {
  return parameter == "batch" || parameter == "declared";
}

HostSets host_sets(const std::vector<LoadedReport>& reports) {
  HostSets sets;
  for (const LoadedReport& loaded : reports)
    for (const RunInfo& run : runs_of(loaded.report))
      sets.insert(run.hosts);
  return sets;
}

bool has_several_hosts(const std::vector<LoadedReport>& reports) {
  return host_sets(reports).size() > 1;
}

bool matches_by_host(const HostSets& base, const HostSets& other) {
  if (other.size() > 1)
    return true;
  if (base.size() < 2)
    return false;
  std::set<std::string> known;
  for (const std::vector<std::string>& hosts : base)
    known.insert(hosts.begin(), hosts.end());
  const std::vector<std::string>& hosts = *other.begin();
  return hosts.empty() || std::any_of(hosts.begin(), hosts.end(), [&](const std::string& host) {
           return known.contains(host);
         });
}

bool matches_by_host(const std::vector<LoadedReport>& base,
                     const std::vector<LoadedReport>& other) {
  return matches_by_host(host_sets(base), host_sets(other));
}

std::set<std::string> row_keys(const Report& report) {
  const std::vector<RunInfo> runs = runs_of(report);
  std::set<std::string> keys;
  for (const ResultRow& row : report.results)
    keys.insert(key_of(row, runs[run_index(report, row.run)].hosts));
  return keys;
}

void CarriersOfRows::learn(const std::vector<LoadedReport>& reports) {
  for (const LoadedReport& loaded : reports)
    for (const ResultRow& row : loaded.report.results)
      if (std::string carriers = carriers_of(row); !carriers.empty())
        known_[key_of(row, {})].insert(std::move(carriers));
}

std::string CarriersOfRows::of(const std::string& key, const ResultRow& row) const {
  const auto known = known_.find(key);
  return known == known_.end() || known->second.size() < 2 ? "" : carriers_of(row);
}

Side side_of(const std::vector<LoadedReport>& reports, bool by_host) {
  CarriersOfRows carriers;
  carriers.learn(reports);
  return side_of(reports, by_host, carriers);
}

Side side_of(const std::vector<LoadedReport>& reports, bool by_host,
             const CarriersOfRows& carriers) {
  Side side;
  for (const LoadedReport& loaded : reports) {
    const std::vector<RunInfo> runs = runs_of(loaded.report);
    // The index in SideRow::runs of each (row, run of this report).
    std::map<std::pair<std::size_t, std::size_t>, std::size_t> index_of_run;
    for (const ResultRow& row : loaded.report.results) {
      const std::size_t run = run_index(loaded.report, row.run);
      const std::vector<std::string> hosts = by_host ? runs[run].hosts : std::vector<std::string>{};
      std::string key = key_of(row, hosts);
      std::string transports = carriers.of(key_of(row, {}), row);
      if (!transports.empty())
        key.append(1, '\2').append(transports);
      const auto [found, is_new] = side.index.emplace(key, side.rows.size());
      if (is_new)
        side.rows.push_back({std::move(key), hosts, std::move(transports), {}});
      SideRow& target = side.rows[found->second];
      const auto [place, first_of_run] =
          index_of_run.emplace(std::make_pair(found->second, run), target.runs.size());
      if (first_of_run)
        target.runs.emplace_back();
      target.runs[place->second].rows.push_back(&row);
    }
    side.n_runs += runs.size();
  }
  return side;
}

namespace {

/// Fewer measurements do not allow an estimate of the error of their mean.
constexpr std::size_t fewest_for_summary = 10;

/// The row's number and its unit; empty if nothing was measured.
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

/// Takes the logarithms, if they exist.
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
        continue; // if one name has two units, the first one counts
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
    change.shift = shift; // the last interval applies: runs have more noise than samples
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

namespace {

/// The status of a row on one side, over its runs: it failed if any did, was skipped if all were.
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

/// Verdicts that need no numbers; false if the numbers decide.
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

/// The change of a row that both sides measured, judged by this row alone.
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
    return unclear("too few measurements: 5 samples on each side, or 3 runs in all, are needed");
  // The tests use all measurements and estimate their own shift: with two groups of samples it can
  // differ greatly from that of the medians. The reported change is that of the displayed values,
  // and the interval is extended to include it.
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

/// Whether a change exceeds the smallest that counts, in either direction, as a ratio, so that
/// swapping the sides changes nothing.
bool beyond(double change, double min_effect) {
  return std::abs(std::log1p(change)) > std::log1p(min_effect);
}

/// The verdict of a row with numbers and a probability.
void judge_change(const CompareOptions& options, ComparedRow& row) {
  const bool larger_than_noise = *row.p_adjusted < options.alpha;
  if (beyond(*row.change, options.min_effect) && larger_than_noise && !row.one_direction) {
    row.reason = "the medians moved one way and the test's estimate of the change the other: "
                 "measure longer, or several runs";
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
  row.reason = larger_than_noise ? "the change may be above or below --min-effect"
                                 : "the noise exceeds --min-effect: measure longer, or "
                                   "several runs";
}

/// Calls `work` for 0 to count - 1, on all cores if that is worth starting threads.
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
  for (const LoadedReport& loaded : reports) {
    description.files.push_back(loaded.path);
    const Findings& findings = loaded.report.findings;
    description.disturbed +=
        std::any_of(findings.begin(), findings.end(),
                    [](const Finding& finding) { return finding.id == "bench-interference"; })
            ? 1
            : 0;
  }
  description.runs = side.n_runs;
  description.rows = side.rows.size();
  return description;
}

Error no_rows(const ComparedSide& side, const char* which) {
  return input_error(side.files.front() + (side.files.size() > 1 ? ", ..." : ""), "",
                     std::string(which) + " has no results to compare",
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

std::size_t Comparison::compared() const {
  return rows.size() - count(RowVerdict::missing) - count(RowVerdict::added);
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
                      "none of its " + counted(n_new, "row") +
                          " is in BASE: " + comparison.base.files.front() +
                          " begins with a row of " + before.rows.front().first().case_name,
                      by_host ? "compare reports of the same cases, parameters and hosts"
                              : "compare reports of the same cases and parameters");
  adjust_and_judge(options, comparison.rows);
  return comparison;
}

namespace {

/// The facts of one side: name of a fact -> the distinct values in its reports.
using Facts = std::map<std::string, std::set<std::string>>;

void note(Facts& facts, const std::string& what, const std::optional<std::string>& value) {
  if (value && !value->empty())
    facts[what].insert(*value);
}

std::optional<std::string> text_of(const json& object, const char* key) {
  return view::scalar(view::member(object, key));
}

/// "8 x NVIDIA H200, 1 x unknown"
std::string gpus_text(const json& gpus) {
  std::map<std::string, std::size_t> counts;
  for (const json& gpu : gpus)
    ++counts[text_of(gpu, "name").value_or("unknown")];
  std::vector<std::string> parts;
  for (const auto& [name, count] : counts)
    parts.push_back(std::to_string(count) + " x " + name);
  return parts.empty() ? "none" : join(parts, ", ");
}

/// "mlx5_0/1, firmware 28.39, 400 Gb/s, x16 at 32 GT/s"
std::string hca_text(const json& hca) {
  std::string out = text_of(hca, "name").value_or("?");
  if (const auto port = text_of(hca, "port"))
    out += "/" + *port;
  if (const auto firmware = text_of(hca, "firmware"))
    out += ", firmware " + *firmware;
  if (const auto rate = text_of(hca, "rate_Gbps"))
    out += ", " + *rate + " Gb/s";
  if (const auto width = text_of(hca, "link_width"))
    out += ", x" + *width;
  if (const auto speed = text_of(hca, "link_speed_GTps"))
    out += " at " + *speed + " GT/s";
  return out;
}

void note_host(const json& host, Facts& facts) {
  note(facts, "host", text_of(host, "name"));
  note(facts, "kernel", text_of(host, "kernel"));
  note(facts, "CPU model", text_of(view::member(host, "cpus"), "model"));
  note(facts, "GPUs", gpus_text(view::list(host, "gpus")));
  for (const json& hca : view::list(host, "hcas"))
    note(facts, "HCA", hca_text(hca));
  const json& versions = view::member(host, "versions");
  if (versions.is_object())
    for (const auto& [name, version] : versions.items())
      note(facts, "version of " + name, view::scalar(version).value_or("absent"));
}

void note_topology(const json& topology, Facts& facts) {
  const json& distances = view::member(topology, "distances");
  const json& labels = view::list(distances, "labels");
  const json& matrix = view::list(distances, "matrix");
  for (std::size_t i = 0; i < matrix.size() && i < labels.size(); ++i) {
    std::vector<std::string> cells;
    for (const json& cell : matrix[i])
      cells.push_back(view::scalar(cell).value_or("?"));
    note(facts, "distances of " + view::scalar(labels[i]).value_or("?"), join(cells, " "));
  }
}

void note_mapping(const json& mapping, Facts& facts) {
  for (const json& pe : view::list(mapping, "pes")) {
    std::vector<std::string> nics;
    for (const json& nic : view::list(pe, "nics"))
      nics.push_back(text_of(nic, "device").value_or("?") + "/" +
                     text_of(nic, "port").value_or("?"));
    note(facts, "NICs of PE " + text_of(pe, "pe").value_or("?"),
         nics.empty() ? "none" : join(nics, ", "));
  }
}

Facts facts_of(const std::vector<LoadedReport>& reports) {
  Facts facts;
  for (const LoadedReport& loaded : reports) {
    const Report& report = loaded.report;
    for (const json& host : report.hosts)
      note_host(host, facts);
    note_topology(report.topology, facts);
    note_mapping(report.mapping, facts);
    for (const auto& [name, value] : report.env)
      note(facts, (starts_with(name, "SHMEMCTL_") ? "option " : "variable ") + name, value);
    for (const RunInfo& run : runs_of(report)) {
      note(facts, "shmemctl",
           run.tool_version + (run.git_revision.empty() ? "" : " (" + run.git_revision + ")"));
      note(facts, "PEs", std::to_string(run.job.pes));
      note(facts, "nodes", std::to_string(run.job.nodes));
      note(facts, "launcher", run.job.launcher);
      note(facts, "bootstrap", run.job.bootstrap);
      if (run.status != ReportStatus::complete)
        note(facts, "runs that did not complete",
             loaded.path + (run.started_at.empty() ? "" : " of " + run.started_at));
    }
    if (report.measurement)
      note(facts, "clock", report.measurement->clock);
  }
  return facts;
}

} // namespace

std::vector<Difference> differences_between(const std::vector<LoadedReport>& base,
                                            const std::vector<LoadedReport>& other) {
  const Facts before = facts_of(base), after = facts_of(other);
  static const std::set<std::string> none;
  const auto look_up = [](const Facts& facts, const std::string& what) -> const auto& {
    const auto found = facts.find(what);
    return found == facts.end() ? none : found->second;
  };
  std::set<std::string> names;
  for (const Facts* facts : {&before, &after})
    for (const auto& [what, values] : *facts)
      names.insert(what);
  std::vector<Difference> differences;
  for (const std::string& what : names) {
    const auto &old_values = look_up(before, what), &new_values = look_up(after, what);
    if (old_values != new_values)
      differences.push_back(
          {what, {old_values.begin(), old_values.end()}, {new_values.begin(), new_values.end()}});
  }
  return differences;
}

} // namespace shmemctl
