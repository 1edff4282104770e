// Measured copies between GPUs as a matrix, in the order of `topo`'s.
#include <algorithm>
#include <fmt/format.h>
#include <map>

#include "reports/json_view.h"
#include "reports/text.h"

namespace shmemctl {

namespace {

/// More GPUs than a node has; a made-up document may name any number.
constexpr std::size_t most_gpus = 64;

std::string cell_of(const ResultRow& row) {
  if (row.status == RowStatus::fail)
    return "WRONG";
  return row.bandwidth_GBps ? fmt::format("{:.1f}", *row.bandwidth_GBps) : "-";
}

/// "GPU10" behind "GPU9".
bool is_before(const std::string& left, const std::string& right) {
  return std::pair(left.size(), left) < std::pair(right.size(), right);
}

} // namespace

bool is_link_row(const ResultRow& row) {
  return row.case_name == "gpu-link";
}

std::string links_text(const std::vector<ResultRow>& results, const TextStyle& style) {
  std::map<std::pair<std::string, std::string>, std::string> cells;
  std::vector<std::string> names;
  for (const ResultRow& row : results) {
    if (!is_link_row(row))
      continue;
    const std::string source = safe_text(view::text(row.params, "source", "?"));
    const std::string target = safe_text(view::text(row.params, "target", "?"));
    for (const std::string& name : {source, target})
      if (std::find(names.begin(), names.end(), name) == names.end() && names.size() < most_gpus)
        names.push_back(name);
    cells[{source, target}] = cell_of(row);
  }
  if (names.empty())
    return "";
  std::sort(names.begin(), names.end(), is_before);
  std::vector<Column> columns{{"copies [GB/s], from"}};
  for (const std::string& name : names)
    columns.push_back({name, Align::right});
  Table table(std::move(columns));
  for (const std::string& source : names) {
    std::vector<std::string> line{source};
    for (const std::string& target : names) {
      const auto cell = cells.find({source, target});
      line.push_back(cell != cells.end() ? cell->second : source == target ? "X" : "-");
    }
    table.add(std::move(line));
  }
  return table.text(style);
}

} // namespace shmemctl
