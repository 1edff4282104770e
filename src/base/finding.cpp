#include "src/base/finding.h"

#include <algorithm>

namespace shmemctl {

const char* to_string(Severity severity) {
  switch (severity) {
  case Severity::info:
    return "info";
  case Severity::warning:
    return "warning";
  case Severity::error:
    return "error";
  }
  return "error";
}

std::optional<Severity> parse_severity(std::string_view name) {
  for (const Severity severity : {Severity::info, Severity::warning, Severity::error})
    if (name == to_string(severity))
      return severity;
  return std::nullopt;
}

bool has_finding(const Findings& findings, Severity least) {
  return std::any_of(findings.begin(), findings.end(),
                     [least](const Finding& finding) { return finding.severity >= least; });
}

bool has_error(const Findings& findings) {
  return has_finding(findings, Severity::error);
}

} // namespace shmemctl
