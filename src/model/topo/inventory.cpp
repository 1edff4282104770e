// The GPUs and RDMA NICs of a node, with the facts by which nodes of one type are compared.
#include "src/model/topo/inventory.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/base/error.h"

namespace shmemctl {

namespace {

Fact<std::string> pci_id_of(const PciDevice& function) {
  if (!function.vendor || !function.device)
    return unknown<std::string>("vendor and device are not known");
  return known(fmt::format("{:04x}:{:04x}", *function.vendor, *function.device), "");
}

int active_nvlinks(const Gpu& gpu) {
  int links = 0;
  for (const GpuLink& link : gpu.links)
    links += link.target == LinkTarget::cpu ? 0 : link.count;
  return links;
}

/// @param entry index in Node::pci, -1 if there is none
InventoryDevice device_of(const Node& node, int entry) {
  InventoryDevice device;
  if (entry < 0) {
    device.pci = unknown<std::string>("no PCI address");
    device.pci_id = unknown<std::string>("vendor and device are not known");
    return device;
  }
  const PciDevice& function = node.pci[static_cast<std::size_t>(entry)];
  device.pci = known(to_string(function.address), "");
  device.pci_id = pci_id_of(function);
  device.link = function.link;
  return device;
}

} // namespace

std::vector<InventoryDevice> gpu_inventory(const Node& node) {
  std::vector<InventoryDevice> all;
  for (const Gpu& gpu : node.gpus) {
    InventoryDevice device = device_of(node, gpu.pci);
    device.subject =
        fmt::format("GPU {}", gpu.index) + (device.pci ? " (" + *device.pci + ")" : std::string());
    device.model = gpu.name;
    device.vbios = gpu.vbios;
    device.nvlinks = active_nvlinks(gpu);
    device.reports_links = !gpu.links.empty();
    device.numa = gpu.numa;
    all.push_back(std::move(device));
  }
  return all;
}

std::vector<InventoryDevice> nic_inventory(const Node& node) {
  std::vector<InventoryDevice> all;
  for (const Nic& nic : node.nics) {
    if (nic.virtual_device || !nic.rdma.value.value_or(true))
      continue;
    InventoryDevice device = device_of(node, nic.pci);
    device.subject = printable(nic.name, 64);
    device.name =
        nic.unnamed ? unknown<std::string>("not named by the source") : known(nic.name, "");
    device.firmware = nic.firmware;
    device.ports = nic.ports;
    device.numa = nic.numa;
    device.driver = nic.driver;
    all.push_back(std::move(device));
  }
  return all;
}

std::map<std::string, std::string> versions_of(const nlohmann::json& host) {
  std::map<std::string, std::string> versions;
  if (const auto kernel = host.find("kernel"); kernel != host.end() && kernel->is_string())
    versions["kernel"] = kernel->get<std::string>();
  if (const auto others = host.find("versions"); others != host.end() && others->is_object())
    for (const auto& [name, version] : others->items())
      if (version.is_string())
        versions[name] = version.get<std::string>();
  return versions;
}

} // namespace shmemctl
