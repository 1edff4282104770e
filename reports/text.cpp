// A report as text.
#include "reports/text.h"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "reports/hosts_table.h"
#include "reports/json_view.h"
#include "reports/table.h"
#include "reports/verdict.h"
#include "src/base/finding.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

/// "3 findings (1 error, 2 warnings)": severities without findings are omitted.
std::string with_kinds(const std::string& total,
                       std::initializer_list<std::pair<std::size_t, std::string>> kinds) {
  std::string inner;
  for (const auto& [count, words] : kinds)
    if (count > 0)
      inner += (inner.empty() ? "" : ", ") + words;
  return total + (inner.empty() ? "" : " (" + inner + ")") + ".";
}

std::string findings_summary(const Findings& findings) {
  const auto count = [&findings](Severity severity) {
    return static_cast<std::size_t>(
        std::count_if(findings.begin(), findings.end(),
                      [severity](const Finding& finding) { return finding.severity == severity; }));
  };
  if (findings.empty())
    return "No findings.";
  const std::size_t errors = count(Severity::error);
  const std::size_t warnings = count(Severity::warning);
  const std::size_t infos = count(Severity::info);
  return with_kinds(counted(findings.size(), "finding"),
                    {{errors, counted(errors, "error")},
                     {warnings, counted(warnings, "warning")},
                     {infos, std::to_string(infos) + " info"}});
}

std::string checks_summary(const std::vector<CheckRow>& checks) {
  const auto count = [&checks](const char* status) {
    return static_cast<std::size_t>(
        std::count_if(checks.begin(), checks.end(),
                      [status](const CheckRow& check) { return check.status == status; }));
  };
  const std::size_t passed = count("pass");
  const std::size_t warnings = count("warning");
  const std::size_t failed = count("fail");
  const std::size_t skipped = count("skipped");
  return with_kinds(counted(checks.size(), "check"),
                    {{passed, std::to_string(passed) + " passed"},
                     {warnings, counted(warnings, "warning")},
                     {failed, std::to_string(failed) + " failed"},
                     {skipped, std::to_string(skipped) + " skipped"}});
}

std::string results_summary(const std::vector<ResultRow>& results) {
  const auto count = [&results](RowStatus status) {
    return static_cast<std::size_t>(
        std::count_if(results.begin(), results.end(),
                      [status](const ResultRow& row) { return row.status == status; }));
  };
  const std::size_t passed = count(RowStatus::pass);
  const std::size_t failed = count(RowStatus::fail);
  const std::size_t skipped = count(RowStatus::skip);
  return with_kinds(counted(results.size(), "result"),
                    {{passed, std::to_string(passed) + " passed"},
                     {failed, std::to_string(failed) + " failed"},
                     {skipped, std::to_string(skipped) + " skipped"}});
}

} // namespace

namespace {

/// More findings than this with one id and fix share an entry, such as those of a sweep over forty
/// cases on a busy machine. The entry has the messages of three errors, or of one finding of
/// another severity.
constexpr std::size_t max_alike_errors = 3, max_alike_others = 2;
/// The number of subjects that such an entry names.
constexpr std::size_t max_subjects = 8;

using Alike = std::vector<const Finding*>;
using KindOfFinding = std::tuple<Severity, std::string, std::string>; // severity, id and fix

KindOfFinding kind_of(const Finding& finding) {
  return {finding.severity, finding.id, finding.fix};
}

/// @param times shown after the id: "×3"
/// @param others lines between the message and the fix
std::string finding_text(const Finding& finding, const std::string& times,
                         const std::string& others, const TextStyle& style) {
  const bool error = finding.severity == Severity::error;
  const bool warning = finding.severity == Severity::warning;
  const std::string mark = error ? "[x]" : warning ? "[!]" : "[i]";
  const Colour colour = error ? Colour::red : warning ? Colour::yellow : Colour::blue;
  const std::string line =
      wrapped(mark + " " + safe_text(finding.id) + times + "  " + safe_text(finding.message),
              style.width, 4);
  std::string out = coloured(mark, colour, style) + line.substr(mark.size()) + "\n" + others;
  // A fix is for copy and paste: it is never wrapped.
  if (!finding.fix.empty())
    out += "    fix: " + safe_text(finding.fix) + "\n";
  return out;
}

/// "    and 34 more: bench get, bench p and 32 others; --verbose shows them"
std::string rest_text(const Alike& alike, std::size_t shown, const TextStyle& style) {
  std::vector<std::string> subjects; // each once
  for (std::size_t i = shown; i < alike.size(); ++i)
    if (const std::string& subject = alike[i]->subject;
        !subject.empty() && subject != alike[0]->subject &&
        std::find(subjects.begin(), subjects.end(), subject) == subjects.end())
      subjects.push_back(subject);
  const std::size_t named = std::min(subjects.size(), max_subjects);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < named; ++i)
    names.push_back(safe_text(subjects[i]));
  const std::string left =
      subjects.size() > named ? " and " + counted(subjects.size() - named, "other") : "";
  return wrapped("    and " + std::to_string(alike.size() - shown) + " more" +
                     (names.empty() ? "" : ": " + join(names, ", ") + left) +
                     "; --verbose shows them",
                 style.width, 4) +
         "\n";
}

