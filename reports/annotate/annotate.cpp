// Findings as annotations of GitHub, GitLab and as Markdown.
#include "reports/annotate/annotate.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>

#include "reports/compare/compare.h"
#include "reports/json_view.h"
#include "reports/table.h"
#include "src/base/hash.h"
#include "src/base/text.h"

namespace shmemctl {

namespace annotate {

namespace {

struct FailedRows {
  std::size_t count = 0;
  const ResultRow* first = nullptr;
};

bool has_failed(const ResultRow& row) {
  return row.status == RowStatus::fail || row.verified == Verified::failed;
}

/// A run that ended normally has a finding for each failure; an aborted one may have rows only.
void add_failed_rows(const LoadedReport& loaded, std::vector<Remark>& remarks) {
  if (has_error(loaded.report.findings))
    return;
  std::map<std::string, FailedRows> cases;
  for (const ResultRow& row : loaded.report.results) {
    if (!has_failed(row))
      continue;
    FailedRows& failed = cases[row.case_name];
    failed.first = failed.first ? failed.first : &row;
    ++failed.count;
  }
  for (const auto& [name, failed] : cases) {
    const std::string params =
        failed.first->params.is_object() ? params_text(failed.first->params) : "";
    remarks.push_back({Severity::error, "row-failed", name,
                       name + ": " + counted(failed.count, "row") + " failed: " +
                           (params.empty() ? "" : params + ": ") + failed.first->reason,
                       "", loaded.path});
  }
}

void errors_first(std::vector<Remark>& remarks) {
  std::stable_sort(remarks.begin(), remarks.end(), [](const Remark& left, const Remark& right) {
    return left.severity > right.severity;
  });
}

} // namespace

std::vector<Remark> remarks_of(const LoadedReport& loaded) {
  const Report& report = loaded.report;
  std::vector<Remark> remarks;
  if (report.status != ReportStatus::complete)
    remarks.push_back({Severity::error, "run-incomplete", "the run",
                       std::string("the report is ") + to_string(report.status) +
                           ": it has only what was done until the run ended",
                       "check the log of the run", loaded.path});
  for (const Finding& finding : report.findings)
    remarks.push_back(
        {finding.severity, finding.id, finding.subject, finding.message, finding.fix, loaded.path});
  add_failed_rows(loaded, remarks);
  errors_first(remarks);
  return remarks;
}

std::vector<Remark> remarks_of(const std::vector<LoadedReport>& reports) {
  std::vector<Remark> remarks;
  for (const LoadedReport& loaded : reports)
    for (Remark& remark : remarks_of(loaded))
      remarks.push_back(std::move(remark));
  errors_first(remarks);
  return remarks;
}

} // namespace annotate

std::optional<AnnotationFormat> parse_annotation_format(std::string_view text) {
  if (text == "github")
    return AnnotationFormat::github;
  if (text == "gitlab")
    return AnnotationFormat::gitlab;
  if (text == "markdown")
    return AnnotationFormat::markdown;
  return std::nullopt;
}

std::string write_annotations(const std::vector<LoadedReport>& reports, AnnotationFormat format) {
  switch (format) {
  case AnnotationFormat::github:
    return annotate::write_github(reports);
  case AnnotationFormat::gitlab:
    return annotate::write_gitlab(reports);
  case AnnotationFormat::markdown:
    return annotate::write_markdown(reports);
  }
  return "";
}

} // namespace shmemctl

