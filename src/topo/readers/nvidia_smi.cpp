#include <algorithm>
#include <set>

#include "src/base/error.h"
#include "src/base/text.h"
#include "src/topo/cpu_set.h"
#include "src/topo/nic_names.h"
#include "src/topo/readers/nvidia_smi_text.h"
#include "src/topo/readers/reader.h"

namespace shmemctl {

namespace {

/// A Linux cpulist: "0-15,64-79", ascending.
bool is_cpulist(const std::string& text) {
  int last = -1;
  for (const std::string& range : split(text, ',')) {
    const std::optional<CpuSet> cpus = parse_cpulist(range);
    if (!cpus || cpus->empty() || cpus->first() <= last)
      return false;
    last = cpus->last();
  }
  return true;
}

bool is_absent(const std::string& affinity) {
  return affinity.empty() || affinity == "N/A";
}

const smi::Row* row_of(const smi::Table& table, const std::string& label) {
  const auto row = std::find_if(table.rows.begin(), table.rows.end(),
                                [&label](const smi::Row& r) { return r.label == label; });
  return row == table.rows.end() ? nullptr : &*row;
}

std::string line_origin(const smi::Row& row, const std::string& column) {
  return "line " + std::to_string(row.line) + ", " + column;
}

Fact<int> numa_of(const smi::Row& row) {
  const std::optional<long long> numa = parse_integer(row.numa);
  if (numa && *numa >= 0 && *numa < 65536)
    return known(static_cast<int>(*numa), line_origin(row, "NUMA Affinity"));
  return unknown<int>(is_absent(row.numa)
                          ? "nvidia-smi gives no NUMA affinity"
                          : "nvidia-smi gives the NUMA affinity " + printable(row.numa, 40));
}

/// One damaged CPU list means that the column was cut: the lists that still look whole may not be.
bool cpu_column_is_damaged(const smi::Table& table) {
  return std::any_of(table.rows.begin(), table.rows.end(), [](const smi::Row& row) {
    return smi::is_gpu_label(row.label) && !is_absent(row.cpus) && !is_cpulist(row.cpus);
  });
}

Gpu gpu_of(const smi::Table& table, const std::string& label, int index, bool cpus_damaged) {
  Gpu gpu;
  gpu.index = index;
  gpu.vendor = "nvidia";
  gpu.name = unknown<std::string>("nvidia-smi topo does not tell names");
  gpu.uuid = unknown<std::string>("nvidia-smi topo does not tell UUIDs");
  const long long number = parse_integer(label.substr(3)).value_or(index);
  gpu.driver_index = number == index ? unknown<int>("the same as the index")
                                     : known(static_cast<int>(number), "title " + label);
  const smi::Row* row = row_of(table, label);
  if (row == nullptr) {
    gpu.numa = unknown<int>("the text lacks the row of " + label);
    gpu.cpus = unknown<std::string>("the text lacks the row of " + label);
    return gpu;
  }
  gpu.numa = numa_of(*row);
  if (is_absent(row->cpus))
    gpu.cpus = unknown<std::string>("nvidia-smi gives no CPU affinity");
  else if (cpus_damaged)
    gpu.cpus = unknown<std::string>("the CPU Affinity column is damaged");
  else
    gpu.cpus = known(row->cpus, line_origin(*row, "CPU Affinity"));
  return gpu;
}

Nic nic_of(const std::string& name) {
  Nic nic;
  nic.name = name;
  nic.rdma = known(true, "nvidia-smi topo lists RDMA devices only");
  const std::string silent = "nvidia-smi topo does not tell";
  nic.driver = unknown<std::string>(silent);
  nic.numa = unknown<int>(silent);
  nic.firmware = unknown<std::string>(silent);
  nic.node_guid = unknown<std::string>(silent);
  nic.data_direct = unknown<PciAddress>(silent);
  if (Fact<LinkLayer> layer = link_layer_from_name(name)) {
    NicPort port;
    port.state = unknown<PortState>(silent);
    port.link_layer = std::move(layer);
    port.rate_Gbps = unknown<double>(silent);
    port.lid = unknown<int>(silent);
    port.active_mtu_bytes = unknown<int>(silent);
    port.netdev = unknown<std::string>(silent);
    nic.ports.push_back(std::move(port));
  }
  return nic;
}

void note_legend(const smi::Table& table, const smi::Square& square, Node& node) {
  for (const std::string& label : square.labels)
    if (smi::is_nic_label(label) && table.names.count(label) == 0)
      node.notes.push_back("the NIC legend has no name for " + label);
  for (const auto& [title, name] : table.names)
    if (std::find(square.labels.begin(), square.labels.end(), title) == square.labels.end())
      node.notes.push_back("the NIC legend names " + title + " (" + printable(name, 60) +
                           "), which the matrix lacks");
}

} // namespace

Node read_nvidia_smi(const std::string& text, const std::string& subject) {
  if (const std::optional<std::size_t> bad = first_non_utf8(text))
    throw input_error(subject, position_of(text, *bad), "not UTF-8",
                      "give the output of nvidia-smi topo -m as text");
  const smi::Table table = smi::split_table(text, subject);
  smi::Square square = smi::square_of(table, subject);

  Node node;
  node.format = "nvidia-smi";
  node.notes = table.notes;
  node.notes.insert(node.notes.end(), square.notes.begin(), square.notes.end());
  const bool cpus_damaged = cpu_column_is_damaged(table);
  if (cpus_damaged)
    node.notes.push_back("the CPU Affinity column is damaged and was not used");
  std::set<std::string> names;
  for (const std::string& label : square.labels) {
    if (smi::is_gpu_label(label)) {
      node.gpus.push_back(gpu_of(table, label, static_cast<int>(node.gpus.size()), cpus_damaged));
      continue;
    }
    const auto named = table.names.find(label);
    const std::string& name = named == table.names.end() ? label : named->second;
    if (!names.insert(name).second)
      throw input_error(subject, "line " + std::to_string(table.header_line),
                        "two NICs are named " + printable(name, 60),
                        "give the whole output of: nvidia-smi topo -m");
    node.nics.push_back(nic_of(name));
  }
  note_legend(table, square, node);
  node.recorded = std::move(square.cells);
  normalize(node);
  return node;
}

} // namespace shmemctl
