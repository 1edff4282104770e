// Measurements and counters as tables; the columns follow the independent variables.
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

#include "reports/json_view.h"
#include "reports/port_names.h"
#include "reports/row_parameters.h"
#include "reports/text.h"
#include "src/base/counted.h"
#include "src/base/text.h"
#include "src/base/units.h"

namespace shmemctl {

namespace {

using nlohmann::json;

std::string parameter(const ResultRow& row, const std::string& name) {
  const json& value = view::member(row.params, name.c_str());
  if (name == "size_bytes" && value.is_number_integer() && value.get<std::int64_t>() >= 0)
    return format_size_bytes(value.get<std::uint64_t>());
  const std::optional<std::string> text = view::scalar(value);
  return text ? safe_text(*text) : "-";
}

std::string optional_number(const std::optional<double>& value) {
  return value ? view::decimal(*value) : "-";
}

std::string link_cell(const ResultRow& row) {
  if (!row.link_fraction)
    return "-";
  std::string cell = fmt::format("{:.1f}%", *row.link_fraction * 100);
  if (row.limited_by)
    cell += " of " + safe_text(*row.limited_by);
  return row.limit_note.empty() ? cell : cell + " (above it)";
}

std::string verdict(const ResultRow& row) {
  std::string out = to_string(row.verified);
  if (row.status != RowStatus::pass)
    out = std::string(to_string(row.status)) + ", " + out;
  return row.reason.empty() ? out : out + ": " + safe_text(row.reason);
}

} // namespace

namespace {

/// Rows that are printed unless --verbose asks for all.
constexpr std::size_t most_rows = 1000;

using Rows = std::vector<const ResultRow*>;

bool has_failed(const ResultRow& row) {
  return row.status == RowStatus::fail || row.verified == Verified::failed;
}

/// The rows that are printed, in their order: failed ones before others if there are too many.
Rows rows_to_print(const std::vector<ResultRow>& all, const TextStyle& style,
                   std::size_t& left_out) {
  Rows rows;
  std::size_t failed = 0;
  for (const ResultRow& row : all)
    if (style.verbose || !is_link_row(row)) {
      rows.push_back(&row);
      failed += has_failed(row) ? 1 : 0;
    }
  left_out = 0;
  if (style.verbose || rows.size() <= most_rows)
    return rows;
  std::size_t room_for_failed = std::min(failed, most_rows);
  std::size_t room_for_others = most_rows - room_for_failed;
  Rows printed;
  for (const ResultRow* row : rows) {
    std::size_t& room = has_failed(*row) ? room_for_failed : room_for_others;
    if (room == 0)
      continue;
    --room;
    printed.push_back(row);
  }
  left_out = rows.size() - printed.size();
  return printed;
}

/// Which columns the rows need.
struct Layout {
  explicit Layout(const Rows& rows) : names(parameter_names(rows)), unit(rows.front()->unit) {
    for (const ResultRow* row : rows) {
      one_unit = one_unit && row->unit == unit;
      merged = merged || row->run;
      rates = rates || row->rate_Mops;
      wires = wires || row->wire_GBps;
    }
  }

  std::vector<Column> columns() const {
    std::vector<Column> columns;
    if (merged)
      columns.push_back({"run", Align::right});
    columns.push_back({"case"});
    for (const std::string& name : names)
      columns.push_back({name == "size_bytes" ? "size" : safe_text(name), Align::right});
    const std::string suffix = one_unit && !unit.empty() ? " [" + safe_text(unit) + "]" : "";
    for (const char* header : {"min", "p50", "p99", "max"})
      columns.push_back({header + suffix, Align::right});
    if (!one_unit)
      columns.push_back({"unit"});
    if (rates)
      columns.push_back({"Mop/s", Align::right});
    columns.push_back({"GB/s", Align::right});
    if (wires)
      columns.push_back({"GB/s wire", Align::right});
    columns.push_back({"of link", Align::right});
    columns.push_back({"verified"});
    return columns;
  }

