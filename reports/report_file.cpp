#include "reports/report_file.h"

#include <functional>

#include "src/base/input.h"
#include "src/base/log.h"

namespace shmemctl {

namespace {

using nlohmann::json;

/// Number of rows over which the validator's fixed cost is spread.
constexpr std::size_t rows_at_once = 256;
constexpr std::size_t max_violations = 1000;

/// The document's `schema`, before anything else of it is read. Throws Error (usage) if it is not a
/// report.
json schema_of(const std::string& text, const std::string& subject) {
  const json schema = json::parse(json_member_text(text, "schema"), nullptr, false);
  if (!schema.is_discarded())
    require_report_schema({{"schema", schema}}, subject);
  return schema.is_discarded() ? json() : schema;
}

/// Parses a report's text. Valid rows are passed to `take`, several at a time; the document is the
/// rest of the report, with `results` empty.
class ReportText {
public:
  using Take = std::function<void(const json& rows)>;

  ReportText(const std::string& text, const std::string& subject, Take take,
             const std::function<void()>& restart)
      : schema_(schema_of(text, subject)), take_(std::move(take)) {
    document_ = parse_json_items(
        text, subject, "results",
        [&] {
          rows_ = json::array();
          row_violations_.clear();
          first_ = 0;
          restart();
        },
        [&](json&& row) {
          rows_.push_back(std::move(row));
          if (rows_.size() == rows_at_once)
            check();
        });
    check();
    const std::string notice = require_report_schema(document_, subject);
    if (!notice.empty())
      log(LogLevel::warning, "report", subject + ": " + notice);
  }

  const json& document() const { return document_; }
  const std::vector<SchemaViolation>& row_violations() const { return row_violations_; }

private:
  void check() {
    const std::size_t count = rows_.size();
    if (count == 0 || row_violations_.size() >= max_violations)
      return;
    const std::vector<SchemaViolation> found = validate_rows(rows_, first_, schema_);
    row_violations_.insert(row_violations_.end(), found.begin(), found.end());
    if (found.empty())
      take_(rows_);
    first_ += count;
    rows_ = json::array();
  }

  json schema_, document_, rows_ = json::array();
  Take take_;
  std::size_t first_ = 0; ///< index of the first of rows_
  std::vector<SchemaViolation> row_violations_;
};

} // namespace

std::vector<SchemaViolation> validate_report_text(const std::string& text,
                                                  const std::string& subject) {
  const ReportText read(
      text, subject, [](const json&) {}, [] {});
  std::vector<SchemaViolation> violations = validate_report(read.document());
  violations.insert(violations.end(), read.row_violations().begin(), read.row_violations().end());
  return violations;
}

Report parse_report(const std::string& text, const std::string& subject) {
  std::vector<ResultRow> results;
  const ReportText read(
      text, subject,
      [&](const json& rows) {
        for (const json& row : rows)
          results.push_back(row_from_json(row, subject));
      },
      [&] { results.clear(); });
  Report report = report_from_json(read.document(), subject);
  if (!read.row_violations().empty())
    throw breaks_schema(read.row_violations(), subject);
  report.results = std::move(results);
  return report;
}

Report read_report(const std::string& path) {
  return parse_report(read_input(path, max_report_bytes), path);
}

} // namespace shmemctl