namespace shmemctl::annotate {

namespace {

/// GitHub shows this many annotations of a kind per step, and silently drops the rest.
constexpr std::size_t max_shown = 10;

/// Text after the second `::`. Control characters have been removed; the remaining line ends are
/// our own.
std::string data(const std::string& text) {
  std::string out;
  for (const char c : text)
    switch (c) {
    case '%':
      out += "%25";
      break;
    case '\r':
      out += "%0D";
      break;
    case '\n':
      out += "%0A";
      break;
    default:
      out += c;
    }
  return out;
}

/// The value of a property, which ends at a colon or a comma.
std::string property(const std::string& text) {
  std::string out;
  for (const char c : data(text))
    out += c == ':' ? "%3A" : c == ',' ? "%2C" : std::string(1, c);
  return out;
}

const char* command_of(Severity severity) {
  switch (severity) {
  case Severity::error:
    return "error";
  case Severity::warning:
    return "warning";
  case Severity::info:
    return "notice";
  }
  return "notice";
}

std::string line(Severity severity, const std::string& title, const std::string& message) {
  return std::string("::") + command_of(severity) + " title=" + property(title) +
         "::" + data(message) + "\n";
}

std::string line_of(const Remark& remark) {
  const std::string fix = remark.fix.empty() ? "" : "\nfix: " + safe_text(remark.fix);
  return line(remark.severity, safe_text(remark.id) + " (" + safe_text(remark.subject) + ")",
              safe_text(remark.message) + fix);
}

} // namespace

std::string write_github(const std::vector<LoadedReport>& reports) {
  const std::vector<Remark> remarks = remarks_of(reports);
  std::string out;
  for (const Severity severity : {Severity::error, Severity::warning, Severity::info}) {
    std::vector<const Remark*> kind;
    for (const Remark& remark : remarks)
      if (remark.severity == severity)
        kind.push_back(&remark);
    const std::size_t shown = kind.size() > max_shown ? max_shown - 1 : kind.size();
    for (std::size_t i = 0; i < shown; ++i)
      out += line_of(*kind[i]);
    if (shown < kind.size())
      out += line(severity, "more of them",
                  "and " + counted(kind.size() - shown, "more finding") +
                      ": shmemctl report show, or the step's summary, has them");
  }
  return out;
}

namespace {

const char* severity_of(Severity severity) {
  switch (severity) {
  case Severity::error:
    return "critical";
  case Severity::warning:
    return "minor";
  case Severity::info:
    return "info";
  }
  return "info";
}

std::string location_of(const std::string& path) {
  return safe_text(starts_with(path, "./") ? path.substr(2) : path);
}

/// The subject of a remark, without its numbers: the same in the next run. Parts are separated by
/// their lengths.
std::string identity_of(const Remark& remark) {
  std::string identity;
  for (const std::string& part : {location_of(remark.path), remark.id, remark.subject})
    identity += std::to_string(part.size()) + ":" + part;
  return identity;
}

} // namespace

std::string write_gitlab(const std::vector<LoadedReport>& reports) {
  nlohmann::json list = nlohmann::json::array();
  std::map<std::string, int> seen; // GitLab wants each fingerprint once
  for (const Remark& remark : remarks_of(reports)) {
    const std::string identity = identity_of(remark);
    const int ordinal = seen[identity]++;
    const std::string bytes = identity + "#" + std::to_string(ordinal);
    list.push_back(
        {{"description", safe_text(remark.message) +
                             (remark.fix.empty() ? "" : " | fix: " + safe_text(remark.fix))},
         {"check_name", safe_text(remark.id)},
         {"fingerprint",
          fmt::format("{:016x}{:016x}", fnv1a(bytes), fnv1a(bytes, fnv1a("shmemctl")))},
         {"severity", severity_of(remark.severity)},
         {"location", {{"path", location_of(remark.path)}, {"lines", {{"begin", 1}}}}}});
  }
  return to_text(list);
}

namespace {

using nlohmann::json;

/// GitHub refuses a step's summary beyond 1 MiB entirely.
constexpr std::size_t max_bytes = 900'000;
constexpr std::size_t max_lines = 50;
/// Maximum number of characters of a cell.
constexpr std::size_t longest_cell = 500;

/// Text without markup: every character that could be markup, HTML or the start of a link is
/// written as a reference, which CommonMark never interprets as structure.
std::string text(const std::string& words) {
  std::string safe = safe_text(words);
  if (safe.size() > longest_cell) {
    std::size_t end = longest_cell;
    while (end > 0 && (static_cast<unsigned char>(safe[end]) & 0xc0) == 0x80)
      --end;
    safe = safe.substr(0, end) + "...";
  }
  std::string out;
  for (const char c : safe) {
    const bool plain = static_cast<unsigned char>(c) >= 0x80 || (c >= '0' && c <= '9') ||
                       (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == ' ' || c == '-' ||
                       c == ',' || c == '/' || c == '=' || c == '%' || c == '+';
    out += plain ? std::string(1, c)
                 : "&#" + std::to_string(static_cast<int>(static_cast<unsigned char>(c))) + ";";
  }
  return out;
}

std::string code(const std::string& words) {
  return words.empty() ? "" : "<code>" + text(words) + "</code>";
}

class Page {
public:
  void line(const std::string& markup) { out_ += markup + "\n"; }

  /// Rows of a table while there is room; the omitted ones are counted.
  void table(const std::vector<std::string>& header,
             const std::vector<std::vector<std::string>>& rows, const std::string& what) {
    if (rows.empty())
      return;
    row(header);
    row(std::vector<std::string>(header.size(), "---"));
    std::size_t written = 0;
    for (; written < rows.size() && written < max_lines && out_.size() < max_bytes; ++written)
      row(rows[written]);
    if (written < rows.size())
      out_ += "\nand " + counted(rows.size() - written, "more " + what) + "\n";
    out_ += "\n";
  }
  bool full() const { return out_.size() >= max_bytes; }
  std::string take() { return std::move(out_); }

private:
  void row(const std::vector<std::string>& cells) { out_ += "| " + join(cells, " | ") + " |\n"; }

  std::string out_;
};

/// "shmemctl check", "shmemctl report diff": without what follows.
std::string subcommand_of(const Report& report) {
  std::string words = "shmemctl";
  for (std::size_t i = 1; i < report.command.size() && i < 3; ++i) {
    const std::string& word = report.command[i];
    if (i == 2 && report.command[1] != "report")
      break;
    if (!word.empty() && word[0] != '-')
      words += " " + word;
  }
  return words;
}

std::string hosts_of(const Report& report) {
  std::vector<std::string> names;
  for (const RunInfo& run : runs_of(report))
    names.insert(names.end(), run.hosts.begin(), run.hosts.end());
  if (names.empty())
    return "";
  return " on " + (names.size() > 3 ? counted(names.size(), "host") : join(names, ", "));
}

std::string verdict_of(const Report& report, const std::vector<Remark>& remarks) {
  std::map<Severity, std::size_t> counts;
  for (const Remark& remark : remarks)
    ++counts[remark.severity];
  const std::string found =
      counts[Severity::error] > 0 ? counted(counts[Severity::error], "error") : "no error";
  const std::string warned =
      counts[Severity::warning] > 0 ? ", " + counted(counts[Severity::warning], "warning") : "";
  return fmt::format("{}{}; exit code {}", found, warned, static_cast<int>(report.exit_code));
}

const char* label_of(Severity severity) {
  return severity == Severity::error     ? "**error**"
         : severity == Severity::warning ? "warning"
                                         : "info";
}

void add_remarks(const std::vector<Remark>& remarks, Page& page) {
  std::vector<std::vector<std::string>> rows;
  for (const Remark& remark : remarks)
    rows.push_back(
        {label_of(remark.severity), text(remark.id), text(remark.message), code(remark.fix)});
  page.table({"", "finding", "what", "fix"}, rows, "finding");
}

std::string value_cell(const json& row, const char* side) {
  const auto value = view::number(view::member(row, side), "value");
  return value ? text(view::decimal(*value) + " " + view::text(row, "unit")) : "";
}

void add_comparison(const json& comparison, Page& page) {
  std::vector<std::vector<std::string>> rows;
  for (const std::string verdict : {"worse", "missing", "unclear", "better", "new"})
    for (const json& row : view::list(comparison, "rows")) {
      if (view::text(row, "verdict") != verdict)
        continue;
      const auto change = view::number(row, "change");
      rows.push_back({verdict == "worse" ? "**worse**" : verdict, text(view::text(row, "case")),
                      text(row_name(row)), value_cell(row, "base"), value_cell(row, "new"),
                      change ? text(fmt::format("{:+.1f}%", *change * 100)) : "",
                      text(view::text(row, "reason"))});
    }
  page.table({"", "case", "parameters", "before", "now", "change", "why"}, rows, "changed row");
  std::vector<std::string> counts;
  for (const char* verdict : {"worse", "missing", "unclear", "better", "new", "same"})
    if (const auto count = view::number(view::member(comparison, "counts"), verdict))
      counts.push_back(fmt::format("{:.0f} {}", *count, verdict));
  if (!counts.empty())
    page.line("Rows: " + join(counts, ", ") + "\n");
}

void add_thresholds(const json& thresholds, Page& page) {
  std::vector<std::vector<std::string>> rows;
  for (const json& threshold : thresholds) {
    const bool passed = view::member(threshold, "passed") == json(true);
    rows.push_back({passed ? "kept" : "**missed**", code(view::text(threshold, "expression")),
                    text(view::text(threshold, "failed") + " of " + view::text(threshold, "rows")),
                    text(view::text(threshold, "worst"))});
  }
  page.table({"", "threshold", "rows that do not meet it", "worst"}, rows, "threshold");
}

void add_checks(const Report& report, Page& page) {
  std::map<std::string, std::size_t> counts;
  for (const CheckRow& check : report.checks)
    ++counts[check.status];
  std::vector<std::string> parts;
  for (const char* status : {"pass", "warning", "fail", "skipped"})
    if (const auto found = counts.find(status); found != counts.end())
      parts.push_back(std::to_string(found->second) + " " + status);
  if (!parts.empty())
    page.line("Checks: " + join(parts, ", ") + "\n");
}

} // namespace

std::string write_markdown(const std::vector<LoadedReport>& reports) {
  Page page;
  std::size_t reported = 0;
  for (const LoadedReport& loaded : reports) {
    if (page.full())
      break;
    const Report& report = loaded.report;
    const std::vector<Remark> remarks = remarks_of(loaded);
    page.line("### " + text(subcommand_of(report) + hosts_of(report)) + "\n");
    page.line(text(verdict_of(report, remarks)) + "\n");
    add_remarks(remarks, page);
    if (report.comparison.is_object())
      add_comparison(report.comparison, page);
    add_thresholds(report.thresholds, page);
    add_checks(report, page);
    ++reported;
  }
  if (reported < reports.size())
    page.line("and " + counted(reports.size() - reported, "more report"));
  return page.take();
}

} // namespace shmemctl::annotate
