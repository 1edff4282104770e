#include "reports/html/page_model.h"

#include <algorithm>
#include <set>

#include "reports/compare/compare.h"
#include "reports/compare/side.h"
#include "reports/html/blocks.h"
#include "reports/html/choice.h"
#include "reports/html/sections.h"
#include "reports/json_view.h"
#include "reports/table.h"
#include "reports/text.h"
#include "src/base/counted.h"
#include "src/base/text.h"

namespace shmemctl::html {

using nlohmann::json;

namespace {

json verdict_of(const std::vector<Shown>& shown, const Findings& compared) {
  std::size_t errors = 0, warnings = 0, unfinished = 0;
  bool bad = false;
  const auto count = [&](const Findings& findings) {
    for (const Finding& finding : findings) {
      errors += finding.severity == Severity::error;
      warnings += finding.severity == Severity::warning;
    }
  };
  count(compared);
  for (const Shown& one : shown) {
    count(one.report().findings);
    unfinished += one.report().status != ReportStatus::complete;
    bad = bad || one.report().exit_code != ExitCode::ok;
  }
  std::vector<std::string> words;
  if (unfinished > 0)
    words.push_back(counted(unfinished, "run") + " did not end well");
  if (errors > 0)
    words.push_back(counted(errors, "error"));
  if (warnings > 0)
    words.push_back(counted(warnings, "warning"));
  const char* level = bad || errors > 0 || unfinished > 0 ? "fail"
                      : warnings > 0                      ? "warning"
                                                          : "pass";
  const std::string first = level[0] == 'f' ? "Something is wrong"
                            : warnings > 0  ? "Works, with warnings"
                                            : "All well";
  return {{"level", level},
          {"text", first + (words.empty() ? "" : ": " + join(words, ", ")) + "."}};
}

/// As rows are compared with the baseline, they are followed over time.
bool has_trend_by_host(const PageInput& input, const std::vector<std::size_t>& shown) {
  if (input.baseline.empty())
    return has_several_hosts(input.reports);
  HostSets hosts;
  for (const std::size_t place : shown)
    for (const RunInfo& run : runs_of(input.reports[place].report))
      hosts.insert(run.hosts);
  return matches_by_host(host_sets(input.baseline), hosts);
}

json facts_of(const std::vector<Shown>& shown, std::size_t n_reports) {
  const Report& last = shown.back().report();
  std::set<std::string> hosts;
  for (const Shown& one : shown)
    for (const std::string& host : hosts_of(one.report()))
      hosts.insert(host);
  constexpr std::size_t most_names = 8;
  std::string names = join(
      {hosts.begin(),
       std::next(hosts.begin(), static_cast<std::ptrdiff_t>(std::min(hosts.size(), most_names)))},
      ", ");
  if (hosts.size() > most_names)
    names += " and " + std::to_string(hosts.size() - most_names) + " more";
  json facts = json::array();
  const auto add = [&facts](const char* name, const std::string& value) {
    if (!value.empty())
      facts.push_back({name, safe_text(value)});
  };
  add(hosts.size() == 1 ? "host" : "hosts", names);
  add("started", last.started_at);
  add("job", counted(static_cast<std::size_t>(std::max(last.job.pes, 0)), "PE") + ", " +
                 counted(static_cast<std::size_t>(std::max(last.job.nodes, 0)), "node"));
  add("command", join(last.command, " "));
  add("shmemctl",
      last.tool.version + (last.tool.git_revision.empty() ? "" : " " + last.tool.git_revision));
  if (n_reports > 1)
    add("reports", std::to_string(n_reports) + ", shown: " + std::to_string(shown.size()));
  for (const Shown& one : shown)
    if (shown.size() <= most_names)
      add(one.label.empty() ? "summary" : "",
          labelled(one.label, std::string(trim(summary_text(one.report())))));
  return facts;
}

} // namespace

bool CellBudget::take(std::size_t wanted) {
  if (wanted > cells) {
    ++left_out;
    return false;
  }
  cells -= wanted;
  return true;
}

std::string labelled(const std::string& label, const std::string& text) {
  return label.empty() ? text : text.empty() ? label : label + ": " + text;
}

json page_model(PageInput input) {
  std::stable_sort(input.reports.begin(), input.reports.end(),
                   [](const LoadedReport& a, const LoadedReport& b) {
                     return a.report.started_at < b.report.started_at;
                   });
  const std::vector<std::size_t> places = reports_to_show(input.reports, input.baseline);
  json trend = trend_section(input.reports, has_trend_by_host(input, places));
  const std::size_t n_reports = input.reports.size();
  std::vector<LoadedReport> current;
  for (const std::size_t place : places)
    current.push_back(std::move(input.reports[place]));
  const std::vector<Shown> shown = shown_of(current);
  json comparison;
  Findings compared;
  for (const Shown& one : shown)
    if (one.report().comparison.is_object())
      comparison = one.report().comparison;
  if (!input.baseline.empty()) {
    const Comparison against = compare_reports(input.baseline, current, {});
    comparison = comparison_json(against);
    compared = comparison_findings(against, false);
  }
  CellBudget budget;
  json sections = json::array();
  const auto add = [&sections](json section) {
    if (!section.is_null())
      sections.push_back(std::move(section));
  };
  add(findings_section(shown, compared));
  add(comparison_section(comparison));
  add(simulation_section(shown));
  add(topology_section(shown));
  add(nics_section(shown, budget));
  add(pairs_section(shown, budget));
  add(moe_section(shown, budget));
  add(sweeps_section(current, input.baseline));
  add(std::move(trend));
  add(results_section(shown));
  add(machine_section(shown));
  json model{{"title", "shmemctl report"},
             {"verdict", verdict_of(shown, compared)},
             {"facts", facts_of(shown, n_reports)},
             {"sections", std::move(sections)}};
  if (budget.left_out > 0)
    model["note"] = counted(budget.left_out, "matrix view") +
                    " left out to keep this page small: the reports have them.";
  return model;
}

} // namespace shmemctl::html
