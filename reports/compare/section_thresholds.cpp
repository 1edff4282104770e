// Thresholds for values outside of the result rows: findings, checks, and the loads of NICs.
#include <algorithm>
#include <fmt/format.h>
#include <set>

#include "reports/compare/thresholds.h"
#include "reports/finding_reference.h"
#include "reports/json_view.h"
#include "reports/port_names.h"
#include "src/base/error.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

using nlohmann::json;

constexpr const char* imbalance = "imbalance";

/// Maximum number of findings that a sentence names; the others are counted.
constexpr std::size_t max_named_sections = 5;

/// The value of a key of a finding, check, port or group, as text.
using KeyValue = std::optional<std::string>;

bool has_pattern(const std::string& text) {
  return text.find_first_of("*?") != std::string::npos;
}

/// Whether `value_of(key)` matches each condition; * and ? stand for any characters.
template <class ValueOf>
bool meets(const Threshold& threshold, const ValueOf& value_of) {
  return std::all_of(threshold.conditions.begin(), threshold.conditions.end(),
                     [&](const auto& condition) {
                       const KeyValue value = value_of(condition.first);
                       return value && matches_pattern(*value, condition.second);
                     });
}

std::optional<std::string> condition_on(const Threshold& threshold, const std::string& key) {
  for (const auto& [name, wanted] : threshold.conditions)
    if (name == key)
      return wanted;
  return std::nullopt;
}

KeyValue value_of_finding(const Finding& finding, const std::string& key) {
  if (key == "id")
    return finding.id;
  if (key == "severity")
    return to_string(finding.severity);
  return finding.subject;
}

KeyValue value_of_check(const CheckRow& check, const std::string& key) {
  if (key == "id")
    return check.id;
  if (key == "status")
    return check.status;
  return check.group;
}

/// Rejects unknown ids: with a misspelt id, every report would pass.
void require_known_id(const Threshold& threshold, const std::vector<LoadedReport>& reports) {
  const std::optional<std::string> id = condition_on(threshold, "id");
  if (!id)
    return;
  std::set<std::string> known;
  for (const FindingReference& row : finding_reference())
    known.insert(row.id);
  for (const LoadedReport& loaded : reports) {
    for (const Finding& finding : loaded.report.findings)
      known.insert(finding.id);
    for (const CheckRow& check : loaded.report.checks)
      known.insert(check.id);
  }
  if (std::any_of(known.begin(), known.end(),
                  [&](const std::string& name) { return matches_pattern(name, *id); }))
    return;
  const auto near = nearest_spelling(*id, {known.begin(), known.end()});
  throw input_error(threshold.source, "",
                    "\"" + threshold.expression + "\" matches nothing: no id is " + printable(*id),
                    near ? "did you mean " + printable(*near) + "?"
                         : "use an id of docs/reference/findings.md");
}

/// Stores the count, and a text about what was counted.
ThresholdOutcome judge_count(const Threshold& threshold, const std::vector<std::string>& names) {
  ThresholdOutcome outcome;
  outcome.threshold = threshold;
  outcome.rows = 1;
  outcome.worst = static_cast<double>(names.size());
  if (keeps_to(threshold, *outcome.worst))
    return outcome;
  std::vector<std::string> named = names;
  const std::size_t more =
      named.size() > max_named_sections ? named.size() - max_named_sections : 0;
  named.resize(named.size() - more);
  outcome.missed.push_back("there " + std::string(names.size() == 1 ? "is " : "are ") +
                           (names.empty() ? "none" : std::to_string(names.size())) +
                           (named.empty() ? "" : ": " + join(named, "; ")) +
                           (more > 0 ? "; and " + std::to_string(more) + " more" : ""));
  return outcome;
}

ThresholdOutcome count_findings(const Threshold& threshold,
                                const std::vector<LoadedReport>& reports) {
  std::vector<std::string> names;
  for (const LoadedReport& loaded : reports)
    for (const Finding& finding : loaded.report.findings)
      if (meets(threshold, [&](const std::string& key) { return value_of_finding(finding, key); }))
        names.push_back(finding.id + " (" + finding.subject + ")");
  return judge_count(threshold, names);
}

