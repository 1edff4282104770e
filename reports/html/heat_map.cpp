#include "reports/html/heat_map.h"

#include <algorithm>
#include <cmath>

#include "reports/html/blocks.h"
#include "reports/table.h"
#include "src/base/quantiles.h"

namespace shmemctl::html {

using nlohmann::json;

namespace {

/// A colour's range reaches at least from the median to this multiple (or share) of it.
constexpr double least_contrast = 1.5;

json labels_json(const std::vector<std::string>& labels) {
  json out = json::array();
  for (const std::string& label : labels)
    out.push_back(safe_text(label));
  return out;
}

json values_json(const Matrix& values) {
  json rows = json::array();
  for (const auto& row : values) {
    json cells = json::array();
    for (const std::optional<double>& value : row)
      cells.push_back(value && std::isfinite(*value) ? json(rounded(*value)) : json());
    rows.push_back(std::move(cells));
  }
  return rows;
}

} // namespace

std::optional<HeatRange> heat_range(const HeatView& view, bool skip_diagonal) {
  std::vector<double> all;
  for (std::size_t i = 0; i < view.values.size(); ++i)
    for (std::size_t j = 0; j < view.values[i].size(); ++j)
      if (const auto& value = view.values[i][j];
          value && std::isfinite(*value) && !(skip_diagonal && i == j))
        all.push_back(*value);
  if (all.empty())
    return std::nullopt;
  std::sort(all.begin(), all.end());
  const double middle = quantile(all, 0.5);
  HeatRange range{all.front(), all.back()};
  if (view.less_is_better)
    range.high = std::max(range.high, middle * least_contrast);
  else
    range.low = std::min(range.low, middle / least_contrast);
  return range;
}

json HeatMap::block(CellBudget& budget) const {
  json drawn = json::array();
  for (const HeatView& view : views) {
    const std::optional<HeatRange> range = heat_range(view, skip_diagonal);
    if (!range || !budget.take(rows.size() * columns.size()))
      continue;
    drawn.push_back({{"name", safe_text(view.name)},
                     {"unit", safe_text(view.unit)},
                     {"less_is_better", view.less_is_better},
                     {"low", rounded(range->low)},
                     {"high", rounded(range->high)},
                     {"values", values_json(view.values)}});
  }
  if (drawn.empty())
    return nullptr;
  return {{"type", "heatmap"},
          {"title", safe_text(title)},
          {"row_name", safe_text(row_name)},
          {"column_name", safe_text(column_name)},
          {"rows", labels_json(rows)},
          {"columns", labels_json(columns)},
          {"skip_diagonal", skip_diagonal},
          {"notes", labels_json(notes)},
          {"views", std::move(drawn)}};
}

} // namespace shmemctl::html
