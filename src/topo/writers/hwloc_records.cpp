#include "src/topo/writers/hwloc_records.h"

#include <fmt/format.h>

#include "src/topo/distance.h"
#include "src/topo/node_records.h"
#include "src/topo/readers/hwloc_dump.h"
#include "src/topo/record.h"

namespace shmemctl {

namespace {

template <class Write>
HwlocInfo info(const char* name, const std::string& place, Write write) {
  RecordWriter record;
  record("at", place);
  write(record);
  return {std::string(hwloc_info_prefix) + name, record.text()};
}

template <class T, class Write>
void list(HwlocInfos& to, const char* name, const std::vector<T>& items, Write write) {
  for (std::size_t i = 0; i < items.size(); ++i)
    to.push_back(
        info(name, std::to_string(i), [&](RecordWriter& record) { write(record, items[i]); }));
}

/// Cells are divided by blanks; a reason has none then.
std::string cell(const Distance& distance) {
  if (distance.path)
    return to_string(distance);
  std::string reason;
  for (const char c : record_value::percent_encode(distance.reason))
    reason += c == ' ' ? std::string("%20") : std::string(1, c);
  return "?" + reason;
}

} // namespace

HwlocInfos node_infos(const Node& node) {
  HwlocInfos infos;
  infos.push_back(info("dump", "0", [&node](RecordWriter& record) {
    record("version", 1);
    record("hostname", node.hostname);
    record("nvswitches", node.nvswitches);
    record("recorded", node.recorded.has_value());
  }));
  namespace records = node_records;
  list(infos, "package", node.packages, [](auto& to, const auto& it) { records::package(to, it); });
  list(infos, "numa", node.numa_nodes, [](auto& to, const auto& it) { records::numa(to, it); });
  list(infos, "host_bridge", node.host_bridges,
       [](auto& to, const auto& it) { records::host_bridge(to, it); });
  list(infos, "note", node.notes, [](auto& to, const auto& it) { to("text", it); });
  if (node.recorded)
    list(infos, "row", *node.recorded, [](auto& to, const auto& row) {
      std::string cells;
      for (const Distance& distance : row)
        cells += (cells.empty() ? "" : " ") + cell(distance);
      to("cells", cells);
    });
  return infos;
}

HwlocInfo pci_info(const Node& node, int entry) {
  return info("pci", std::to_string(entry), [&](RecordWriter& record) {
    node_records::pci(record, node.pci[static_cast<std::size_t>(entry)]);
  });
}

HwlocInfos gpu_infos(const Gpu& gpu, int position) {
  HwlocInfos infos;
  infos.push_back(info("gpu", std::to_string(position),
                       [&gpu](RecordWriter& record) { node_records::gpu(record, gpu); }));
  for (std::size_t i = 0; i < gpu.links.size(); ++i)
    infos.push_back(info("gpu_link", fmt::format("{}.{}", position, i), [&](RecordWriter& record) {
      node_records::gpu_link(record, gpu.links[i]);
    }));
  return infos;
}

HwlocInfos nic_infos(const Nic& nic, int position) {
  HwlocInfos infos;
  infos.push_back(info("nic", std::to_string(position),
                       [&nic](RecordWriter& record) { node_records::nic(record, nic); }));
  for (std::size_t i = 0; i < nic.ports.size(); ++i) {
    const NicPort& port = nic.ports[i];
    infos.push_back(info("nic_port", fmt::format("{}.{}", position, i),
                         [&](RecordWriter& record) { node_records::nic_port(record, port); }));
    for (std::size_t j = 0; j < port.gids.size(); ++j)
      infos.push_back(info("gid", fmt::format("{}.{}.{}", position, i, j),
                           [&](RecordWriter& record) { node_records::gid(record, port.gids[j]); }));
  }
  return infos;
}

} // namespace shmemctl
