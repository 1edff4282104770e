#include "src/topo/node_shape.h"

#include <fmt/format.h>

#include "src/topo/limits.h"

namespace shmemctl {

namespace {

constexpr int max_depth = 512; ///< twice as many buses as a PCI domain has
constexpr int max_links = 1000;
constexpr int max_ports = 255;
constexpr int max_gids = 65536;

bool in_range(int index, std::size_t size) {
  return index >= -1 && index < static_cast<int>(size);
}

std::string sizes(const Node& node) {
  auto over = [](std::size_t size, int limit) { return size > static_cast<std::size_t>(limit); };
  if (over(node.gpus.size() + node.nics.size(), topo_limits::max_devices))
    return fmt::format("more than {} GPUs and NICs", topo_limits::max_devices);
  if (over(node.pci.size(), topo_limits::max_pci_entries))
    return fmt::format("more than {} PCI functions", topo_limits::max_pci_entries);
  if (over(node.numa_nodes.size(), topo_limits::max_numa_nodes))
    return fmt::format("more than {} NUMA nodes", topo_limits::max_numa_nodes);
  if (over(node.packages.size(), topo_limits::max_packages))
    return fmt::format("more than {} packages", topo_limits::max_packages);
  if (over(node.host_bridges.size(), topo_limits::max_host_bridges))
    return fmt::format("more than {} host bridges", topo_limits::max_host_bridges);
  if (node.nvswitches < 0 || node.nvswitches > topo_limits::max_devices)
    return "a number of NVSwitches that cannot be";
  if (node.hidden_nics < 0 || node.hidden_nics > topo_limits::max_devices)
    return "a number of hidden NICs that cannot be";
  return "";
}

std::string tree(const Node& node) {
  std::vector<int> depth;
  for (std::size_t i = 0; i < node.pci.size(); ++i) {
    const PciDevice& entry = node.pci[i];
    const std::string name = to_string(entry.address);
    if (!in_range(entry.parent, i))
      return "the bridge above " + name + " does not come before it";
    if (!in_range(entry.host_bridge, node.host_bridges.size()))
      return "the host bridge of " + name + " does not exist";
    int above = 0;
    if (entry.parent >= 0) {
      const auto parent = static_cast<std::size_t>(entry.parent);
      if (node.pci[parent].kind == PciKind::endpoint)
        return name + " is below " + to_string(node.pci[parent].address) + ", which is no bridge";
      above = depth[parent] + 1;
    }
    if (above > max_depth)
      return name + fmt::format(" is below more than {} bridges", max_depth);
    depth.push_back(above);
  }
  return "";
}

std::string devices(const Node& node) {
  for (const Gpu& gpu : node.gpus) {
    if (!in_range(gpu.pci, node.pci.size()))
      return fmt::format("the PCI function of GPU {} does not exist", gpu.index);
    if (gpu.links.size() > static_cast<std::size_t>(max_links))
      return fmt::format("GPU {} has more than {} links", gpu.index, max_links);
    for (const GpuLink& link : gpu.links)
      if (link.count < 1 || link.count > max_links)
        return fmt::format("GPU {} has {} links to one target", gpu.index, link.count);
  }
  for (const Nic& nic : node.nics) {
    if (!in_range(nic.pci, node.pci.size()))
      return "the PCI function of the NIC " + nic.name + " does not exist";
    if (nic.ports.size() > static_cast<std::size_t>(max_ports))
      return "the NIC " + nic.name + fmt::format(" has more than {} ports", max_ports);
    for (const NicPort& port : nic.ports)
      if (port.number < 1 || port.number > max_ports ||
          port.gids.size() > static_cast<std::size_t>(max_gids))
        return "the NIC " + nic.name + fmt::format(" has a port {} that cannot be", port.number);
  }
  return "";
}

std::string recorded(const Node& node) {
  if (!node.recorded)
    return "";
  const std::size_t count = node.gpus.size() + node.nics.size();
  if (node.recorded->size() != count)
    return fmt::format("the matrix has {} rows for {} devices", node.recorded->size(), count);
  for (const auto& row : *node.recorded)
    if (row.size() != count)
      return fmt::format("a row of the matrix has {} cells for {} devices", row.size(), count);
  return "";
}

} // namespace

std::string shape_problem(const Node& node) {
  for (const auto& check : {sizes, tree, devices, recorded})
    if (std::string problem = check(node); !problem.empty())
      return problem;
  return "";
}

} // namespace shmemctl
