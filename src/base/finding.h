// A finding: something noticed about the machine or the configuration, for people and for scripts.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shmemctl {

enum class Severity { info, warning, error };

/// "info", "warning", "error".
const char* to_string(Severity severity);
/// The severity of that name; empty for any other text.
std::optional<Severity> parse_severity(std::string_view name);

/// One finding. `id` is stable kebab-case and never reused; `message` names the devices concerned;
/// `fix` is one line that can be pasted or followed, never empty.
struct Finding {
  std::string id;
  Severity severity = Severity::info;
  std::string subject;
  std::string message;
  std::string fix;

  bool operator==(const Finding&) const = default;
};

using Findings = std::vector<Finding>;

/// True if any finding has at least this severity.
bool has_finding(const Findings& findings, Severity least);
/// True if any finding has severity error: the run's exit code is then 1.
bool has_error(const Findings& findings);

} // namespace shmemctl
