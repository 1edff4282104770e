#include "reports/hosts_table.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "reports/json_view.h"
#include "src/base/folded_names.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

using nlohmann::json;

constexpr std::size_t max_table_hosts = 50;

enum Position {
  name_column,
  node_column,
  pes_column,
  gpus_column,
  nics_column,
  cpu_column,
  kernel_column,
  driver_column,
  libraries_column,
  n_columns
};
constexpr std::array titles = {"host", "node",   "PEs",    "GPUs",     "NICs",
                               "CPU",  "kernel", "driver", "libraries"};
static_assert(titles.size() == n_columns);

std::vector<int> numbers_of(const json& host, const char* key) {
  std::vector<int> numbers;
  for (const json& number : view::list(host, key))
    if (number.is_number_integer() && number.get<double>() >= 0 && number.get<double>() < 1e9)
      numbers.push_back(number.get<int>());
  return numbers;
}

std::string gpus_of(const json& host) {
  std::map<std::string, std::size_t> models;
  for (const json& gpu : view::list(host, "gpus"))
    ++models[view::text(gpu, "name", "GPU")];
  std::vector<std::string> words;
  for (const auto& [model, count] : models)
    words.push_back(std::to_string(count) + " x " + model);
  return join(words, ", ");
}

/// "mlx5_[0-7] 400G fw 28.39": ports of one rate and firmware together.
std::string ports_of(const json& list, bool with_port) {
  std::vector<std::pair<std::string, std::vector<std::string>>> kinds;
  for (const json& port : list) {
    std::string kind;
    if (const auto rate = view::number(port, "rate_Gbps"))
      kind += " " + view::decimal(*rate) + "G";
    if (const std::string firmware = view::text(port, "firmware"); !firmware.empty())
      kind += " fw " + firmware;
    std::string port_name = view::text(port, "name", "?");
    if (const auto number = view::number(port, "port"); with_port && number && *number != 1)
      port_name += ":" + view::decimal(*number);
    auto found = std::find_if(kinds.begin(), kinds.end(),
                              [&kind](const auto& known) { return known.first == kind; });
    if (found == kinds.end())
      found = kinds.insert(kinds.end(), {kind, {}});
    found->second.push_back(std::move(port_name));
  }
  std::vector<std::string> words;
  for (const auto& [kind, names] : kinds)
    words.push_back(fold_names(names) + kind);
  return join(words, ", ");
}

/// The RDMA ports of a host; if it has none, its interfaces.
std::string nics_of(const json& host) {
  const json& hcas = view::list(host, "hcas");
  return hcas.empty() ? ports_of(view::list(host, "interfaces"), false) : ports_of(hcas, true);
}

/// "2 x AMD EPYC 9654, 2 NUMA nodes, 192 CPUs"
std::string cpu_of(const json& host) {
  const json& cpus = view::member(host, "cpus");
  std::string text = view::text(cpus, "model");
  const auto count = [&cpus](const char* key) {
    const auto number = view::number(cpus, key);
    return number && *number >= 0 && *number < 1e9 ? static_cast<std::size_t>(*number) : 0;
  };
  if (const std::size_t packages = count("packages"); packages > 1 && !text.empty())
    text = std::to_string(packages) + " x " + text;
  for (const auto& [key, word] :
       {std::pair("numa_nodes", "NUMA node"), std::pair("logical", "CPU")})
    if (const std::size_t number = count(key); number > 0)
      text += (text.empty() ? "" : ", ") + counted(number, word);
  return text;
}

bool is_driver(const std::string& what) {
  return what == "nvidia" || what == "mlx5_core" || what == "efa";
}

std::string versions_of(const json& host, bool of_drivers) {
  std::vector<std::string> words;
  if (const json& versions = view::member(host, "versions"); versions.is_object())
    for (const auto& [what, version] : versions.items())
      if (const auto text = view::scalar(version); text && is_driver(what) == of_drivers)
        words.push_back(safe_text(what) + " " + safe_text(*text));
  return join(words, ", ");
}

/// Hosts with equal values.
struct Group {
  std::vector<std::string> names;
  std::vector<int> nodes, pes;
};

using Values = std::array<std::string, n_columns>; ///< "" for name and node; PEs: how many

Values values_of(const json& host, std::size_t n_pes) {
  Values values;
  values[pes_column] = n_pes > 0 ? std::to_string(n_pes) : "";
  values[gpus_column] = gpus_of(host);
  values[nics_column] = nics_of(host);
  values[cpu_column] = cpu_of(host);
  values[kernel_column] = view::text(host, "kernel");
  values[driver_column] = versions_of(host, true);
  values[libraries_column] = versions_of(host, false);
  return values;
}

/// "0-959, 8 each"
std::string pes_text(const Group& group, const std::string& each) {
  if (group.pes.empty() || group.names.size() == 1)
    return fold_numbers(group.pes);
  return fold_numbers(group.pes) + ", " + each + " each";
}

/// The value that more than half of the hosts have; empty if there is no such value.
std::optional<std::string> usual_value(const std::vector<std::pair<Values, Group>>& groups,
                                       std::size_t column, std::size_t hosts) {
  std::map<std::string, std::size_t> count;
  for (const auto& [values, group] : groups)
    if (2 * (count[values[column]] += group.names.size()) > hosts)
      return values[column];
  return std::nullopt;
}

} // namespace

