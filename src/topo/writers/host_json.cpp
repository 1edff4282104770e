#include "src/topo/writers/host_json.h"

#include <nlohmann/json.hpp>

namespace shmemctl {

namespace {

using nlohmann::json;

template <class T>
json value_or_null(const Fact<T>& fact) {
  return fact ? json(*fact) : json(nullptr);
}

json pci_of(const Node& node, int entry) {
  if (entry < 0)
    return nullptr;
  return to_string(node.pci[static_cast<std::size_t>(entry)].address);
}

json link_of(const Node& node, int entry, const char* which) {
  if (entry < 0)
    return nullptr;
  const PcieLink& link = node.pci[static_cast<std::size_t>(entry)].link;
  return which[0] == 'w' ? value_or_null(link.width) : value_or_null(link.speed_GTps);
}

json gpus_json(const Node& node) {
  json gpus = json::array();
  for (const Gpu& gpu : node.gpus)
    gpus.push_back({{"index", gpu.index},
                    {"name", value_or_null(gpu.name)},
                    {"uuid", value_or_null(gpu.uuid)},
                    {"pci", pci_of(node, gpu.pci)},
                    {"numa", value_or_null(gpu.numa)}});
  return gpus;
}

json hcas_json(const Node& node) {
  json hcas = json::array();
  for (const Nic& nic : node.nics) {
    if (nic.rdma && !*nic.rdma)
      continue;
    // A source that tells nothing of ports still names a device: one row, its port unknown.
    const std::vector<NicPort> ports = nic.ports.empty() ? std::vector<NicPort>(1) : nic.ports;
    for (const NicPort& port : ports)
      hcas.push_back({{"name", nic.name},
                      {"port", nic.ports.empty() ? json(nullptr) : json(port.number)},
                      {"firmware", value_or_null(nic.firmware)},
                      {"guid", value_or_null(nic.node_guid)},
                      {"rate_Gbps", value_or_null(port.rate_Gbps)},
                      {"pci", pci_of(node, nic.pci)},
                      {"numa", value_or_null(nic.numa)},
                      {"link_width", link_of(node, nic.pci, "width")},
                      {"link_speed_GTps", link_of(node, nic.pci, "speed")}});
  }
  return hcas;
}

json read_or_null(const Sysroot* sysroot, const char* path) {
  const auto text = sysroot != nullptr ? sysroot->read_line(path) : std::nullopt;
  return text ? json(text->substr(0, 200)) : json(nullptr);
}

} // namespace

json host_json(const Node& node, const Sysroot* sysroot) {
  json cpus = json::array();
  for (const Package& package : node.packages)
    cpus.push_back({{"package", package.os_index}, {"model", value_or_null(package.model)}});
  return {{"name", node.hostname.empty() ? json(nullptr) : json(node.hostname)},
          {"kernel", read_or_null(sysroot, "/proc/sys/kernel/osrelease")},
          {"cpus", cpus},
          {"numa_nodes", node.numa_nodes.size()},
          {"gpus", gpus_json(node)},
          {"hcas", hcas_json(node)},
          {"nvidia_driver", read_or_null(sysroot, "/sys/module/nvidia/version")}};
}

} // namespace shmemctl
