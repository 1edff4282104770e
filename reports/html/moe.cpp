// MoE: wait matrix, what each rank, link and NIC moved, and the settings.
#include <algorithm>
#include <iterator>
#include <map>

#include "reports/html/blocks.h"
#include "reports/html/charts.h"
#include "reports/html/heat_map.h"
#include "reports/html/sections.h"
#include "reports/json_view.h"
#include "reports/table.h"
#include "src/base/text.h"

namespace shmemctl::html {

using nlohmann::json;

namespace {

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

/// Which ranks wait for which in each operation of a point, and how much of that is due to a late
/// start.
json waits_block(const json& point, CellBudget& budget) {
  HeatMap map;
  map.title = "Waits";
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

std::string numbers_text(const json& list) {
  std::vector<std::string> numbers;
  for (const json& number : list)
    numbers.push_back(view::scalar(number).value_or("?"));
  return join(numbers, ", ");
}

json ranks_table(const json& point) {
  TableBlock table("Ranks", {{"rank", ColumnKind::number},
                             {"tokens", ColumnKind::number},
                             {"received rows", ColumnKind::number},
                             {"dispatch: to others", ColumnKind::size},
                             {"to other nodes", ColumnKind::size},
                             {"combine: to others", ColumnKind::size},
                             {"to other nodes", ColumnKind::size},
                             {"masked ranks"}});
  const auto at = [](const json& list, std::size_t i) {
    return i < list.size() ? cell(list[i]) : json();
  };
  const json &tokens = view::list(point, "tokens"), &received = view::list(point, "received_rows");
  const json &dispatch = view::member(point, "dispatch"), &combine = view::member(point, "combine");
  const json& masked = view::list(point, "masked");
  for (std::size_t i = 0; i < tokens.size(); ++i)
    table.add({i, at(tokens, i), at(received, i), at(view::list(dispatch, "sent_bytes"), i),
               at(view::list(dispatch, "crossing_bytes"), i),
               at(view::list(combine, "sent_bytes"), i),
               at(view::list(combine, "crossing_bytes"), i),
               i < masked.size() ? cell(numbers_text(masked[i])) : json()});
  table.fold();
  return table.empty() ? json() : table.block();
}

json nics_table(const json& point) {
  TableBlock table("NICs", {{"host"},
                            {"NIC", ColumnKind::code},
                            {"port", ColumnKind::number},
                            {"moved", ColumnKind::size}});
  for (const json& nic : view::list(point, "nics"))
    table.add({cell(view::member(nic, "host")), cell(view::member(nic, "device")),
               cell(view::member(nic, "port")), cell(view::member(nic, "moved_bytes"))});
  return table.empty() ? json() : table.block();
}

/// Bytes per call.
json links_table(const json& point) {
  TableBlock table("Links of GPUs", {{"GPU", ColumnKind::code},
                                     {"ranks"},
                                     {"links"},
                                     {"limit [GB/s]", ColumnKind::number},
                                     {"limit is"},
                                     {"dispatch: out", ColumnKind::size},
                                     {"in", ColumnKind::size},
                                     {"combine: out", ColumnKind::size},
                                     {"in", ColumnKind::size}});
  for (const json& link : view::list(point, "links")) {
    const json &dispatch = view::member(link, "dispatch"), &combine = view::member(link, "combine");
    const json& reason = view::member(link, "unmeasured_reason");
    table.add({cell(view::member(link, "gpu")), cell(numbers_text(view::list(link, "ranks"))),
               cell(view::member(link, "name")), cell(view::member(link, "rate_GBps")),
               reason.is_string() ? cell("not measured: " + reason.get<std::string>())
                                  : cell(view::member(link, "basis")),
               cell(view::member(dispatch, "out_bytes")), cell(view::member(dispatch, "in_bytes")),
               cell(view::member(combine, "out_bytes")), cell(view::member(combine, "in_bytes"))});
  }
  return table.empty() ? json() : table.block();
}

/// Measured and expected traffic. The expected rows are those of the same GPU in "links", whose
/// items are of one host.
json nvlinks_table(const json& point) {
  TableBlock table("NVLink counters, over all calls",
                   {{"host"},
                    {"GPU", ColumnKind::code},
                    {"counted: out", ColumnKind::size},
                    {"in", ColumnKind::size},
                    {"rows by the routing: out", ColumnKind::size},
                    {"in", ColumnKind::size},
                    {"not counted"}});
  std::map<std::string, const json*> rows_of;
  for (const json& link : view::list(point, "links"))
    rows_of.emplace(view::text(link, "gpu"), &view::member(link, "all_calls"));
  for (const json& use : view::list(point, "nvlinks")) {
    const auto found = rows_of.find(view::text(use, "gpu"));
    const json rows = found == rows_of.end() ? json() : *found->second;
    std::string why = view::text(use, "out_bytes_reason");
    if (why.empty())
      why = view::text(use, "in_bytes_reason");
    table.add({cell(view::member(use, "host")), cell(view::member(use, "gpu")),
               cell(view::member(use, "out_bytes")), cell(view::member(use, "in_bytes")),
               cell(view::member(rows, "out_bytes")), cell(view::member(rows, "in_bytes")),
               cell(why)});
  }
  return table.empty() ? json() : table.block();
}

/// "sms=24 warps=7"; empty without settings.
json settings_cell(const json& settings) {
  return settings.is_object() ? cell(parameters_text(settings)) : json();
}

json conditions_table(const json& point) {
  TableBlock table("How it ran", {{"what"}, {"value"}});
  const json& settings = view::member(point, "settings");
  const auto add = [&table](const char* what, json value) {
    if (!value.is_null())
      table.add({cell(std::string(what)), std::move(value)});
  };
  add("dispatch ran with", settings_cell(view::member(settings, "dispatch")));
  add("combine ran with", settings_cell(view::member(settings, "combine")));
  add("a time spans", cell(view::member(point, "window")));
  add("caches before a call", cell(view::member(point, "caches")));
  add("hash of the routing", cell(view::member(point, "routing_hash")));
  add("seed", cell(view::member(point, "seed")));
  if (const json& calls = view::member(point, "calls"); calls.is_object())
    add("dispatches and combines, all in all",
        cell(view::scalar(view::member(calls, "dispatches")).value_or("?") + ", " +
             view::scalar(view::member(calls, "combines")).value_or("?")));
  add("iterations verified bit by bit", cell(view::member(point, "verified_iterations")));
  table.fold();
  return table.block();
}

json tuned_table(const json& point) {
  TableBlock table("What tuning tried", {{"direction"},
                                         {"settings"},
                                         {"median [us]", ColumnKind::number},
                                         {"spread (MAD) [us]", ColumnKind::number},
                                         {"calls", ColumnKind::number},
                                         {"verdict"}});
  for (const json& tuned : view::list(point, "tuned")) {
    const json& attempts = view::list(tuned, "attempts");
    for (std::size_t i = 0; i < attempts.size(); ++i) {
      const json& attempt = attempts[i];
      const json& wrong = view::member(attempt, "wrong");
      std::vector<std::string> verdict;
      if (view::member(tuned, "chosen") == i)
        verdict.emplace_back("chosen");
      if (view::member(attempt, "own_choice") == true)
        verdict.emplace_back("the default");
      if (wrong.is_string())
        verdict.push_back("wrong: " + wrong.get<std::string>());
      table.add({cell(view::member(tuned, "direction")),
                 settings_cell(view::member(attempt, "settings")),
                 cell(view::member(attempt, "p50_us")), cell(view::member(attempt, "mad_us")),
                 cell(view::member(attempt, "calls")), cell(join(verdict, ", "))});
    }
  }
  table.fold();
  return table.empty() ? json() : table.block();
}

json memory_table(const json& point) {
  TableBlock table("Memory of a rank", {{"what"}, {"formula"}, {"bytes", ColumnKind::size}});
  for (const json& use : view::list(point, "memory"))
    table.add({cell(view::member(use, "what")), cell(view::member(use, "formula")),
               cell(view::member(use, "size_bytes"))});
  table.fold();
  return table.empty() ? json() : table.block();
}

} // namespace

json moe_section(const std::vector<Shown>& shown, CellBudget& budget) {
  json blocks = json::array();
  for (const Shown& one : shown)
    for (const json& point : one.report().moe) {
      blocks.push_back(note_block(point_title(one, point)));
      for (json block :
           {waits_block(point, budget), links_table(point), nvlinks_table(point), nics_table(point),
            ranks_table(point), conditions_table(point), tuned_table(point), memory_table(point)})
        if (!block.is_null())
          blocks.push_back(std::move(block));
    }
  return section("moe", "MoE: wait matrix", std::move(blocks));
}

} // namespace shmemctl::html