ThresholdOutcome count_checks(const Threshold& threshold,
                              const std::vector<LoadedReport>& reports) {
  std::vector<std::string> names;
  bool any = false;
  for (const LoadedReport& loaded : reports)
    for (const CheckRow& check : loaded.report.checks) {
      any = true;
      if (meets(threshold, [&](const std::string& key) { return value_of_check(check, key); }))
        names.push_back(check.id + " (" + check.status + ")");
    }
  if (!any)
    throw input_error(threshold.source, "",
                      "\"" + threshold.expression +
                          "\" matches nothing: no report has results of checks",
                      "pass reports of check or doctor");
  return judge_count(threshold, names);
}

/// "utilisation" -> the key in `sent` and `received`.
const char* direction_key(const std::string& metric) {
  if (metric == "utilisation" || metric == "utilization")
    return "link_share";
  return metric == "peak_GBps" ? "peak_GBps" : "GBps";
}

std::vector<std::string> directions_of(const Threshold& threshold) {
  std::vector<std::string> wanted;
  for (const char* direction : {"sent", "received"})
    if (matches_pattern(direction, condition_on(threshold, "direction").value_or("*")))
      wanted.emplace_back(direction);
  return wanted;
}

KeyValue value_of_port(const Threshold& threshold, const json& port, const std::string& key) {
  if (key == "direction") // directions_of() chooses
    return condition_on(threshold, key);
  if (key == "link")
    return port_name(port);
  const json& value = view::member(port, key.c_str());
  if (value.is_boolean())
    return value == true ? "true" : "false";
  return view::scalar(value);
}

/// Records the value; returns "" if it satisfies the threshold.
std::string judge(double value, ThresholdOutcome& outcome) {
  const Threshold& threshold = outcome.threshold;
  if (!outcome.worst || (wants_much(threshold) ? value < *outcome.worst : value > *outcome.worst))
    outcome.worst = value;
  return keeps_to(threshold, value) ? "" : "has " + view::decimal(value, 6);
}

/// Why the number is unknown.
std::string why_unknown(const json& port, const json& load, const std::string& key) {
  if (view::member(load, "GBps").is_null())
    return view::text(load, "GBps_reason", "nothing was counted");
  return key == "link_share"
             ? view::text(port, "link_Gbps_reason", "the rate of the link is not known")
             : "it was not sampled";
}

/// Compares both directions of a port; returns one sentence if it violates the threshold.
void judge_port(const json& port, ThresholdOutcome& outcome) {
  const Threshold& threshold = outcome.threshold;
  const std::string key = direction_key(threshold.metric);
  const std::optional<std::string> device = condition_on(threshold, "device");
  const bool chosen = device && !has_pattern(*device);
  std::vector<std::string> faults;
  bool known = false;
  for (const std::string& direction : directions_of(threshold)) {
    const json& load = view::member(port, direction.c_str());
    const auto value = view::number(load, key.c_str());
    const std::string fault =
        value    ? judge(*value, outcome)
        : chosen ? "has no " + threshold.metric + " (" + why_unknown(port, load, key) + ")"
                 : "";
    if (!fault.empty())
      faults.push_back(direction + " " + fault);
    known = known || value || chosen;
  }
  outcome.rows += known ? 1 : 0;
  if (!faults.empty())
    outcome.missed.push_back(view::text(port, "host") + " " + port_name(port) + " " +
                             join(faults, ", "));
}

ThresholdOutcome judge_groups_of(const Threshold& threshold,
                                 const std::vector<LoadedReport>& reports) {
  ThresholdOutcome outcome;
  outcome.threshold = threshold;
  for (const LoadedReport& loaded : reports)
    for (const json& group : view::list(loaded.report.hotspots, "groups")) {
      const auto skew = view::number(group, "skew");
      if (!skew || !meets(threshold, [&](const std::string& key) {
            return view::scalar(view::member(group, key.c_str()));
          }))
        continue;
      ++outcome.rows;
      if (const std::string fault = judge(*skew, outcome); !fault.empty())
        outcome.missed.push_back(view::text(group, "kind") + " " + view::text(group, "name") + " " +
                                 view::text(group, "direction") + " " + fault);
    }
  return outcome;
}