  std::vector<std::string> cells(const ResultRow& row) const {
    std::vector<std::string> cells;
    if (merged)
      cells.push_back(row.run ? std::to_string(*row.run) : "-");
    cells.push_back(safe_text(row.case_name));
    for (const std::string& name : names)
      cells.push_back(parameter(row, name));
    const Stats stats = row.stats.value_or(Stats{});
    for (const auto& value : {stats.min, stats.p50, stats.p99, stats.max})
      cells.push_back(optional_number(value));
    if (!one_unit)
      cells.push_back(safe_text(row.unit));
    if (rates)
      cells.push_back(optional_number(row.rate_Mops));
    cells.push_back(optional_number(row.bandwidth_GBps));
    if (wires)
      cells.push_back(optional_number(row.wire_GBps));
    cells.push_back(link_cell(row));
    cells.push_back(verdict(row));
    return cells;
  }

  std::vector<std::string> names; ///< of parameters
  std::string unit;
  bool one_unit = true, merged = false, rates = false, wires = false;
};

/// Texts with the cases whose rows have them, both in order of appearance.
using CasesOf = std::vector<std::pair<std::string, std::vector<std::string>>>;

/// @param text_of of a row; "" is none
template <class TextOf>
CasesOf cases_of(const Rows& rows, const TextOf& text_of) {
  CasesOf all;
  for (const ResultRow* row : rows) {
    const std::string text = text_of(*row);
    if (text.empty())
      continue;
    auto at = std::find_if(all.begin(), all.end(),
                           [&text](const auto& known) { return known.first == text; });
    if (at == all.end())
      at = all.insert(at, {text, {}});
    if (std::find(at->second.begin(), at->second.end(), row->case_name) == at->second.end())
      at->second.push_back(row->case_name);
  }
  return all;
}

/// A line for each reason that rows give for having no share of a link, and for one above it.
std::string limits_text(const Rows& rows) {
  std::string out;
  for (const auto& [reason, cases] : cases_of(rows, [](const ResultRow& row) {
         return row.link_fraction ? row.limit_note : row.limit_reason;
       }))
    out += safe_text(join(cases, ", ") + ": " + reason) + "\n";
  return out;
}

/// Who sends to whom over what, above the table: a line for each path, or, of many pairs, for each
/// way that carries some of them.
std::string paths_text(const Rows& rows) {
  constexpr std::size_t most_lines = 8;
  CasesOf paths = cases_of(
      rows, [](const ResultRow& row) { return row.path ? to_text(*row.path) : std::string(); });
  if (paths.size() > most_lines)
    paths = cases_of(rows, [](const ResultRow& row) {
      return row.path ? to_text(RowPath{{}, {}, row.path->transports, row.path->nics})
                      : std::string();
    });
  std::string out;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (i == most_lines) {
      out += "... and " + counted(paths.size() - i, "more path") + "\n";
      break;
    }
    out += safe_text(join(paths[i].second, ", ") + ": " + paths[i].first) + "\n";
  }
  return out;
}

} // namespace

std::string results_text(const std::vector<ResultRow>& all, const TextStyle& style) {
  std::size_t left_out = 0;
  const Rows rows = rows_to_print(all, style, left_out);
  if (rows.empty())
    return "";
  const Layout layout(rows);
  Table table(layout.columns());
  for (const ResultRow* row : rows)
    table.add(layout.cells(*row));
  return paths_text(rows) + table.text(style) +
         (left_out > 0 ? "... and " + counted(left_out, "more row") +
                             ": --verbose has all, and so has report csv\n"
                       : "") +
         limits_text(rows);
}

std::string phases_text(const std::vector<PhaseRow>& phases, const TextStyle& style) {
  Table table({{"phase"}, {"time [ms]", Align::right}, {"slowest"}});
  for (const PhaseRow& phase : phases)
    table.add({safe_text(phase.name), fmt::format("{:.3f}", phase.time_ms),
               "PE " + std::to_string(phase.slowest_pe)});
  return table.empty() ? "" : table.text(style);
}

std::string counters_text(const Report& report, const TextStyle& style) {
  PortNames names;
  names.learn(report.hotspots);
  Table table({{"host"}, {"NIC"}, {"counter"}, {"change", Align::right}});
  for (const NicCounter& counter : report.nic_counters) {
    if (counter.delta && *counter.delta == 0 && !style.verbose)
      continue;
    table.add({safe_text(counter.host),
               safe_text(names.name(counter.host, counter.device, std::to_string(counter.port))),
               safe_text(counter.counter), counter.delta ? std::to_string(*counter.delta) : "?"});
  }
  return table.empty() ? "" : table.text(style);
}

} // namespace shmemctl
