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

/// A run that ended normally has a finding for each failure; an aborted one may have failed rows
/// only.
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

/// Report, id and subject of a remark, without its message, whose numbers differ in the next run.
/// Each part comes after its length.
std::string identity_of(const Remark& remark) {
  std::string identity;
  for (const std::string& part : {location_of(remark.path), remark.id, remark.subject})
    identity += std::to_string(part.size()) + ":" + part;
  return identity;
}

} // namespace

std::string write_gitlab(const std::vector<LoadedReport>& reports) {
  nlohmann::json list = nlohmann::json::array();
  std::map<std::string, int> seen; // GitLab requires distinct fingerprints
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

} // namespace shmemctl::annotate
