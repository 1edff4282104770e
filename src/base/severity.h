// Severities by name, and findings of at least one.
#pragma once

#include <optional>
#include <string_view>

#include "src/base/finding.h"

namespace shmemctl {

/// The severity of that name; empty for any other text.
std::optional<Severity> parse_severity(std::string_view name);

/// True if any finding has at least this severity.
bool has_finding(const Findings& findings, Severity least);

} // namespace shmemctl
