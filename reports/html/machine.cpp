// Results as a table, and the machine that they were measured on.
#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <utility>

#include "reports/compare/compare.h"
#include "reports/compare/load.h"
#include "reports/hosts_table.h"
#include "reports/html/blocks.h"
#include "reports/html/sections.h"
#include "reports/json_view.h"
#include "reports/networks.h"
#include "reports/report.h"
#include "src/base/text.h"

namespace shmemctl::html {

using nlohmann::json;

namespace {

std::vector<json> result_cells(const Shown& one, const ResultRow& row,
                               const std::vector<std::string>& names) {
  std::vector<json> cells{cell(one.label), row.run ? json(*row.run) : json(), cell(row.case_name)};
  for (const std::string& name : names)
    cells.push_back(cell(view::member(row.params, name.c_str())));
  const Stats stats = row.stats.value_or(Stats{});
  cells.push_back(row.stats ? json(stats.n) : json());
  for (const auto& value : {stats.min, stats.p50, stats.p90, stats.p99, stats.max})
    cells.push_back(cell(value));
  cells.push_back(cell(row.unit));
  for (const auto& value : {row.bandwidth_GBps, row.wire_GBps, row.rate_Mops, row.link_fraction})
    cells.push_back(cell(value));
  cells.push_back(cell(row.limited_by.value_or("")));
  cells.push_back(cell(std::string(to_string(row.verified))));
  cells.push_back(cell(std::string(to_string(row.status))));
  cells.push_back(cell(row.reason));
  cells.push_back(cell(row.path ? to_text(*row.path) : std::string()));
  return cells;
}

json hosts_block(const std::vector<Shown>& shown) {
  std::vector<json> hosts;
  std::set<json> seen;
  for (const Shown& one : shown)
    for (const json& host : one.report().hosts) {
      json own = host; // other reports may number their hosts differently
      own.erase("nodes");
      own.erase("pes");
      if (seen.insert(std::move(own)).second)
        hosts.push_back(host);
    }
  const HostsTable table = hosts_table(hosts);
  if (table.rows.empty())
    return nullptr;
  std::vector<PageColumn> columns{{"hosts", ColumnKind::number}};
  for (const std::string& title : table.columns)
    columns.push_back({title});
  TableBlock block(table.any_differs() ? "Hosts (* most have another value, or no value is that of "
                                         "most)"
                                       : "Hosts",
                   columns);
  for (const HostsTable::Row& row : table.rows) {
    std::vector<json> cells{row.hosts};
    for (const HostsTable::Cell& one : row.cells)
      cells.push_back(one.differs ? json((one.text.empty() ? "-" : one.text) + " *")
                                  : cell(one.text));
    block.add(std::move(cells));
  }
  return block.block();
}

json networks_block(const std::vector<Shown>& shown) {
  TableBlock table("Networks between nodes", {{"where"},
                                              {"run", ColumnKind::number},
                                              {"between"},
                                              {"pairs", ColumnKind::number},
                                              {"transport"},
                                              {"interfaces and NICs"}});
  for (const Shown& one : shown) {
    const std::vector<std::string> names = node_names_of(one.report().hosts);
    for (const NetworkRow& row : one.report().networks)
      table.add({cell(one.label), row.run ? json(*row.run) : json(),
                 cell(between_text(row, row.run ? std::vector<std::string>() : names)), row.pairs,
                 cell(row.transport), cell(links_text(row))});
  }
  return table.empty() ? json() : table.block();
}

json runs_table(const std::vector<Shown>& shown) {
  TableBlock table("Runs", {{"run", ColumnKind::number},
                            {"file", ColumnKind::code},
                            {"hosts"},
                            {"started"},
                            {"finished"},
                            {"status", ColumnKind::status},
                            {"exit code", ColumnKind::number},
                            {"PEs", ColumnKind::number},
                            {"nodes", ColumnKind::number},
                            {"bootstrap"},
                            {"launcher"},
                            {"shmemctl"},
                            {"revision"},
                            {"command", ColumnKind::code}});
  for (const Shown& one : shown) {
    // Only runs of a merged report have numbers, by which its rows refer to them.
    const bool merged = !one.report().runs.empty();
    int number = 0;
    for (const RunInfo& run : runs_of(one.report()))
      table.add({merged ? json(number++) : json(), cell(one.loaded->path),
                 cell(join(run.hosts, ", ")), cell(run.started_at), cell(run.finished_at),
                 cell(std::string(to_string(run.status))), static_cast<int>(run.exit_code),
                 run.job.pes, run.job.nodes, cell(run.job.bootstrap), cell(run.job.launcher),
                 cell(run.tool_version), cell(run.git_revision), cell(join(run.command, " "))});
  }
  return table.block();
}

json settings_table(const std::vector<Shown>& shown) {
  TableBlock table("Build, options and clock", {{"where"}, {"what"}, {"value"}});
  for (const Shown& one : shown) {
    const Report& report = one.report();
    for (const auto& [name, value] : report.tool.build)
      table.add({cell(one.label), cell("build: " + name), cell(value)});
    for (const auto& [name, value] : report.env)
      table.add({cell(one.label), cell("option " + name), cell(value)});
    for (const OptionEntry& option : report.options)
      table.add({cell(one.label), cell("option " + option.name), cell(option.value)});
    if (report.measurement)
      table.add(
          {cell(one.label), cell(std::string("clock")),
           cell(fmt::format("{}, resolution {} ns, a call {} ns", report.measurement->clock,
                            report.measurement->resolution_ns, report.measurement->cost_ns))});
  }
  table.fold();
  return table.empty() ? json() : table.block();
}

json phases_table(const std::vector<Shown>& shown) {
  TableBlock table("Phases of the start", {{"where"},
                                           {"phase"},
                                           {"time [ms]", ColumnKind::number},
                                           {"slowest PE", ColumnKind::number}});
  for (const Shown& one : shown)
    for (const PhaseRow& phase : one.report().phases)
      table.add({cell(one.label), cell(phase.name), phase.time_ms, phase.slowest_pe});
  table.fold();
  return table.empty() ? json() : table.block();
}

json connections_table(const std::vector<Shown>& shown) {
  TableBlock table(
      "Connections",
      {{"transport"}, {"from PE", ColumnKind::number}, {"to PE", ColumnKind::number}, {"path"}});
  for (const Shown& one : shown)
    for (const ConnectionRow& row : one.report().connections)
      table.add({cell(row.transport), row.source, row.target, cell(row.path)});
  table.fold();
  return table.empty() ? json() : table.block();
}

json pinning_table(const std::vector<Shown>& shown) {
  TableBlock table("Where PEs ran", {{"PE", ColumnKind::number},
                                     {"host"},
                                     {"CPUs"},
                                     {"NUMA node", ColumnKind::number},
                                     {"chosen by"}});
  for (const Shown& one : shown)
    if (one.report().measurement)
      for (const PinRow& pin : one.report().measurement->pinning)
        table.add({pin.pe, cell(pin.host), cell(pin.cpus), pin.numa ? json(*pin.numa) : json(),
                   cell(pin.by)});
  table.fold();
  return table.empty() ? json() : table.block();
}

/// Numbers are right-aligned and text is left-aligned: a column with both is text.
ColumnKind parameter_kind(const std::vector<const ResultRow*>& rows, const std::string& name) {
  const bool numbers = std::all_of(rows.begin(), rows.end(), [&](const ResultRow* row) {
    const json& value = view::member(row->params, name.c_str());
    return value.is_null() || value.is_number();
  });
  if (!numbers)
    return ColumnKind::text;
  return ends_with(name, "_bytes") ? ColumnKind::size : ColumnKind::number;
}

} // namespace

json results_section(const std::vector<Shown>& shown) {
  std::vector<const ResultRow*> rows;
  for (const Shown& one : shown)
    for (const ResultRow& row : one.report().results)
      rows.push_back(&row);
  const std::vector<std::string> names = parameter_names(rows);
  std::vector<PageColumn> columns{
      {"where"}, {"run", ColumnKind::number}, {"case", ColumnKind::code}};
  for (const std::string& name : names)
    columns.push_back({name, parameter_kind(rows, name)});
  columns.push_back({"n", ColumnKind::number});
  for (const char* name : {"min", "p50", "p90", "p99", "max"})
    columns.push_back({name, ColumnKind::number});
  columns.push_back({"unit"});
  for (const char* name : {"GB/s", "wire GB/s", "M op/s"})
    columns.push_back({name, ColumnKind::number});
  columns.push_back({"of limit", ColumnKind::share});
  columns.push_back({"limited by"});
  columns.push_back({"verified", ColumnKind::status});
  columns.push_back({"status", ColumnKind::status});
  columns.push_back({"reason"});
  columns.push_back({"path"});
  TableBlock table("All rows", columns);
  for (const Shown& one : shown)
    for (const ResultRow& row : one.report().results)
      table.add(result_cells(one, row, names));
  return table.empty() ? json() : section("results", "Results", json::array({table.block()}));
}

json machine_section(const std::vector<Shown>& shown) {
  json blocks = json::array();
  for (json block :
       {hosts_block(shown), networks_block(shown), runs_table(shown), phases_table(shown),
        pinning_table(shown), connections_table(shown), settings_table(shown)})
    if (!block.is_null())
      blocks.push_back(std::move(block));
  return section("machine", "Machine and software", std::move(blocks));
}

} // namespace shmemctl::html
