#include "src/model/topo/writers/writer.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "src/base/text.h"

namespace shmemctl {

namespace {

using nlohmann::json;

/// Sets `key`, or null and the reason.
template <class T>
void put(json& object, const std::string& key, const Fact<T>& fact) {
  if (fact) {
    object[key] = *fact;
    return;
  }
  object[key] = nullptr;
  object[key + "_reason"] = fact.origin.empty() ? "not reported by the source" : fact.origin;
}

Fact<std::string> pci_of(const Node& node, int entry) {
  if (entry < 0)
    return unknown<std::string>("the source gives no PCI address");
  return known(to_string(node.pci[static_cast<std::size_t>(entry)].address), "");
}

const PcieLink& link_of(const Node& node, int entry) {
  static const PcieLink none;
  return entry < 0 ? none : node.pci[static_cast<std::size_t>(entry)].link;
}

json gpus_json(const Node& node) {
  json gpus = json::array();
  for (const Gpu& gpu : node.gpus) {
    json object = {{"index", gpu.index}};
    put(object, "name", gpu.name);
    put(object, "uuid", gpu.uuid);
    put(object, "pci", pci_of(node, gpu.pci));
    put(object, "numa", gpu.numa);
    gpus.push_back(object);
  }
  return gpus;
}

json hca_json(const Node& node, const Nic& nic, const NicPort* port) {
  const std::string no_ports = "the source does not report ports";
  json object = {{"name", nic.name}};
  put(object, "port", port != nullptr ? known(port->number, "") : unknown<int>(no_ports));
  put(object, "firmware", nic.firmware);
  put(object, "guid", nic.node_guid);
  put(object, "rate_Gbps", port != nullptr ? port->rate_Gbps : unknown<double>(no_ports));
  put(object, "pci", pci_of(node, nic.pci));
  put(object, "numa", nic.numa);
  put(object, "link_width", link_of(node, nic.pci).width);
  put(object, "link_speed_GTps", link_of(node, nic.pci).speed_GTps);
  return object;
}

json hcas_json(const Node& node) {
  json hcas = json::array();
  for (const Nic& nic : node.nics) {
    if (nic.rdma && !*nic.rdma)
      continue;
    if (nic.ports.empty())
      hcas.push_back(hca_json(node, nic, nullptr));
    for (const NicPort& port : nic.ports)
      hcas.push_back(hca_json(node, nic, &port));
  }
  return hcas;
}

/// The network interfaces that carry traffic besides the HCAs.
json interfaces_json(const Node& node) {
  json interfaces = json::array();
  for (const Nic& nic : node.nics) {
    const NicPort* const port = nic.ports.empty() ? nullptr : &nic.ports.front();
    const bool down = port != nullptr && port->state && *port->state != PortState::active;
    if (!nic.rdma || *nic.rdma || down)
      continue;
    json object = {{"name", nic.name}};
    put(object, "driver", nic.driver);
    put(object, "rate_Gbps",
        port != nullptr ? port->rate_Gbps : unknown<double>("the source does not report ports"));
    interfaces.push_back(std::move(object));
  }
  return interfaces;
}

Fact<std::string> line_of(const Sysroot* sysroot, const char* path) {
  const auto text = sysroot != nullptr ? sysroot->read_line(path) : std::nullopt;
  if (text && !text->empty() && !first_non_utf8(*text))
    return known(text->substr(0, 200), path);
  return unknown<std::string>(sysroot != nullptr ? std::string(path) + " cannot be read"
                                                 : "the machine itself was not read");
}

json cpus_json(const Node& node) {
  json cpus = json::object();
  put(cpus, "model",
      node.packages.empty() ? unknown<std::string>("not reported by the source")
                            : node.packages.front().model);
  cpus["packages"] = node.packages.size();
  cpus["numa_nodes"] =
      std::count_if(node.numa_nodes.begin(), node.numa_nodes.end(),
                    [](const NumaNode& numa) { return numa.kind == NumaKind::cpu; });
  return cpus;
}

json versions_json(const Node& node, const Sysroot* sysroot) {
  json versions = json::object();
  for (const auto& [name, path] : {std::pair("nvidia", "/sys/module/nvidia/version"),
                                   std::pair("mlx5_core", "/sys/module/mlx5_core/version"),
                                   std::pair("efa", "/sys/module/efa/version")})
    if (const Fact<std::string> version = line_of(sysroot, path))
      versions[name] = *version;
  // In a container, /sys/module may lack the driver.
  if (node.driver_version && !versions.contains("nvidia"))
    versions["nvidia"] = *node.driver_version;
  if (node.cuda_version)
    versions["cuda"] = *node.cuda_version;
  return versions;
}

} // namespace

json host_json(const Node& node, const Sysroot* sysroot) {
  json host = {{"cpus", cpus_json(node)},
               {"gpus", gpus_json(node)},
               {"hcas", hcas_json(node)},
               {"interfaces", interfaces_json(node)},
               {"versions", versions_json(node, sysroot)}};
  put(host, "name",
      node.hostname.empty() ? unknown<std::string>("not reported by the source")
                            : known(node.hostname, ""));
  put(host, "kernel", line_of(sysroot, "/proc/sys/kernel/osrelease"));
  return host;
}

} // namespace shmemctl