ThresholdOutcome judge_ports(const Threshold& threshold, const std::vector<LoadedReport>& reports) {
  ThresholdOutcome outcome;
  outcome.threshold = threshold;
  for (const LoadedReport& loaded : reports)
    for (const json& port : view::list(loaded.report.hotspots, "ports"))
      if (meets(threshold,
                [&](const std::string& key) { return value_of_port(threshold, port, key); }))
        judge_port(port, outcome);
  return outcome;
}

/// Why no port or group matches, naming those that there are.
Error no_port_matches(const Threshold& threshold, const std::vector<LoadedReport>& reports) {
  std::set<std::string> names, devices;
  for (const LoadedReport& loaded : reports) {
    for (const json& port : view::list(loaded.report.hotspots, "ports")) {
      devices.insert(view::text(port, "device"));
      names.insert(view::text(port, "host") + " " + port_name(port));
    }
    if (threshold.subject == ThresholdSubject::groups)
      for (const json& group : view::list(loaded.report.hotspots, "groups"))
        names.insert("kind=" + view::text(group, "kind") + " name=" + view::text(group, "name"));
  }
  const std::string begin = "\"" + threshold.expression + "\" matches nothing: ";
  if (names.empty())
    return input_error(threshold.source, "", begin + "no report has NIC loads",
                       "pass reports of hotspots, or of bench or moe over a network");
  const std::string wanted = condition_on(threshold, "device").value_or("");
  const auto near = nearest_spelling(wanted, {devices.begin(), devices.end()});
  constexpr std::size_t max_shown = 8;
  std::vector<std::string> shown(names.begin(), names.end());
  shown.resize(std::min(shown.size(), max_shown));
  return input_error(threshold.source, "",
                     begin + "no NIC or group that meets the conditions has the metric " +
                         threshold.metric,
                     near && !devices.contains(wanted) ? "did you mean device=" + *near + "?"
                                                       : "name one of these: " + join(shown, ", "));
}

} // namespace

std::vector<std::string> condition_keys(ThresholdSubject subject) {
  switch (subject) {
  case ThresholdSubject::rows:
    return {};
  case ThresholdSubject::findings:
    return {"id", "severity", "subject"};
  case ThresholdSubject::checks:
    return {"id", "status", "group"};
  case ThresholdSubject::ports:
    return {"host", "device",    "port", "netdev", "link",
            "rail", "direction", "hot",  "fabric", "rdma"};
  case ThresholdSubject::groups:
    return {"kind", "name", "direction"};
  }
  return {};
}

std::vector<std::string> condition_values(const std::string& key) {
  if (key == "severity")
    return {"info", "warning", "error"};
  if (key == "status")
    return {"pass", "warning", "fail", "skipped"};
  if (key == "direction")
    return {"sent", "received"};
  if (key == "kind")
    return {"node", "rail"};
  if (key == "hot" || key == "fabric" || key == "rdma")
    return {"true", "false"};
  return {};
}

std::vector<std::string> port_metric_names() {
  return {"utilisation", "GBps", "peak_GBps", imbalance};
}

ThresholdOutcome hold_section_against(const Threshold& threshold,
                                      const std::vector<LoadedReport>& reports) {
  if (threshold.subject == ThresholdSubject::findings ||
      threshold.subject == ThresholdSubject::checks) {
    require_known_id(threshold, reports);
    return threshold.subject == ThresholdSubject::findings ? count_findings(threshold, reports)
                                                           : count_checks(threshold, reports);
  }
  ThresholdOutcome outcome = threshold.subject == ThresholdSubject::groups
                                 ? judge_groups_of(threshold, reports)
                                 : judge_ports(threshold, reports);
  if (outcome.rows == 0)
    throw no_port_matches(threshold, reports);
  return outcome;
}

} // namespace shmemctl
