// Findings as annotations of GitHub, GitLab and as Markdown.
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
  std::string path; ///< of the report
};

/// Of one report: its findings, its rows that failed without a finding that says so, and that it is
/// not complete. Errors first.
std::vector<Remark> remarks_of(const LoadedReport& loaded);
/// Of all of them, errors first.
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

/// "github", "gitlab", "markdown"; nothing for anything else.
std::optional<AnnotationFormat> parse_annotation_format(std::string_view text);

/// What the reports found, worst first, each with what to do about it. Their text is made harmless:
/// no string of a report makes a command, a key, or markup.
std::string write_annotations(const std::vector<LoadedReport>& reports, AnnotationFormat format);

} // namespace shmemctl
