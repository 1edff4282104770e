#include "reports/html/blocks.h"

#include <cmath>

#include "reports/json_view.h"
#include "reports/table.h"
#include "src/base/text.h"

namespace shmemctl::html {

using nlohmann::json;

namespace {

const char* to_string(ColumnKind kind) {
  switch (kind) {
  case ColumnKind::number:
    return "number";
  case ColumnKind::size:
    return "size";
  case ColumnKind::share:
    return "share";
  case ColumnKind::status:
    return "status";
  case ColumnKind::code:
    return "code";
  case ColumnKind::text:
    break;
  }
  return "text";
}

} // namespace

TableBlock::TableBlock(std::string title, std::vector<PageColumn> columns)
    : title_(std::move(title)), columns_(std::move(columns)) {}

void TableBlock::add(std::vector<json> row) {
  if (++n_rows_ > max_table_rows)
    return;
  row.resize(columns_.size());
  rows_.push_back(std::move(row));
}

json TableBlock::block() const {
  json columns = json::array();
  for (const PageColumn& column : columns_)
    columns.push_back({{"name", safe_text(column.name)}, {"kind", to_string(column.kind)}});
  json block{{"type", "table"},
             {"title", safe_text(title_)},
             {"columns", std::move(columns)},
             {"rows", rows_},
             {"folded", folded_}};
  if (n_rows_ > max_table_rows)
    block["note"] = counted(n_rows_ - max_table_rows, "row") + " more: the report has them.";
  return block;
}

json cell(const std::string& text) {
  return safe_text(text);
}

json cell(const std::optional<double>& number) {
  return number && std::isfinite(*number) ? json(*number) : json();
}

json cell(const json& value) {
  // A script's numbers are doubles.
  constexpr double exact = 9007199254740992;
  if (value.is_number() && (value.is_number_float() || std::abs(value.get<double>()) < exact))
    return std::isfinite(value.get<double>()) ? value : json();
  const std::optional<std::string> text = view::scalar(value);
  return text ? cell(*text) : json();
}

json note_block(const std::string& text) {
  return {{"type", "note"}, {"text", safe_text(text)}};
}

json section(const std::string& id, const std::string& title, json blocks) {
  if (blocks.empty())
    return nullptr;
  return {{"id", id}, {"title", title}, {"blocks", std::move(blocks)}};
}

double rounded(double value) {
  if (value == 0 || !std::isfinite(value))
    return value;
  const double exponent = 3 - std::floor(std::log10(std::abs(value)));
  if (std::abs(exponent) > 300)
    return value;
  // A power of ten with a negative exponent is not exact: divide by the positive one instead.
  const double scale = std::pow(10, std::abs(exponent));
  return exponent >= 0 ? std::round(value * scale) / scale : std::round(value / scale) * scale;
}

} // namespace shmemctl::html
