// Validates a document against the report's schema.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "src/base/error.h"

namespace shmemctl {

/// One violation of the schema in a document.
struct SchemaViolation {
  std::string pointer; ///< JSON pointer (RFC 6901): "/results/3/stats/n"; "" is the whole document
  std::string message; ///< one line
};

/// The JSON Schema (2020-12) that is embedded in this binary.
std::string report_schema_text();

/// All violations, in document order if the validator gives one; empty if the document is a report.
/// A newer minor version may have keys that this one does not know; a newer major version is one
/// violation. Never throws for any document.
std::vector<SchemaViolation> validate_report(const nlohmann::json& document);
/// As validate_report(), for some rows of `results` of a report with this `schema` member.
/// @param first the index of the first of them, for the pointers
std::vector<SchemaViolation> validate_rows(nlohmann::json rows, std::size_t first,
                                           const nlohmann::json& schema);

/// The error of a report with these violations; at least one.
Error breaks_schema(const std::vector<SchemaViolation>& violations, const std::string& subject);

} // namespace shmemctl