std::string alike_text(const Alike& alike, const TextStyle& style) {
  const Finding& first = *alike.front();
  const std::size_t shown = first.severity == Severity::error ? max_alike_errors : 1;
  std::string others;
  for (std::size_t i = 1; i < shown; ++i)
    others += wrapped("    " + safe_text(alike[i]->message), style.width, 4) + "\n";
  const std::string times =
      (style.utf8 ? " \xc3\x97" : " x") + std::to_string(alike.size()); // "×35"
  return finding_text(first, times, others + rest_text(alike, shown, style), style);
}

} // namespace

std::string findings_text(const Findings& findings, const TextStyle& style) {
  std::map<KindOfFinding, Alike> kinds;
  for (const Finding& finding : findings)
    kinds[kind_of(finding)].push_back(&finding);
  std::string out;
  for (const Finding& finding : findings) {
    const Alike& alike = kinds[kind_of(finding)];
    const bool error = finding.severity == Severity::error;
    if (style.verbose || alike.size() <= (error ? max_alike_errors : max_alike_others))
      out += finding_text(finding, "", "", style);
    else if (alike.front() == &finding)
      out += alike_text(alike, style);
  }
  return out;
}

std::string summary_text(const Report& report) {
  std::string out;
  const auto add = [&out](const std::string& sentence) {
    out += (out.empty() ? "" : " ") + sentence;
  };
  if (report.status == ReportStatus::incomplete)
    add("Incomplete: the run ended early.");
  else if (report.status == ReportStatus::failed)
    add("Failed: the run could not be carried out.");
  if (report.topology.is_object())
    add(counted(view::list(report.topology, "gpus").size(), "GPU") + ", " +
        counted(view::list(report.topology, "nics").size(), "NIC") + ".");
  if (!report.checks.empty())
    add(checks_summary(report.checks));
  if (!report.results.empty())
    add(results_summary(report.results));
  add(findings_summary(report.findings));
  if (report.fail_on != Severity::error && has_finding(report.findings, report.fail_on))
    add(std::string("Exit code 1: --fail-on ") + to_string(report.fail_on) + ".");
  return out + "\n";
}

namespace {

/// The findings without those that repeat doctor's checks, which are printed with their fixes.
Findings beside_checks(const Report& report) {
  std::set<std::string> ids;
  for (const CheckRow& check : report.checks)
    ids.insert(check.id);
  Findings others;
  for (const Finding& finding : report.findings)
    if (!ids.contains(finding.id))
      others.push_back(finding);
  return others;
}

/// The checks without the parts of `check`, which are at the end, in its verdict.
std::vector<CheckRow> without_parts(std::vector<CheckRow> checks) {
  std::erase_if(checks, [](const CheckRow& check) { return check.group == verdict_group; });
  return checks;
}

} // namespace

