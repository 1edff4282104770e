// What was measured between two, as heat maps.
#include <algorithm>
#include <map>
#include <set>

#include "reports/compare/measure.h"
#include "reports/compare/side.h"
#include "reports/html/blocks.h"
#include "reports/html/heat_map.h"
#include "reports/html/row_series.h"
#include "reports/html/sections.h"
#include "reports/json_view.h"
#include "reports/pair_matrix.h"
#include "reports/table.h"
#include "src/base/text.h"

namespace shmemctl::html {

using nlohmann::json;

namespace {

/// A made-up document may name any number of ends.
constexpr std::size_t most_ends = 4096;

/// A row, and the names of its two.
struct PairRow {
  const ResultRow* row;
  std::string source, target;
};

/// The rows of one case, which differ in their pairs only.
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
  std::map<std::string, std::size_t> places;
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
      const auto [found, is_new] = places.emplace(title, out.size());
      if (is_new)
        out.push_back({title, {}});
      out[found->second].rows.push_back(
          {&row, end_name(row, *names, names->source), end_name(row, *names, names->target)});
    }
  const auto lone = [](const PairRows& pairs) { return pairs.rows.size() < 2; };
  out.erase(std::remove_if(out.begin(), out.end(), lone), out.end());
  return out;
}

/// Ends of the pairs in natural order, with their places.
std::map<std::string, std::size_t> ends_of(const PairRows& pairs, std::vector<std::string>& names) {
  std::set<std::string> seen;
  for (const PairRow& pair : pairs.rows)
    seen.insert({pair.source, pair.target});
  names.assign(seen.begin(), seen.end());
  std::stable_sort(names.begin(), names.end(), natural_less);
  std::map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < names.size(); ++i)
    places.emplace(names[i], i);
  return places;
}

json pair_block(const PairRows& pairs, CellBudget& budget) {
  HeatMap map;
  map.title = pairs.title;
  map.row_name = "from";
  map.column_name = "to";
  map.skip_diagonal = true;
  const std::map<std::string, std::size_t> places = ends_of(pairs, map.rows);
  map.columns = map.rows;
  if (map.rows.size() > most_ends || map.rows.size() * map.rows.size() > budget.cells) {
    ++budget.left_out;
    return nullptr;
  }
  const Matrix empty(map.rows.size(), std::vector<std::optional<double>>(map.rows.size()));
  HeatView bandwidth{"bandwidth", "GB/s", false, empty}, time{"time (median)", "", true, empty};
  for (const auto& [row, source, target] : pairs.rows) {
    const std::size_t from = places.at(source), to = places.at(target);
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
