// The hosts of a report side by side: hosts with equal values share a row, what differs is marked.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reports/table.h"

namespace shmemctl {

/// Every text in it is safe to print.
struct HostsTable {
  struct Cell {
    std::string text;
    bool differs = false; ///< most hosts have another value, or no value has a majority
  };
  struct Row {
    std::size_t hosts = 0;
    std::vector<Cell> cells; ///< by column
  };

  std::vector<std::string> columns; ///< columns for which some host has a value
  std::vector<Row> rows;            ///< in the order of their first hosts
  std::size_t hosts = 0;

  bool any_differs() const;
};

/// Hosts are in one row if all cells but their names and the numbers of their nodes and PEs are
/// equal: "node[001-120]".
/// @param hosts `hosts` of reports
HostsTable hosts_table(const std::vector<nlohmann::json>& hosts);

/// The table of a report with several hosts; "" for any other report. If it is wider than the
/// style's width, values that all hosts have in common are printed above it. Shows the first 50
/// rows, with `verbose` all.
std::string hosts_text(const nlohmann::json& hosts, const TextStyle& style);

} // namespace shmemctl