std::string options_text(const std::vector<OptionEntry>& options, const TextStyle& style) {
  const auto or_dash = [](const std::string& text) { return text.empty() ? "-" : safe_text(text); };
  Table set({{"set"}, {"value"}, {"from"}, {"default"}, {"valid"}});
  // On a terminal the sentences, which are long, would break every row.
  const bool with_sentences = style.width == 0 || style.verbose;
  std::vector<Column> columns = {{"not set"}, {"default"}, {"type"}};
  if (with_sentences)
    columns.push_back({"what it does"});
  Table rest(columns);
  for (const OptionEntry& option : options) {
    if (option.origin != "default") {
      set.add({safe_text(option.name), or_dash(option.value),
               safe_text(option.origin_name.empty() ? option.origin : option.origin_name),
               or_dash(option.default_value),
               option.problem.empty() ? "yes" : "no: " + safe_text(option.problem)});
      continue;
    }
    std::vector<std::string> row = {safe_text(option.name), or_dash(option.value),
                                    safe_text(option.type)};
    if (with_sentences)
      row.push_back(safe_text(option.doc));
    rest.add(row);
  }
  return (set.empty() ? "" : set.text(style) + (rest.empty() ? "" : "\n")) +
         (rest.empty() ? "" : rest.text(style));
}

void write_text(std::ostream& out, const Report& report, const TextStyle& style) {
  const std::string verdict = verdict_text(report, style);
  if (!verdict.empty() && !style.verbose) {
    out << verdict; // the verdict is the part of the report that an operator has to read
    return;
  }
  // Sixty counters per port, and the whole node, would hide the results; a simulation's rows are in
  // its own tables.
  const bool simulated = !report.simulation.is_null() && !style.verbose;
  const bool whole = (report.hotspots.is_null() && !simulated) || style.verbose;
  for (const std::string& section :
       {simulation_text(report.simulation, style),
        runs_text(report.runs, style),
        hosts_text(report.hosts, style),
        networks_text(report.networks, node_names_of(report.hosts), style),
        whole ? topology_text(report.topology, style) : "",
        whole ? mapping_text(report, style) : "",
        compare_versions_text(report.mapping, style),
        whole ? advice_text(report.mapping, style) : "",
        options_text(report.options, style),
        phases_text(report.phases, style),
        checks_text(verdict.empty() ? report.checks : without_parts(report.checks), style,
                    report.runs),
        links_text(report.results, style),
        simulated ? "" : results_text(report.results, style),
        style.heat_maps ? heat_maps_text(report, style) : "",
        hotspots_text(report.hotspots, style),
        whole ? counters_text(report, style) : "",
        comparison_text(report.comparison, style),
        host_differences_text(report.host_differences, style),
        processes_text(report.processes, style),
        logs_text(report.logs, style),
        thresholds_text(report.thresholds, style),
        findings_text(beside_checks(report), style)})
    if (!section.empty())
      out << section << "\n";
  out << summary_text(report);
  if (!verdict.empty())
    out << "\n" << verdict;
}

namespace {

struct Mark {
  const char* utf8;
  const char* ascii;
  std::optional<Colour> colour;
};

Mark mark_of(const std::string& status) {
  if (status == "pass")
    return {"[\xe2\x9c\x93]", "[ok]  ", Colour::green};
  if (status == "warning")
    return {"[!]", "[warn]", Colour::yellow};
  if (status == "fail")
    return {"[\xe2\x9c\x97]", "[FAIL]", Colour::red};
  return {"[-]", "[skip]", std::nullopt};
}

/// The number of checks from `first` on that were skipped for the same reason: they share a line.
std::size_t skipped_alike(const std::vector<CheckRow>& checks, std::size_t first) {
  std::size_t end = first + 1;
  while (end < checks.size() && checks[first].status == "skipped" &&
         checks[end].status == "skipped" && checks[end].group == checks[first].group &&
         checks[end].run == checks[first].run && checks[end].reason == checks[first].reason)
    ++end;
  return end - first;
}

} // namespace

CheckMark check_mark(const std::string& status, const TextStyle& style) {
  const Mark mark = mark_of(status);
  const std::string plain = style.utf8 ? mark.utf8 : mark.ascii;
  return {plain, mark.colour ? coloured(plain, *mark.colour, style) : plain};
}

