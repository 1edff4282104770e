#include <algorithm>
#include <set>

#include "src/base/error.h"
#include "src/base/text.h"
#include "src/topo/cpu_set.h"
#include "src/topo/limits.h"
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

std::string affinity_of(const smi::Row& row, smi::Affinity column) {
  const auto field = row.affinities.find(column);
  return field == row.affinities.end() ? "" : field->second;
}

const char* title_of(smi::Affinity column) {
  switch (column) {
  case smi::Affinity::cpus:
    return "CPU Affinity";
  case smi::Affinity::numa:
    return "NUMA Affinity";
  case smi::Affinity::gpu_numa:
    return "GPU NUMA ID";
  }
  return "";
}

std::optional<int> node_number(const std::string& text) {
  const std::optional<long long> number = parse_integer(text);
  return number && *number >= 0 && *number < 65536 ? std::optional<int>(static_cast<int>(*number))
                                                   : std::nullopt;
}

bool fits(const smi::Row& row, smi::Affinity column) {
  const std::string text = affinity_of(row, column);
  if (row.affinities_damaged)
    return false;
  if (is_absent(text))
    return true;
  return column == smi::Affinity::gpu_numa ? node_number(text).has_value() : is_cpulist(text);
}

/// One damaged field means that the column was cut, or grew together with its neighbour: the fields
/// that still look whole may not be.
class Columns {
public:
  Columns(const smi::Table& table, std::vector<std::string>& notes) {
    for (const smi::Affinity column : table.affinities) {
      const auto bad =
          std::find_if(table.rows.begin(), table.rows.end(), [column](const smi::Row& row) {
            return smi::is_gpu_label(row.label) && !fits(row, column);
          });
      if (bad == table.rows.end())
        continue;
      damaged_.insert(column);
      notes.push_back(std::string("the ") + title_of(column) +
                      " column is damaged and was not used (line " + std::to_string(bad->line) +
                      ")");
    }
  }

  /// The field as a value of its kind; unknown, with the reason, if there is none.
  template <class T, class Parse>
  Fact<T> read(const smi::Row& row, smi::Affinity column, Parse parse) const {
    if (damaged_.count(column) != 0)
      return unknown<T>(std::string("the ") + title_of(column) + " column is damaged");
    const std::string text = affinity_of(row, column);
    if (is_absent(text))
      return unknown<T>(std::string("nvidia-smi gives no ") + title_of(column));
    if (std::optional<T> value = parse(text))
      return known(std::move(*value), line_origin(row, title_of(column)));
    return unknown<T>(std::string("nvidia-smi gives the ") + title_of(column) + " " +
                      printable(text, 40));
  }

private:
  std::set<smi::Affinity> damaged_;
};

Gpu gpu_of(const smi::Table& table, const std::string& label, int index, const Columns& columns) {
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
    const std::string reason = "the text lacks the row of " + label;
    gpu.numa = gpu.memory_numa = unknown<int>(reason);
    gpu.cpus = gpu.numa_affinity = unknown<std::string>(reason);
    return gpu;
  }
  const auto list = [](const std::string& text) { return std::optional<std::string>(text); };
  const auto several = [](const std::string& text) {
    return node_number(text) ? std::nullopt : std::optional<std::string>(text);
  };
  gpu.numa = columns.read<int>(*row, smi::Affinity::numa, node_number);
  gpu.numa_affinity = columns.read<std::string>(*row, smi::Affinity::numa, several);
  gpu.memory_numa = columns.read<int>(*row, smi::Affinity::gpu_numa, node_number);
  gpu.cpus = columns.read<std::string>(*row, smi::Affinity::cpus, list);
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
    if (!table.names.empty() && smi::is_nic_label(label) && table.names.count(label) == 0)
      node.notes.push_back("the NIC legend has no name for " + label);
  for (const auto& [title, name] : table.names)
    if (std::find(square.labels.begin(), square.labels.end(), title) == square.labels.end())
      node.notes.push_back("the NIC legend names " + title + " (" + printable(name, 60) +
                           "), which the matrix lacks");
}

/// The number in a NIC's title, if the title is not the one that its position gives.
Fact<int> number_of(const std::string& label, int position) {
  if (!smi::is_nic_label(label))
    return unknown<int>("the title is a device's name");
  const int number = static_cast<int>(parse_integer(label.substr(3)).value_or(position));
  return number == position ? unknown<int>("the same as the position")
                            : known(number, "title " + label);
}

/// Releases that show only some NICs say so above the matrix.
void note_hidden(const smi::Table& table, Node& node) {
  const auto shown = static_cast<int>(node.nics.size());
  if (table.nics_found <= shown)
    return;
  node.hidden_nics = std::min(table.nics_found - shown, topo_limits::max_devices);
  node.notes.push_back("line " + std::to_string(table.nics_found_line) + ": the matrix shows " +
                       std::to_string(shown) + " of " + std::to_string(table.nics_found) +
                       " NICs, so which NIC a PE uses is unknown");
}

} // namespace

Node read_nvidia_smi(const std::string& text, const std::string& subject) {
  if (const std::optional<std::size_t> bad = first_non_utf8(text))
    throw input_error(subject, position_of(text, *bad), "not UTF-8",
                      "pass the output of nvidia-smi topo -m as text");
  const smi::Table table = smi::split_table(text, subject);
  smi::Square square = smi::square_of(table, subject);

  Node node;
  node.format = "nvidia-smi";
  node.notes = table.notes;
  node.notes.insert(node.notes.end(), square.notes.begin(), square.notes.end());
  node.remarks = square.remarks;
  const Columns columns(table, node.notes);
  std::set<std::string> names;
  for (const std::string& label : square.labels) {
    if (smi::is_gpu_label(label)) {
      node.gpus.push_back(gpu_of(table, label, static_cast<int>(node.gpus.size()), columns));
      continue;
    }
    const auto named = table.names.find(label);
    const std::string& name = named == table.names.end() ? label : named->second;
    if (!names.insert(name).second)
      throw input_error(subject, "line " + std::to_string(table.header_line),
                        "two NICs are named " + printable(name, 60),
                        "pass the complete output of nvidia-smi topo -m");
    Nic nic = nic_of(name);
    nic.unnamed = named == table.names.end() && smi::is_nic_label(label);
    nic.source_number = number_of(label, static_cast<int>(node.nics.size()));
    node.nics.push_back(std::move(nic));
  }
  note_hidden(table, node);
  note_legend(table, square, node);
  node.recorded = std::move(square.cells);
  normalize(node);
  return node;
}

} // namespace shmemctl
