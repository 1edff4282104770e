// Reports in files. Their rows are validated and read one after the other, so that a report of a
// million rows needs little more memory than its text and the result.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "reports/report.h"
#include "reports/validate.h"

namespace shmemctl {

/// A larger report is refused before it is read: 4 GiB, a million rows with all their samples.
inline constexpr std::size_t max_report_bytes = std::size_t{4} << 30;

/// The report in this file; "-" is stdin. Throws Error (usage) as report_from_json() and
/// read_input() do. Keys of a newer minor version are ignored, which is logged.
Report read_report(const std::string& path);
/// Reads a report from a text. @param subject its name, for messages
Report parse_report(const std::string& text, const std::string& subject);

/// One row of `results`, from a document that is valid by the schema. Throws Error (usage) for an
/// integer out of the type's range.
ResultRow row_from_json(const nlohmann::json& object, const std::string& subject);

/// As validate_report(), for a text; stops after about 1000 violations in rows. Throws Error
/// (usage) for text that is not JSON, or not a report of this schema's major version.
std::vector<SchemaViolation> validate_report_text(const std::string& text,
                                                  const std::string& subject);

} // namespace shmemctl
