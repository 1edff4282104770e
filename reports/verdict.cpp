#include "reports/verdict.h"

#include <algorithm>
#include <ctime>
#include <fmt/format.h>
#include <utility>
#include <vector>

#include "reports/json_view.h"
#include "reports/text.h"
#include "src/base/error.h"
#include "src/base/finding.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

/// Errors with one id differ in their subjects: a few are shown, the others are counted.
constexpr std::size_t max_errors_of_id = 3;

bool is_part(const CheckRow& row) {
  return row.group == verdict_group;
}

/// Seconds since 1970 of "2026-11-21T03:33:00.123Z".
std::optional<double> seconds_of(const std::string& time) {
  std::tm parts{};
  const char* const end = ::strptime(time.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (!end)
    return std::nullopt;
  const std::string fraction =
      "0" + std::string(end, std::find(end, end + std::string(end).size(), 'Z'));
  return static_cast<double>(::timegm(&parts)) + parse_number(fraction).value_or(0);
}

std::size_t count_of(const Findings& findings, Severity severity) {
  return static_cast<std::size_t>(
      std::count_if(findings.begin(), findings.end(),
                    [severity](const Finding& finding) { return finding.severity == severity; }));
}

/// The text, with an ellipsis in place of its end if it is wider than `width`.
std::string shortened(std::string text, int width, const TextStyle& style) {
  if (display_width(text) <= width)
    return text;
  const std::string dots = style.utf8 ? "\xe2\x80\xa6" : "...";
  const int room = std::max(1, width - display_width(dots));
  while (!text.empty() && display_width(text) > room) {
    while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xc0U) == 0x80U)
      text.pop_back();
    if (!text.empty())
      text.pop_back();
  }
  return text + dots;
}

std::string seconds_text(double seconds) {
  return seconds < 1e5 ? fmt::format("{:.1f} s", seconds) : fmt::format("{:.3g} s", seconds);
}

/// Findings of one id and severity, in order of appearance.
struct FindingGroup {
  std::string id;
  Severity severity = Severity::info;
  std::vector<const Finding*> findings;
};

/// Errors and warnings, errors first; also infos, if --fail-on makes them count.
std::vector<FindingGroup> grouped(const Report& report) {
  const Severity least = std::min(Severity::warning, report.fail_on);
  std::vector<FindingGroup> groups;
  for (const Severity severity : {Severity::error, Severity::warning, Severity::info})
    for (const Finding& finding : report.findings) {
      if (finding.severity != severity || severity < least)
        continue;
      auto group = std::find_if(groups.begin(), groups.end(), [&finding](const FindingGroup& each) {
        return each.id == finding.id && each.severity == finding.severity;
      });
      if (group == groups.end()) {
        groups.push_back({finding.id, severity, {}});
        group = groups.end() - 1;
      }
      group->findings.push_back(&finding);
    }
  return groups;
}

std::string group_text(const FindingGroup& group, const TextStyle& style) {
  const bool error = group.severity == Severity::error;
  const bool warning = group.severity == Severity::warning;
  const std::string mark = error ? "[x]" : warning ? "[!]" : "[i]";
  const Colour colour = error ? Colour::red : warning ? Colour::yellow : Colour::blue;
  const std::size_t all = group.findings.size();
  const std::size_t shown = std::min(all, error ? max_errors_of_id : 1);
  const std::string times =
      all > 1 ? (style.utf8 ? " \xc3\x97" : " x") + std::to_string(all) : std::string();
  std::string out;
  for (std::size_t i = 0; i < shown; ++i) {
    const Finding& finding = *group.findings[i];
    const std::string begin = i == 0 ? mark + " " + safe_text(group.id) + times + "  " : "    ";
    const std::string line = wrapped(begin + safe_text(finding.message), style.width, 4);
    out += i == 0 ? coloured(mark, colour, style) + line.substr(mark.size()) + "\n" : line + "\n";
    const bool same_follows = i + 1 < shown && group.findings[i + 1]->fix == finding.fix;
    if (!finding.fix.empty() && !same_follows)
      out += "    fix: " + safe_text(finding.fix) + "\n"; // for copy and paste: never wrapped
  }
  if (error && all > shown)
    out += fmt::format("    and {} more, which --verbose shows\n", all - shown);
  return out;
}

std::string part_line(const CheckRow& row, int id_width, bool timed, const TextStyle& style) {
  const CheckMark mark = check_mark(row.status, style);
  std::string line = " " + safe_text(row.id);
  line += std::string(static_cast<std::size_t>(std::max(0, id_width - display_width(row.id))), ' ');
  if (timed)
    line += fmt::format("  {:>7}", row.time_s ? seconds_text(*row.time_s) : "");
  line += "  " + safe_text(row.reason);
  const int width = style.layout_width();
  return mark.coloured + shortened(line, width - display_width(mark.plain), style) + "\n";
}

