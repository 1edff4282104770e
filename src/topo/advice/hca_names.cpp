#include "src/topo/advice/hca_names.h"

#include <algorithm>
#include <map>

#include "src/base/text.h"
#include "src/topo/advice/env_lines.h"
#include "src/topo/mapping/ports.h"

namespace shmemctl {

namespace {

/// More rows than this say nothing more about an order.
constexpr std::size_t max_written_rows = 256;
constexpr int max_sane_count = 64;

std::optional<int> find_nic(const Node& node, const std::string& name, bool rdma) {
  for (std::size_t i = 0; i < node.nics.size(); ++i) {
    const bool has_rdma = node.nics[i].rdma.value.value_or(true);
    if (node.nics[i].name == name && has_rdma == rdma)
      return static_cast<int>(i);
  }
  return std::nullopt;
}

std::vector<int> ports_of(const Node& node, int nic) {
  std::vector<int> ports;
  for (const NicPort& port : node.nics[static_cast<std::size_t>(nic)].ports)
    ports.push_back(port.number);
  return ports.empty() ? std::vector<int>{1} : ports;
}

/// -1 stands for every port. Of several ports none is more likely meant than another.
std::optional<int> meant_port(const Node& node, int nic, int written) {
  if (written <= 0)
    return -1;
  const std::vector<int> ports = ports_of(node, nic);
  if (std::find(ports.begin(), ports.end(), written) != ports.end())
    return written;
  return ports.size() == 1 ? std::optional(ports[0]) : std::nullopt;
}

std::string_view last_number(std::string_view name) {
  const auto is_digit = [](char letter) { return letter >= '0' && letter <= '9'; };
  while (!name.empty() && !is_digit(name.back()))
    name.remove_suffix(1);
  std::size_t begin = name.size();
  while (begin > 0 && is_digit(name[begin - 1]))
    --begin;
  return name.substr(begin);
}

} // namespace

std::optional<ListSource> list_source(const Mapping& mapping) {
  const NvshmemSettings& settings = mapping.request.nvshmem;
  const bool effective = !mapping.table.list_name.empty();
  const bool pe_mapping = effective ? mapping.table.list_name == "HCA_PE_MAPPING"
                                    : settings.hca_pe_mapping && !mapping.table.pe_mapping_ignored;
  const std::optional<std::string>& text = pe_mapping ? settings.hca_pe_mapping : settings.hca_list;
  if (!text)
    return std::nullopt;
  return ListSource{pe_mapping ? "NVSHMEM_HCA_PE_MAPPING" : "NVSHMEM_HCA_LIST", *text, pe_mapping};
}

std::optional<int> find_hca(const Node& node, const std::string& name) {
  return find_nic(node, name, true);
}

std::optional<int> find_plain_nic(const Node& node, const std::string& name) {
  return find_nic(node, name, false);
}

std::optional<int> find_hca_of_netdev(const Node& node, const std::string& name) {
  for (std::size_t i = 0; i < node.nics.size(); ++i)
    for (const NicPort& port : node.nics[i].ports)
      if (port.netdev && *port.netdev == name && node.nics[i].rdma.value.value_or(true))
        return static_cast<int>(i);
  return std::nullopt;
}

std::optional<int> nearest_hca(const Node& node, const std::string& name) {
  std::string_view word = trim(name);
  while (starts_with(word, "^"))
    word.remove_prefix(1);
  const std::string bare(word);
  if (const std::optional<int> exact = find_hca(node, bare))
    return exact;
  if (const std::optional<int> behind = find_hca_of_netdev(node, bare))
    return behind;
  std::vector<std::string> names;
  for (const Nic& nic : node.nics)
    if (nic.rdma.value.value_or(true))
      names.push_back(nic.name);
  const std::optional<std::string> near = nearest_spelling(bare, names);
  return near ? find_hca(node, *near) : std::nullopt;
}

std::optional<int> meant_hca(const Node& node, const std::string& name) {
  const std::optional<int> near = nearest_hca(node, name);
  if (!near || find_hca_of_netdev(node, name) == near)
    return near;
  const std::string& found = node.nics[static_cast<std::size_t>(*near)].name;
  return last_number(found) == last_number(name) ? near : std::nullopt;
}

bool has_port(const Node& node, int nic, int port) {
  const std::vector<int> ports = ports_of(node, nic);
  return std::find(ports.begin(), ports.end(), port) != ports.end();
}

std::string corrected_list(const Node& node, const Mapping& mapping) {
  const std::optional<ListSource> source = list_source(mapping);
  if (!source)
    return "";
  std::map<std::pair<int, int>, int> counts; // NIC and port (-1: every port) -> count
  for (const HcaListEntry& entry : mapping.table.list.entries) {
    const std::optional<int> nic = meant_hca(node, entry.name);
    const std::optional<int> port = nic ? meant_port(node, *nic, entry.port) : std::nullopt;
    if (!port)
      continue;
    counts[{*nic, *port}] += std::clamp(entry.count, 1, max_sane_count);
  }
  std::vector<std::string> entries;
  for (const auto& [key, count] : counts) {
    std::string entry = node.nics[static_cast<std::size_t>(key.first)].name;
    const bool needs_port = key.second > 0 || (source->is_pe_mapping && count > 1);
    if (needs_port)
      entry += ":" + std::to_string(key.second > 0 ? key.second : ports_of(node, key.first)[0]);
    if (source->is_pe_mapping && needs_port)
      entry += ":" + std::to_string(count);
    entries.push_back(std::move(entry));
  }
  const bool exclude = mapping.table.list.exclude && !source->is_pe_mapping;
  return entries.empty() ? "" : (exclude ? "^" : "") + join(entries, ",");
}

EnvChange corrected_list_change(const Node& node, const Mapping& mapping) {
  const std::optional<ListSource> source = list_source(mapping);
  const std::string variable = source ? source->variable : "NVSHMEM_HCA_LIST";
  const std::string list = corrected_list(node, mapping);
  return list.empty() ? EnvChange().unset(variable) : EnvChange().set(variable, list);
}

std::vector<NicUse> rows_as_written(const Node& node, const Mapping& mapping) {
  std::vector<NicUse> rows;
  for (const HcaListEntry& entry : mapping.table.list.entries) {
    const std::optional<int> nic = find_hca(node, entry.name);
    if (!nic)
      continue;
    for (int port : ports_of(node, *nic)) {
      const bool in_table = std::any_of(
          mapping.table.entries.begin(), mapping.table.entries.end(), [&](const TableEntry& row) {
            return mapping.table_nics[static_cast<std::size_t>(row.device)] == *nic &&
                   row.port == port;
          });
      if (!in_table || (entry.port != -1 && entry.port != port))
        continue;
      const int count = std::clamp(entry.count, 1, max_sane_count);
      for (int k = 0; k < count && rows.size() < max_written_rows; ++k)
        rows.push_back({*nic, port, {}});
    }
  }
  return rows;
}

} // namespace shmemctl
