#include "src/topo/mapping/node_paths.h"

#include <fmt/format.h>

#include "src/base/text.h"
#include "src/topo/sysfs_path.h"

namespace shmemctl {

namespace {

const PciDevice& pci_at(const Node& node, int entry) {
  return node.pci[static_cast<std::size_t>(entry)];
}

/// What the numa_node file of a PCI function reads. The kernel's own tree is taken by its word;
/// other sources may tell the NUMA node of the device, or of its host bridge only.
int numa_file(const Node& node, int entry, const Fact<int>& of_device) {
  if (entry < 0)
    return of_device.value.value_or(-1);
  const PciDevice& function = pci_at(node, entry);
  if (function.numa || !function.sysfs_path.empty())
    return function.numa.value.value_or(-1);
  if (of_device)
    return *of_device;
  if (function.host_bridge < 0)
    return -1;
  return node.host_bridges[static_cast<std::size_t>(function.host_bridge)].numa.value.value_or(-1);
}

std::optional<int> pci_entry_of(const Node& node, const PciAddress& address) {
  for (std::size_t i = 0; i < node.pci.size(); ++i)
    if (node.pci[i].address == address)
      return static_cast<int>(i);
  return std::nullopt;
}

SysfsLocation location(const Node& node, int entry, const Fact<int>& numa_of_device) {
  return {entry < 0 ? "" : synthesized_sysfs_path(node, entry),
          numa_file(node, entry, numa_of_device), ""};
}

/// A recorded cell as a class: nothing if it is unknown or says nothing about PCIe.
std::optional<PathClass> recorded_class(const Node& node, int gpu, int nic) {
  const auto row = static_cast<std::size_t>(gpu);
  const std::size_t column = node.gpus.size() + static_cast<std::size_t>(nic);
  if (row >= node.recorded->size() || column >= (*node.recorded)[row].size())
    return std::nullopt;
  const Distance& cell = (*node.recorded)[row][column];
  if (!cell.path || *cell.path == PathClass::self || *cell.path == PathClass::nvlink)
    return std::nullopt;
  return cell.path;
}

/// "mlx5_0, mlx5_1, mlx5_2 and 5 more"
std::string some_of(const std::vector<std::string>& texts, std::string_view separator) {
  constexpr std::size_t shown = 3;
  if (texts.size() <= shown)
    return join(texts, separator);
  const std::vector<std::string> first(texts.begin(), texts.begin() + shown);
  return fmt::format("{} and {} more", join(first, separator), texts.size() - shown);
}

} // namespace

SysfsLocation gpu_location(const Node& node, int gpu) {
  const Gpu& device = node.gpus[static_cast<std::size_t>(gpu)];
  SysfsLocation found = location(node, device.pci, device.numa);
  if (found.path.empty())
    found.doubt = fmt::format("GPU{} has no known PCI path: NODE or SYS by NUMA node", gpu);
  return found;
}

SysfsLocation nic_location(const Node& node, int nic, bool data_direct) {
  const Nic& device = node.nics[static_cast<std::size_t>(nic)];
  const bool wanted = data_direct && device.data_direct;
  if (wanted)
    if (const std::optional<int> entry = pci_entry_of(node, *device.data_direct))
      return location(node, *entry, unknown<int>("of another function"));
  SysfsLocation found = location(node, device.pci, device.numa);
  if (found.path.empty())
    found.doubt = fmt::format("{} has no PCI path: NODE or SYS by NUMA node", device.name);
  else if (wanted)
    found.doubt = fmt::format("the path of {}'s data-direct function {} is unknown; its own is "
                              "used",
                              device.name, to_string(*device.data_direct));
  return found;
}

NvshmemDistances::NvshmemDistances(const Node& node, std::vector<int> nics, bool data_direct)
    : node_(node), nics_(std::move(nics)) {
  if (node.recorded)
    return;
  for (const int nic : nics_)
    locations_.push_back(nic_location(node, nic, data_direct));
}

GpuClasses NvshmemDistances::recorded(int gpu) const {
  GpuClasses classes;
  std::vector<std::string> unknown_to;
  for (const int nic : nics_) {
    const std::optional<PathClass> path = recorded_class(node_, gpu, nic);
    classes.to_nic.push_back(path.value_or(PathClass::sys));
    if (!path)
      unknown_to.push_back(node_.nics[static_cast<std::size_t>(nic)].name);
  }
  if (!unknown_to.empty())
    classes.doubt = fmt::format("the recorded distance from GPU{} to {} is unknown; taken as SYS",
                                gpu, some_of(unknown_to, ", "));
  return classes;
}

GpuClasses NvshmemDistances::of_gpu(int gpu) const {
  if (node_.recorded)
    return recorded(gpu);
  GpuClasses classes;
  const SysfsLocation from = gpu_location(node_, gpu);
  std::vector<std::string> doubts;
  if (!from.doubt.empty())
    doubts.push_back(from.doubt);
  for (const SysfsLocation& to : locations_) {
    classes.to_nic.push_back(nvshmem_path_class(from.path, to.path, from.numa == to.numa));
    if (!to.doubt.empty())
      doubts.push_back(to.doubt);
  }
  classes.doubt = some_of(doubts, "; ");
  return classes;
}

} // namespace shmemctl
