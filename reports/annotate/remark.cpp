#include "reports/annotate/remark.h"

#include <algorithm>
#include <map>

#include "reports/annotate/annotate.h"
#include "reports/compare/compare.h"
#include "src/base/counted.h"

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

/// A run that ended well says each failure as a finding; one that did not may have rows only.
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
                       "look at the log of the run", loaded.path});
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
