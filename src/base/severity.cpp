#include "src/base/severity.h"

#include <algorithm>

namespace shmemctl {

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

} // namespace shmemctl