bool HostsTable::any_differs() const {
  return std::any_of(rows.begin(), rows.end(), [](const Row& row) {
    return std::any_of(row.cells.begin(), row.cells.end(),
                       [](const Cell& cell) { return cell.differs; });
  });
}

HostsTable hosts_table(const std::vector<json>& hosts) {
  std::vector<std::pair<Values, Group>> groups;
  std::map<Values, std::size_t> index;
  for (const json& host : hosts) {
    const std::vector<int> own_pes = numbers_of(host, "pes"), nodes = numbers_of(host, "nodes");
    const Values values = values_of(host, own_pes.size());
    const auto found = index.emplace(values, groups.size());
    if (found.second)
      groups.emplace_back(values, Group{});
    Group& group = groups[found.first->second].second;
    group.names.push_back(view::text(host, "name", "?"));
    group.nodes.insert(group.nodes.end(), nodes.begin(), nodes.end());
    group.pes.insert(group.pes.end(), own_pes.begin(), own_pes.end());
  }
  std::vector<HostsTable::Row> rows(groups.size());
  std::array<bool, n_columns> used{};
  for (std::size_t column = 0; column < n_columns; ++column) {
    const bool compared = column != name_column && column != node_column;
    const auto usual = usual_value(groups, column, hosts.size());
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const auto& [values, group] = groups[i];
      HostsTable::Cell cell{values[column], compared && values[column] != usual};
      if (column == name_column)
        cell.text = fold_names(group.names);
      if (column == node_column)
        cell.text = fold_numbers(group.nodes);
      if (column == pes_column)
        cell.text = pes_text(group, values[pes_column]);
      used[column] = used[column] || !cell.text.empty();
      rows[i].cells.push_back(std::move(cell));
      rows[i].hosts = group.names.size();
    }
  }
  HostsTable table;
  table.hosts = hosts.size();
  table.rows = std::move(rows);
  for (std::size_t column = n_columns; column-- > 0;)
    if (!used[column])
      for (HostsTable::Row& row : table.rows)
        row.cells.erase(row.cells.begin() + static_cast<std::ptrdiff_t>(column));
  for (std::size_t column = 0; column < n_columns; ++column)
    if (used[column])
      table.columns.emplace_back(titles[column]);
  return table;
}

namespace {

std::string marked(const HostsTable::Cell& cell) {
  const std::string text = cell.text.empty() ? "-" : cell.text;
  return cell.differs ? text + " *" : text;
}

/// Whether a column has the same value on all hosts and does not identify hosts (name, node, PEs).
bool is_common(const HostsTable& table, std::size_t column) {
  const std::string& title = table.columns[column];
  return title != titles[name_column] && title != titles[node_column] &&
         title != titles[pes_column] &&
         std::none_of(table.rows.begin(), table.rows.end(),
                      [column](const HostsTable::Row& row) { return row.cells[column].differs; });
}

Table shown_table(const HostsTable& table, const std::set<std::size_t>& without, std::size_t rows) {
  std::vector<Column> columns;
  for (std::size_t column = 0; column < table.columns.size(); ++column)
    if (without.count(column) == 0)
      columns.push_back({table.columns[column]});
  Table shown(columns);
  for (std::size_t i = 0; i < rows; ++i) {
    std::vector<std::string> cells;
    for (std::size_t column = 0; column < table.columns.size(); ++column)
      if (without.count(column) == 0)
        cells.push_back(marked(table.rows[i].cells[column]));
    shown.add(std::move(cells));
  }
  return shown;
}

int widest_line(const std::string& text) {
  int widest = 0;
  for (const std::string& line : split(text, '\n'))
    widest = std::max(widest, display_width(line));
  return widest;
}

} // namespace

std::string hosts_text(const json& hosts, const TextStyle& style) {
  if (!hosts.is_array() || hosts.size() < 2)
    return "";
  const HostsTable table = hosts_table(std::vector<json>(hosts.begin(), hosts.end()));
  if (table.columns.size() < 2)
    return ""; // only the column of names
  const std::size_t rows =
      style.verbose ? table.rows.size() : std::min(table.rows.size(), max_table_hosts);
  TextStyle plain = style;
  plain.color = false;
  std::set<std::size_t> without;
  std::string out;
  if (style.width > 0 && widest_line(shown_table(table, {}, rows).text(plain)) > style.width)
    for (std::size_t column = 0; column < table.columns.size(); ++column)
      if (is_common(table, column)) {
        without.insert(column);
        out += wrapped("all hosts: " + table.columns[column] + " " +
                           marked(table.rows.front().cells[column]),
                       style.width, 2) +
               "\n";
      }
  out += shown_table(table, without, rows).text(style);
  if (rows < table.rows.size())
    out += "and " + std::to_string(table.rows.size() - rows) + " more: --verbose\n";
  if (table.any_differs())
    out += "* most hosts have another value, or no value is that of most\n";
  return out;
}

} // namespace shmemctl
