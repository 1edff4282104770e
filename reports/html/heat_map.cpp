// Heat maps of a page.
#include "reports/html/heat_map.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "reports/compare/compare.h"
#include "reports/html/blocks.h"
#include "reports/html/charts.h"
#include "reports/html/sections.h"
#include "reports/json_view.h"
#include "reports/pair_matrix.h"
#include "reports/table.h"
#include "src/base/statistics.h"
#include "src/base/text.h"

namespace shmemctl::html {

using nlohmann::json;

namespace {

/// A colour scale extends at least from the median to this multiple (or share) of it.
constexpr double min_contrast = 1.5;

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
    range.high = std::max(range.high, middle * min_contrast);
  else
    range.low = std::min(range.low, middle / min_contrast);
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

namespace {

/// A hostile document may have any number of ends.
constexpr std::size_t max_ends = 4096;

/// A row of results, and the names of its two ends.
struct PairRow {
  const ResultRow* row;
  std::string source, target;
};

/// The rows of one case, which differ only in their pairs.
struct PairRows {
  std::string title;
  std::vector<PairRow> rows;
};

std::string end_name(const ResultRow& row, const PairNames& names, const char* end) {
  const std::string text = *view::scalar(view::member(row.params, end));
  return starts_with(text, names.kind) ? text : std::string(names.kind) + " " + text;
}

std::vector<PairRows> pair_rows(const std::vector<Shown>& shown) {
  std::vector<PairRows> out;
  std::map<std::string, std::size_t> index_of;
  for (const Shown& one : shown)
    for (const ResultRow& row : one.report().results) {
      const PairNames* const names = pair_names_of(row);
      if (names == nullptr)
        continue;
      json others = json::object();
      for (const auto& [name, value] : row.params.items())
        if (name != names->source && name != names->target && !is_dependent(name))
          others[name] = value;
      std::string title = labelled(one.label, row.case_name + " " + parameters_text(others));
      if (row.run)
        title += " (run " + std::to_string(*row.run) + ")";
      const auto [found, is_new] = index_of.emplace(title, out.size());
      if (is_new)
        out.push_back({title, {}});
      out[found->second].rows.push_back(
          {&row, end_name(row, *names, names->source), end_name(row, *names, names->target)});
    }
  const auto lone = [](const PairRows& pairs) { return pairs.rows.size() < 2; };
  out.erase(std::remove_if(out.begin(), out.end(), lone), out.end());
  return out;
}

/// Ends of the pairs in natural order, with their indices.
std::map<std::string, std::size_t> ends_of(const PairRows& pairs, std::vector<std::string>& names) {
  std::set<std::string> seen;
  for (const PairRow& pair : pairs.rows)
    seen.insert({pair.source, pair.target});
  names.assign(seen.begin(), seen.end());
  std::stable_sort(names.begin(), names.end(), natural_less);
  std::map<std::string, std::size_t> index_of;
  for (std::size_t i = 0; i < names.size(); ++i)
    index_of.emplace(names[i], i);
  return index_of;
}

json pair_block(const PairRows& pairs, CellBudget& budget) {
  HeatMap map;
  map.title = pairs.title;
  map.row_name = "from";
  map.column_name = "to";
  map.skip_diagonal = true;
  const std::map<std::string, std::size_t> index_of = ends_of(pairs, map.rows);
  map.columns = map.rows;
  if (map.rows.size() > max_ends || map.rows.size() * map.rows.size() > budget.cells) {
    ++budget.left_out;
    return nullptr;
  }
  const Matrix empty(map.rows.size(), std::vector<std::optional<double>>(map.rows.size()));
  HeatView bandwidth{"bandwidth", "GB/s", false, empty}, time{"time (median)", "", true, empty};
  for (const auto& [row, source, target] : pairs.rows) {
    const std::size_t from = index_of.at(source), to = index_of.at(target);
    bandwidth.values[from][to] = row->bandwidth_GBps;
    if (row->stats && less_is_better(row->unit).value_or(false)) {
      time.unit = row->unit;
      time.values[from][to] = row->stats->p50;
    }
    if (row->status == RowStatus::fail && map.notes.size() < 20)
      map.notes.push_back(source + " to " + target + " failed: " + row->reason);
  }
  map.views = {std::move(bandwidth), std::move(time)};
  return map.block(budget);
}

} // namespace

json pairs_section(const std::vector<Shown>& shown, CellBudget& budget) {
  json blocks = json::array();
  for (const PairRows& pairs : pair_rows(shown))
    if (json block = pair_block(pairs, budget); !block.is_null())
      blocks.push_back(std::move(block));
  return section("pairs", "Pairs", std::move(blocks));
}

} // namespace shmemctl::html