std::string parts_text(const std::vector<CheckRow>& checks, const TextStyle& style) {
  int id_width = 0;
  bool timed = false;
  for (const CheckRow& row : checks)
    if (is_part(row)) {
      id_width = std::min(16, std::max(id_width, display_width(row.id)));
      timed = timed || row.time_s;
    }
  std::string out;
  for (const CheckRow& row : checks)
    if (is_part(row))
      out += part_line(row, id_width, timed, style);
  return out;
}

std::string machine_text(const Verdict& verdict) {
  return counted(verdict.gpus, "GPU") + ", " + counted(verdict.rdma_devices, "RDMA device");
}

std::string counts_text(const Verdict& verdict) {
  return counted(verdict.errors, "error") + ", " + counted(verdict.warnings, "warning") +
         (verdict.infos > 0 ? ", " + std::to_string(verdict.infos) + " info" : "") +
         (verdict.failed_on ? std::string(" (--fail-on ") + to_string(*verdict.failed_on) + ")"
                            : "");
}

std::string took_text(const Verdict& verdict) {
  return verdict.seconds ? "; " + seconds_text(*verdict.seconds) : "";
}

/// "PASS: vm, 8 GPUs, 8 RDMA devices; 0 errors, 0 warnings; 8.2 s"
std::string last_line(const Verdict& verdict, const TextStyle& style) {
  const std::string where = (verdict.host.empty() ? "" : safe_text(verdict.host) + ", ");
  const std::string rest = counts_text(verdict) + took_text(verdict);
  std::string word;
  std::string line;
  Colour colour = Colour::green;
  switch (verdict.kind) {
  case Verdict::Kind::pass:
    word = "PASS";
    line = ": " + where + machine_text(verdict) + "; " + rest;
    break;
  case Verdict::Kind::fail:
    word = "FAIL";
    line = ": " + where + machine_text(verdict) + "; " + rest;
    colour = Colour::red;
    break;
  case Verdict::Kind::nothing:
    word = "nothing to check";
    line = ": no GPU, no RDMA device; " +
           (verdict.host.empty() ? "" : safe_text(verdict.host) + "; ") + rest;
    colour = Colour::yellow;
    break;
  case Verdict::Kind::incomplete:
    word = "INCOMPLETE";
    line = ": " + where + "the run ended early; " + rest;
    colour = Colour::yellow;
    break;
  }
  return coloured(word, colour, style) + wrapped(word + line, style.width, 4).substr(word.size()) +
         "\n";
}

/// The file of --json in a command line; "" for none, or stdout.
std::string json_file(const std::vector<std::string>& command) {
  const std::string with_value = "--json=";
  std::string file;
  for (std::size_t i = 0; i < command.size(); ++i)
    if (command[i] == "--json" && i + 1 < command.size())
      file = command[i + 1];
    else if (starts_with(command[i], with_value))
      file = command[i].substr(with_value.size());
  return file == "-" ? "" : file;
}

std::string details_line(const Report& report, const TextStyle& style) {
  const std::string file = json_file(report.command);
  const std::string show = file.empty() ? "shmemctl check --verbose"
                                        : "shmemctl report show --verbose " + safe_text(file);
  return (style.verbose ? "" : "details: " + show + "\n") +
         std::string(style.verbose && !file.empty() ? "report: " + safe_text(file) + "\n" : "");
}

Verdict required_verdict(const Report& report) {
  const std::optional<Verdict> verdict = verdict_of(report);
  if (!verdict)
    throw Error(ExitCode::usage, "report", "", "it is not the report of a single run of check",
                "pass the report of shmemctl check");
  return *verdict;
}

} // namespace

