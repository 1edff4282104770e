// Pairs and ranks as heat maps.
#include <algorithm>
#include <fmt/format.h>
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
  if (map.rows.size() > most_ends) {
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

Matrix matrix_of(const json& rows) {
  Matrix matrix;
  for (const json& row : rows) {
    std::vector<std::optional<double>> cells;
    for (const json& value : row)
      cells.push_back(value.is_number() ? std::optional<double>(value.get<double>())
                                        : std::nullopt);
    matrix.push_back(std::move(cells));
  }
  return matrix;
}

bool is_square(const Matrix& matrix, std::size_t side) {
  return matrix.size() == side && std::all_of(matrix.begin(), matrix.end(),
                                              [&](const auto& row) { return row.size() == side; });
}

std::string point_title(const Shown& one, const json& point) {
  return labelled(one.label, parameters_text(view::member(point, "params")));
}

/// Who waits for whom in each operation of a point, and how much of it is that one began later.
json waits_block(const Shown& one, const json& point, CellBudget& budget) {
  HeatMap map;
  map.title = "Waits: " + point_title(one, point);
  map.row_name = "waits";
  map.column_name = "is waited for";
  map.skip_diagonal = true;
  std::vector<HeatView> late;
  for (const json& wait : view::list(point, "waits")) {
    const std::string operation = view::text(wait, "operation", "?");
    for (const auto& [key, suffix] :
         {std::pair{"wait_us", ""}, std::pair{"late_us", ": began later"}}) {
      Matrix values = matrix_of(view::list(wait, key));
      if (values.empty())
        continue;
      if (map.rows.empty())
        for (std::size_t i = 0; i < values.size(); ++i)
          map.rows.push_back("PE " + std::to_string(i));
      if (is_square(values, map.rows.size()))
        (*suffix == '\0' ? map.views : late)
            .push_back({operation + suffix, "us", true, std::move(values)});
    }
    for (const json& verdict : view::list(wait, "verdicts"))
      map.notes.push_back(operation + ": " + view::scalar(verdict).value_or("?"));
  }
  std::move(late.begin(), late.end(), std::back_inserter(map.views));
  map.columns = map.rows;
  return map.rows.size() < 2 ? json() : map.block(budget);
}

json ranks_table(const Shown& one, const json& point) {
  TableBlock table("Ranks: " + point_title(one, point), {{"rank", ColumnKind::number},
                                                         {"tokens", ColumnKind::number},
                                                         {"received rows", ColumnKind::number},
                                                         {"dispatch: to others", ColumnKind::size},
                                                         {"to other nodes", ColumnKind::size},
                                                         {"combine: to others", ColumnKind::size},
                                                         {"to other nodes", ColumnKind::size}});
  const auto at = [](const json& list, std::size_t i) {
    return i < list.size() ? cell(list[i]) : json();
  };
  const json &tokens = view::list(point, "tokens"), &received = view::list(point, "received_rows");
  const json &dispatch = view::member(point, "dispatch"), &combine = view::member(point, "combine");
  for (std::size_t i = 0; i < tokens.size(); ++i)
    table.add({i, at(tokens, i), at(received, i), at(view::list(dispatch, "sent_bytes"), i),
               at(view::list(dispatch, "crossing_bytes"), i),
               at(view::list(combine, "sent_bytes"), i),
               at(view::list(combine, "crossing_bytes"), i)});
  table.fold();
  return table.empty() ? json() : table.block();
}

json nics_table(const Shown& one, const json& point) {
  TableBlock table("NICs: " + point_title(one, point), {{"host"},
                                                        {"NIC", ColumnKind::code},
                                                        {"port", ColumnKind::number},
                                                        {"moved", ColumnKind::size}});
  for (const json& nic : view::list(point, "nics"))
    table.add({cell(view::member(nic, "host")), cell(view::member(nic, "device")),
               cell(view::member(nic, "port")), cell(view::member(nic, "moved_bytes"))});
  return table.empty() ? json() : table.block();
}

} // namespace

json pairs_section(const std::vector<Shown>& shown, CellBudget& budget) {
  json blocks = json::array();
  for (const PairRows& pairs : pair_rows(shown))
    if (json block = pair_block(pairs, budget); !block.is_null())
      blocks.push_back(std::move(block));
  return section("pairs", "Pairs", std::move(blocks));
}

json moe_section(const std::vector<Shown>& shown, CellBudget& budget) {
  json blocks = json::array();
  for (const Shown& one : shown)
    for (const json& point : one.report().moe)
      for (json block :
           {waits_block(one, point, budget), ranks_table(one, point), nics_table(one, point)})
        if (!block.is_null())
          blocks.push_back(std::move(block));
  return section("moe", "MoE: who waits for whom", std::move(blocks));
}

} // namespace shmemctl::html
