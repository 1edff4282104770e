// Findings and regressions where CI systems show them: beside a change, or on a job's page.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/compare/load.h"

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