namespace {

std::string check_lines(const CheckRow& check, int id_width, const TextStyle& style) {
  const CheckMark mark = check_mark(check.status, style);
  const std::string& shown = mark.plain;
  const int indent = display_width(shown) + 1;
  std::string id = safe_text(check.id);
  id += std::string(static_cast<std::size_t>(std::max(0, id_width - display_width(id))), ' ');
  const std::string line =
      wrapped(shown + " " + id + "  " + safe_text(check.reason), style.width, indent);
  std::string out = mark.coloured + line.substr(shown.size()) + "\n";
  const std::string blanks(static_cast<std::size_t>(indent), ' ');
  const bool quiet = check.status == "pass" || check.status == "skipped";
  if (style.verbose && !check.title.empty())
    out += blanks + "checks: " + safe_text(check.title) + "\n";
  if ((!quiet || style.verbose) && !check.evidence.empty())
    out += blanks + "read: " + safe_text(check.evidence) + "\n";
  if ((!quiet || style.verbose) && !check.fix.empty())
    out += blanks + "fix: " + safe_text(check.fix) + "\n";
  return out;
}

/// "node1", or "node1 (run 2)" if another run has the same hosts; "" if the row belongs to no run.
std::string run_name(const std::optional<int>& index, const std::vector<RunInfo>& runs) {
  if (!index || *index < 0 || static_cast<std::size_t>(*index) >= runs.size())
    return "";
  const std::vector<std::string>& hosts = runs[static_cast<std::size_t>(*index)].hosts;
  const auto same = std::count_if(runs.begin(), runs.end(),
                                  [&hosts](const RunInfo& run) { return run.hosts == hosts; });
  const std::string number = "run " + std::to_string(*index);
  const std::string name = safe_text(join(hosts, "+"));
  return name.empty() ? number : same > 1 ? name + " (" + number + ")" : name;
}

std::string heading_of(const CheckRow& check, const std::vector<RunInfo>& runs) {
  const std::string group = safe_text(check.group), run = run_name(check.run, runs);
  return group.empty() ? run : run.empty() ? group : group + " on " + run;
}

} // namespace

std::string checks_text(const std::vector<CheckRow>& checks, const TextStyle& style,
                        const std::vector<RunInfo>& runs) {
  std::vector<std::string> groups; // in order of appearance
  std::map<std::string, std::string> lines_of_group;
  int id_width = 0;
  for (const CheckRow& check : checks)
    id_width = std::min(32, std::max(id_width, display_width(safe_text(check.id))));
  for (std::size_t i = 0; i < checks.size();) {
    const std::string heading = heading_of(checks[i], runs);
    const auto [found, added] = lines_of_group.emplace(heading, "");
    if (added)
      groups.push_back(heading);
    const std::size_t alike = style.verbose ? 1 : skipped_alike(checks, i);
    CheckRow row = checks[i];
    if (alike > 1)
      row.id = std::to_string(alike) + " checks";
    found->second += check_lines(row, id_width, style);
    i += alike;
  }
  std::string out;
  for (const std::string& group : groups) {
    if (!out.empty())
      out += "\n";
    if (!group.empty())
      out += coloured(group, Colour::bold, style) + "\n";
    out += lines_of_group[group];
  }
  return out;
}

std::string runs_text(const std::vector<RunInfo>& runs, const TextStyle& style) {
  Table table({{"run", Align::right},
               {"hosts"},
               {"started"},
               {"status"},
               {"exit code", Align::right},
               {"PEs", Align::right},
               {"shmemctl"},
               {"command"}});
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunInfo& run = runs[i];
    table.add({std::to_string(i), safe_text(join(run.hosts, ", ")), safe_text(run.started_at),
               to_string(run.status), std::to_string(static_cast<int>(run.exit_code)),
               std::to_string(run.job.pes), safe_text(run.tool_version),
               safe_text(join(run.command, " "))});
  }
  return table.empty() ? "" : table.text(style);
}

} // namespace shmemctl
