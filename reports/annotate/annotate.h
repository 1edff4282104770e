// Findings as annotations for GitHub, GitLab and as Markdown.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/compare/load.h"

namespace shmemctl::annotate {

struct Remark {
  Severity severity = Severity::info;
  std::string id, subject, message;
  std::string fix;  ///< "" if there is none
  std::string path; ///< path of the report
};

/// The remarks of one report: its findings; if none of them is an error, one for each case with
/// failed rows; and one if the report is incomplete. Errors first.
std::vector<Remark> remarks_of(const LoadedReport& loaded);
/// The remarks of all reports, errors first.
std::vector<Remark> remarks_of(const std::vector<LoadedReport>& reports);

std::string write_github(const std::vector<LoadedReport>& reports);
std::string write_gitlab(const std::vector<LoadedReport>& reports);
std::string write_markdown(const std::vector<LoadedReport>& reports);

} // namespace shmemctl::annotate

namespace shmemctl {

enum class AnnotationFormat {
  github,  ///< workflow commands, for a step's stdout
  gitlab,  ///< the JSON of a code quality report
  markdown ///< a page, for $GITHUB_STEP_SUMMARY
};

/// "github", "gitlab", "markdown"; empty for anything else.
std::optional<AnnotationFormat> parse_annotation_format(std::string_view text);

/// What the reports found, most severe first, each with its fix. Their text is escaped: no string
/// of a report becomes a command, a key, or markup.
std::string write_annotations(const std::vector<LoadedReport>& reports, AnnotationFormat format);
/// One report as Markdown: the summary that write_annotations() writes, the loads of its NICs and
/// its results. Escaped in the same way.
std::string write_markdown_page(const LoadedReport& loaded);

} // namespace shmemctl
