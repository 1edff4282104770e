#include "reports/compare/thresholds.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <set>

#include "reports/compare/compare.h"
#include "reports/compare/threshold_metric.h"
#include "reports/json_view.h"
#include "src/base/counted.h"
#include "src/base/pattern.h"
#include "src/base/text.h"
#include "src/base/units.h"

namespace shmemctl {

namespace {

using nlohmann::json;

/// Rows that a finding names; the rest is counted.
constexpr std::size_t most_named = 5;

bool value_is(const json& value, const std::string& wanted) {
  if (!value.is_number())
    return view::scalar(value).value_or("null") == wanted;
  const double number = value.get<double>();
  const auto size = parse_size_bytes(wanted);
  const auto plain = parse_number(wanted);
  return (plain && *plain == number) || (size && static_cast<double>(*size) == number);
}

bool condition_holds(const std::pair<std::string, std::string>& condition, const ResultRow& row,
                     const std::vector<std::string>& hosts) {
  const auto& [name, wanted] = condition;
  if (name == "host" && !row.params.contains("host"))
    return std::find(hosts.begin(), hosts.end(), wanted) != hosts.end();
  const bool size = name == "bytes" || name == "size";
  const auto found = row.params.find(size && !row.params.contains(name) ? "size_bytes" : name);
  return found != row.params.end() && value_is(*found, wanted);
}

bool keeps_to(const Threshold& threshold, double value) {
  switch (threshold.comparison) {
  case Threshold::Operator::at_least:
    return value >= threshold.limit;
  case Threshold::Operator::at_most:
    return value <= threshold.limit;
  case Threshold::Operator::above:
    return value > threshold.limit;
  case Threshold::Operator::below:
    return value < threshold.limit;
  }
  return false;
}

bool wants_much(const Threshold& threshold) {
  return threshold.comparison == Threshold::Operator::at_least ||
         threshold.comparison == Threshold::Operator::above;
}

/// "put size_bytes=4096 window=64 on node7"
std::string name_of(const ResultRow& row, const std::vector<std::string>& hosts, bool with_host) {
  const std::string params = params_text(row.params);
  return row.case_name + (params.empty() ? "" : " " + params) +
         (with_host && !hosts.empty() ? " on " + join(hosts, "+") : "");
}

/// What is wrong with a row that the threshold is about; "" if nothing is.
std::string fault_of(const Threshold& threshold, const ResultRow& row,
                     const std::optional<double>& value) {
  const std::string why = row.reason.empty() ? "" : ": " + row.reason;
  if (row.status == RowStatus::fail || row.verified == Verified::failed)
    return "failed" + why;
  if (row.status == RowStatus::skip)
    return "was skipped" + why;
  if (!value)
    return "has no " + threshold.metric;
  return keeps_to(threshold, *value) ? "" : "has " + view::decimal(*value, 6);
}

/// Why no row is left, naming what comes nearest.
Error matches_nothing(const Threshold& threshold, const std::vector<LoadedReport>& reports) {
  std::set<std::string> cases;
  std::size_t of_case = 0;
  const ResultRow* example = nullptr;
  for (const LoadedReport& loaded : reports)
    for (const ResultRow& row : loaded.report.results) {
      cases.insert(row.case_name);
      if (!matches_pattern(row.case_name, threshold.case_pattern))
        continue;
      ++of_case;
      example = example ? example : &row;
    }
  std::string fix = "name a case that was measured";
  if (example)
    fix = "rows of that name look like this: " + printable(name_of(*example, {}, false), 400);
  else if (const auto near = nearest_spelling(threshold.case_pattern, {cases.begin(), cases.end()}))
    fix = "did you mean " + printable(*near) + "?";
  const std::string problem = of_case == 0 ? "no row has that case"
                                           : "of " + counted(of_case, "row") +
                                                 " of that case none has these parameters"
                                                 " and a " +
                                                 threshold.metric;
  return input_error(threshold.source, "",
                     "\"" + threshold.expression + "\" matches nothing: " + problem, fix);
}

} // namespace

ThresholdOutcome hold_against(const Threshold& threshold,
                              const std::vector<LoadedReport>& reports) {
  ThresholdOutcome outcome;
  outcome.threshold = threshold;
  const bool any_case = threshold.case_pattern.find_first_of("*?") != std::string::npos;
  for (const LoadedReport& loaded : reports) {
    const std::vector<RunInfo> runs = runs_of(loaded.report);
    for (const ResultRow& row : loaded.report.results) {
      const std::vector<std::string>& hosts = runs[run_index(loaded.report, row.run)].hosts;
      if (!matches_pattern(row.case_name, threshold.case_pattern) ||
          !std::all_of(
              threshold.conditions.begin(), threshold.conditions.end(),
              [&](const auto& condition) { return condition_holds(condition, row, hosts); }))
        continue;
      const std::optional<double> value = metric_of(row, threshold.metric);
      if (!value && any_case && row.status == RowStatus::pass)
        continue;
      ++outcome.rows;
      if (const std::string fault = fault_of(threshold, row, value); !fault.empty())
        outcome.missed.push_back(name_of(row, hosts, runs.size() > 1 || reports.size() > 1) + " " +
                                 fault);
      if (value && (!outcome.worst ||
                    (wants_much(threshold) ? *value < *outcome.worst : *value > *outcome.worst)))
        outcome.worst = value;
    }
  }
  if (outcome.rows == 0)
    throw matches_nothing(threshold, reports);
  return outcome;
}

json thresholds_json(const std::vector<ThresholdOutcome>& outcomes) {
  json list = json::array();
  for (const ThresholdOutcome& outcome : outcomes) {
    json object{{"expression", outcome.threshold.expression},
                {"source", outcome.threshold.source},
                {"rows", outcome.rows},
                {"failed", outcome.missed.size()},
                {"passed", outcome.missed.empty()}};
    if (outcome.worst && std::isfinite(*outcome.worst))
      object["worst"] = *outcome.worst;
    list.push_back(std::move(object));
  }
  return list;
}

Findings threshold_findings(const std::vector<ThresholdOutcome>& outcomes) {
  Findings findings;
  for (const ThresholdOutcome& outcome : outcomes) {
    if (outcome.missed.empty())
      continue;
    std::vector<std::string> named = outcome.missed;
    const std::size_t more = named.size() > most_named ? named.size() - most_named : 0;
    named.resize(named.size() - more);
    findings.push_back(
        {"threshold-missed", Severity::error, outcome.threshold.expression,
         outcome.threshold.expression + ": missed by " + counted(outcome.missed.size(), "row") +
             " of " + std::to_string(outcome.rows) + ": " + join(named, "; ") +
             (more > 0 ? "; and " + std::to_string(more) + " more" : ""),
         "find out why the row is below what is required, or change " + outcome.threshold.source});
  }
  return findings;
}

} // namespace shmemctl
