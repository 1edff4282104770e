// Shared by the tests of the page.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "reports/compare/load.h"
#include "reports/json_view.h"

namespace shmemctl::html {

using nlohmann::json;

inline json find_section(const json& model, const std::string& id) {
  for (const json& section : model.at("sections"))
    if (section.at("id") == id)
      return section;
  return nullptr;
}

inline json find_block(const json& section, const std::string& type) {
  for (const json& block : view::list(section, "blocks"))
    if (block.at("type") == type)
      return block;
  return nullptr;
}

inline json series_named(const json& view, const std::string& name) {
  for (const json& series : view.at("series"))
    if (series.at("name") == name)
      return series.at("points");
  return nullptr;
}

inline ResultRow put_row(int size_bytes, double time_us, double bandwidth_GBps) {
  ResultRow row;
  row.case_name = "put";
  row.params = {{"size_bytes", size_bytes}};
  row.stats = Stats{20, time_us, time_us, time_us, std::nullopt, time_us, time_us, 0.1, 0.1};
  row.unit = "us";
  row.bandwidth_GBps = bandwidth_GBps;
  row.link_fraction = bandwidth_GBps / 50;
  row.limited_by = "mlx5_0";
  return row;
}

inline LoadedReport run_of(const std::string& started_at, double factor = 1,
                           const std::string& command = "bench") {
  Report report;
  report.started_at = started_at;
  report.command = {"shmemctl", command, "--json", started_at};
  report.status = ReportStatus::complete;
  report.hosts = json::array({{{"name", "node7"}}});
  report.results = {put_row(8, 2 * factor, 4), put_row(4096, 4 * factor, 40)};
  return {started_at, report};
}

inline json table_titled(const json& section, const std::string& begin) {
  for (const json& block : view::list(section, "blocks"))
    if (block.at("type") == "table" && view::text(block, "title").starts_with(begin))
      return block.at("rows");
  return nullptr;
}

} // namespace shmemctl::html
