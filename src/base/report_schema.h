// Name and version of the report's schema, with which readers of reports check compatibility.
#pragma once

#include <compare>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace shmemctl {

inline constexpr const char* report_schema_name = "shmemctl.report";
inline constexpr const char* report_schema_version = "1.1.0";

/// Semantic version of a schema.
struct SchemaVersion {
  int major = 0, minor = 0, patch = 0;
  auto operator<=>(const SchemaVersion&) const = default;
};
/// Parses "1.1.0"; empty for anything else.
std::optional<SchemaVersion> parse_schema_version(std::string_view text);

/// Checks `schema.name` and `schema.version` only. Throws Error (usage) for a document that is not
/// a report, or has another major version ("schema 2.0.0 is newer than this tool's 1.1.0").
/// @return "" or, for a newer minor version, one line that says that unknown keys are ignored
std::string require_report_schema(const nlohmann::json& document, const std::string& subject);

} // namespace shmemctl