std::optional<Verdict> verdict_of(const Report& report) {
  if (!report.runs.empty() || std::none_of(report.checks.begin(), report.checks.end(), is_part))
    return std::nullopt;
  Verdict verdict;
  for (const CheckRow& row : report.checks)
    if (is_part(row)) {
      verdict.parts_run += row.status != "skipped" ? 1 : 0;
      verdict.parts_failed += row.status == "fail" ? 1 : 0;
    }
  if (report.hosts.is_array() && !report.hosts.empty())
    verdict.host = view::text(report.hosts.front(), "name");
  verdict.gpus = view::list(report.topology, "gpus").size();
  verdict.rdma_devices = view::list(report.topology, "nics").size();
  verdict.errors = count_of(report.findings, Severity::error);
  verdict.warnings = count_of(report.findings, Severity::warning);
  verdict.infos = count_of(report.findings, Severity::info);
  const auto begin = seconds_of(report.started_at);
  const auto end = seconds_of(report.finished_at);
  if (begin && end && *end >= *begin)
    verdict.seconds = *end - *begin;
  const bool nothing =
      std::any_of(report.findings.begin(), report.findings.end(),
                  [](const Finding& finding) { return finding.id == nothing_to_check_id; });
  const bool wrong = verdict.errors > 0 || verdict.parts_failed > 0;
  if (!wrong && has_finding(report.findings, report.fail_on))
    verdict.failed_on = report.fail_on;
  if (wrong || verdict.failed_on || report.exit_code == ExitCode::finding)
    verdict.kind = Verdict::Kind::fail;
  else if (report.status != ReportStatus::complete)
    verdict.kind = Verdict::Kind::incomplete;
  else if (nothing)
    verdict.kind = Verdict::Kind::nothing;
  return verdict;
}

std::string verdict_text(const Report& report, const TextStyle& style) {
  const std::optional<Verdict> verdict = verdict_of(report);
  if (!verdict)
    return "";
  std::string out;
  if (!style.verbose)
    for (const FindingGroup& group : grouped(report))
      out += group_text(group, style);
  if (!out.empty())
    out += "\n";
  return out + parts_text(report.checks, style) + "\n" + last_line(*verdict, style) +
         details_line(report, style);
}

std::string verdicts_text(const std::vector<const Report*>& reports, const TextStyle& style) {
  constexpr std::size_t max_names = 20;
  std::string line;
  for (const auto& [kind, word] : {std::pair{Verdict::Kind::pass, "PASS"},
                                   std::pair{Verdict::Kind::nothing, "nothing to check"},
                                   std::pair{Verdict::Kind::incomplete, "INCOMPLETE"},
                                   std::pair{Verdict::Kind::fail, "FAIL"}}) {
    std::vector<std::string> hosts;
    for (const Report* report : reports) {
      const std::optional<Verdict> verdict = verdict_of(*report);
      if (!verdict)
        return "";
      if (verdict->kind == kind)
        hosts.push_back(verdict->host.empty() ? "?" : safe_text(verdict->host));
    }
    if (hosts.empty())
      continue;
    const std::size_t count = hosts.size();
    hosts.resize(std::min(count, max_names));
    line += (line.empty() ? "" : "; ") + std::string(word) + ": " +
            (kind == Verdict::Kind::pass ? counted(count, "host") : join(hosts, ", ")) +
            (kind != Verdict::Kind::pass && count > max_names
                 ? fmt::format(" and {} more", count - max_names)
                 : "");
  }
  return wrapped(line, style.width, 4) + "\n";
}

int nagios_code(const Report& report) {
  const Verdict verdict = required_verdict(report);
  switch (verdict.kind) {
  case Verdict::Kind::pass:
    return verdict.warnings > 0 ? 1 : 0;
  case Verdict::Kind::fail:
    return 2;
  case Verdict::Kind::nothing:
  case Verdict::Kind::incomplete:
    break;
  }
  return 3;
}

std::string nagios_line(const Report& report) {
  const Verdict verdict = required_verdict(report);
  constexpr const char* words[] = {"OK", "WARNING", "CRITICAL", "UNKNOWN"};
  std::string what = verdict.kind == Verdict::Kind::nothing
                         ? "nothing to check: no GPU, no RDMA device"
                         : machine_text(verdict);
  if (verdict.kind == Verdict::Kind::incomplete)
    what += ", the run ended early";
  if (verdict.failed_on)
    what += std::string(", --fail-on ") + to_string(*verdict.failed_on);
  std::string ids;
  for (const FindingGroup& group : grouped(report))
    ids += (ids.empty() ? "; " : ", ") + group.id +
           (group.findings.size() > 1 ? " x" + std::to_string(group.findings.size()) : "");
  std::string text = (verdict.host.empty() ? "" : verdict.host + ": ") + what + ids;
  std::replace(text.begin(), text.end(), '|', '/'); // begins the performance data
  return fmt::format("SHMEMCTL {} - {} | {}errors={} warnings={} parts_failed={}\n",
                     words[nagios_code(report)], safe_text(text),
                     verdict.seconds ? fmt::format("time={:.1f}s ", *verdict.seconds) : "",
                     verdict.errors, verdict.warnings, verdict.parts_failed);
}

} // namespace shmemctl
