// PCI functions and the bridges above them, from /sys/bus/pci/devices.
#include <algorithm>
#include <fmt/format.h>

#include "src/base/text.h"
#include "src/base/units.h"
#include "src/topo/cpu_set.h"
#include "src/topo/readers/machine_parts.h"
#include "src/topo/readers/sysfs_values.h"

namespace shmemctl {

namespace {

const std::string pci_folder = "/sys/bus/pci/devices";

std::optional<std::uint32_t> parse_hex(const std::string& text, long long maximum) {
  const std::optional<long long> number = parse_integer(text, 16);
  if (!number || *number < 0 || *number > maximum)
    return std::nullopt;
  return static_cast<std::uint32_t>(*number);
}

Fact<std::uint16_t> read_id(const Sysroot& sysroot, const std::string& path) {
  return read_fact<std::uint16_t>(
      sysroot, path, [](const std::string& text) -> std::optional<std::uint16_t> {
        const std::optional<std::uint32_t> id = parse_hex(text, 0xffff);
        return id ? std::optional(static_cast<std::uint16_t>(*id)) : std::nullopt;
      });
}

Fact<std::uint32_t> read_class(const Sysroot& sysroot, const std::string& path) {
  return read_fact<std::uint32_t>(
      sysroot, path, [](const std::string& text) { return parse_hex(text, 0xffffff); });
}

/// numa_node; -1 is the kernel's word for "the firmware did not say".
Fact<int> read_numa(const Sysroot& sysroot, const std::string& path) {
  return read_fact<int>(sysroot, path, [](const std::string& text) -> std::optional<int> {
    const std::optional<long long> numa = parse_integer(text);
    if (!numa || *numa < 0 || *numa > max_os_index)
      return std::nullopt;
    return static_cast<int>(*numa);
  });
}

/// For a tree without numa_node: the only CPU NUMA node that the function's local CPUs are in.
Fact<int> numa_of_local_cpus(const Sysroot& sysroot, const std::string& path, const Node& node,
                             Fact<int> otherwise) {
  const Fact<CpuSet> local =
      read_fact<CpuSet>(sysroot, path, [](const std::string& text) { return parse_cpumap(text); });
  if (!local)
    return otherwise;
  Fact<int> numa = std::move(otherwise);
  for (const NumaNode& candidate : node.numa_nodes) {
    const std::optional<CpuSet> cpus =
        candidate.cpus ? parse_cpulist(*candidate.cpus) : std::nullopt;
    if (!cpus || intersection(*cpus, *local).empty())
      continue;
    if (numa)
      return unknown<int>(path + " is in several NUMA nodes");
    numa = known(candidate.os_index, path);
  }
  return numa;
}

/// The last "pciDDDD:BB" of a path and what follows it; VMD puts a second one behind the first.
std::vector<std::string> below_host_bridge(const std::string& path) {
  std::vector<std::string> parts = split(path, '/');
  for (std::size_t i = parts.size(); i-- > 0;)
    if (starts_with(parts[i], "pci") && parse_pci_address(parts[i].substr(3) + ":00.0"))
      return {parts.begin() + static_cast<std::ptrdiff_t>(i), parts.end()};
  return {};
}

} // namespace

PciTree::PciTree(const Sysroot& sysroot, Node& node) : sysroot_(sysroot), node_(node) {
  for (const std::string& name : sysroot.list(pci_folder))
    if (const std::optional<PciAddress> address = parse_pci_address(name))
      names_.emplace(*address, name);
  for (const auto& [address, name] : names_) {
    const std::string folder = fmt::format("{}/{}", pci_folder, name);
    const Fact<std::uint32_t> class_code = read_class(sysroot, folder + "/class");
    if (!class_code)
      continue;
    const std::uint16_t vendor = read_id(sysroot, folder + "/vendor").value.value_or(0);
    if (pci_ids::is_network(*class_code) || pci_ids::is_nvswitch(*class_code, vendor) ||
        pci_ids::is_gpu(*class_code, vendor))
      add_listed(address, name);
    if (pci_ids::is_nvswitch(*class_code, vendor))
      ++node.nvswitches;
  }
  find_host_bridge_numa();
}

int PciTree::find(const PciAddress& address) const {
  const auto found = index_.find(address);
  return found == index_.end() ? -1 : found->second;
}

int PciTree::add_function(const PciAddress& address) {
  if (const int present = find(address); present >= 0)
    return present;
  const auto listed = names_.find(address);
  if (listed == names_.end())
    return -1;
  const int entry = add_listed(address, listed->second);
  find_host_bridge_numa();
  return entry;
}

int PciTree::add_unlisted(const PciAddress& address, const std::string& reason) {
  PciDevice device;
  device.address = address;
  device.class_code = unknown<std::uint32_t>(reason);
  for (Fact<std::uint16_t>* id :
       {&device.vendor, &device.device, &device.subsystem_vendor, &device.subsystem_device})
    *id = unknown<std::uint16_t>(reason);
  device.numa = unknown<int>(reason);
  device.link.speed_GTps = device.link.max_speed_GTps = unknown<double>(reason);
  device.link.width = device.link.max_width = unknown<int>(reason);
  const int entry = static_cast<int>(node_.pci.size());
  node_.pci.push_back(std::move(device));
  index_[address] = entry;
  return entry;
}

int PciTree::add_ancestor(const std::string& sysfs_path) {
  const std::vector<std::string> parts = split(sysfs_path, '/');
  for (std::size_t i = parts.size(); i-- > 0;) {
    const std::optional<PciAddress> address = parse_pci_address(parts[i]);
    const int entry = address ? add_function(*address) : -1;
    if (entry >= 0)
      return entry;
  }
  return -1;
}

/// A function by its real place in the tree; a plain folder in /sys/bus/pci/devices has none.
int PciTree::add_listed(const PciAddress& address, const std::string& name) {
  const std::string folder = pci_folder + "/" + name;
  const std::string path = sysroot_.realpath(folder).value_or(folder);
  if (starts_with(path, "/sys/devices/") && !first_non_utf8(path))
    if (const int entry = add_chain(path); entry >= 0 && find(address) == entry)
      return entry;
  PciDevice device;
  device.address = address;
  describe(device, folder);
  const int entry = static_cast<int>(node_.pci.size());
  node_.pci.push_back(std::move(device));
  index_[address] = entry;
  return entry;
}

/// Adds every function on a path below its host bridge, topmost first; the index of the last.
int PciTree::add_chain(const std::string& path) {
  const std::vector<std::string> parts = below_host_bridge(path);
  if (parts.size() < 2)
    return -1;
  const int host_bridge = add_host_bridge(parts.front());
  std::size_t end = 0;
  int entry = -1;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::optional<PciAddress> address = parse_pci_address(parts[i]);
    if (!address)
      return -1;
    end = path.find("/" + parts[i], end) + 1 + parts[i].size();
    const int parent = entry;
    entry = find(*address);
    if (entry >= 0)
      continue;
    PciDevice device;
    device.address = *address;
    device.parent = parent;
    device.host_bridge = host_bridge;
    device.sysfs_path = path.substr(0, end);
    describe(device, device.sysfs_path);
    if (i + 1 < parts.size())
      device.kind = PciKind::bridge;
    entry = static_cast<int>(node_.pci.size());
    node_.pci.push_back(std::move(device));
    index_[*address] = entry;
  }
  return entry;
}

int PciTree::add_host_bridge(const std::string& component) {
  const PciAddress root = *parse_pci_address(component.substr(3) + ":00.0");
  for (std::size_t i = 0; i < node_.host_bridges.size(); ++i)
    if (node_.host_bridges[i].domain == root.domain && node_.host_bridges[i].bus == root.bus)
      return static_cast<int>(i);
  HostBridge bridge;
  bridge.domain = root.domain;
  bridge.bus = root.bus;
  bridge.package = unknown<int>("sysfs tells no package of a host bridge");
  node_.host_bridges.push_back(std::move(bridge));
  return static_cast<int>(node_.host_bridges.size()) - 1;
}

void PciTree::describe(PciDevice& device, const std::string& folder) const {
  device.class_code = read_class(sysroot_, folder + "/class");
  if (device.class_code && pci_ids::is_bridge(*device.class_code))
    device.kind = PciKind::bridge;
  device.vendor = read_id(sysroot_, folder + "/vendor");
  device.device = read_id(sysroot_, folder + "/device");
  device.subsystem_vendor = read_id(sysroot_, folder + "/subsystem_vendor");
  device.subsystem_device = read_id(sysroot_, folder + "/subsystem_device");
  device.numa = read_numa(sysroot_, folder + "/numa_node");
  if (!device.numa && !sysroot_.exists(folder + "/numa_node"))
    device.numa = numa_of_local_cpus(sysroot_, folder + "/local_cpus", node_, device.numa);
  const auto speed = [](const std::string& text) { return parse_link_speed_GTps(text); };
  const auto width = [](const std::string& text) { return parse_link_width(text); };
  device.link.speed_GTps = read_fact<double>(sysroot_, folder + "/current_link_speed", speed);
  device.link.max_speed_GTps = read_fact<double>(sysroot_, folder + "/max_link_speed", speed);
  device.link.width = read_fact<int>(sysroot_, folder + "/current_link_width", width);
  device.link.max_width = read_fact<int>(sysroot_, folder + "/max_link_width", width);
}

/// A host bridge has no numa_node of its own: it is where the functions below it are, if all of
/// them that know say the same.
void PciTree::find_host_bridge_numa() {
  for (std::size_t i = 0; i < node_.host_bridges.size(); ++i) {
    Fact<int> numa = unknown<int>("no function below it tells a NUMA node");
    for (const PciDevice& device : node_.pci) {
      if (device.host_bridge != static_cast<int>(i) || !device.numa)
        continue;
      if (numa && *numa != *device.numa) {
        numa = unknown<int>("functions below it tell different NUMA nodes");
        break;
      }
      if (!numa)
        numa = device.numa;
    }
    node_.host_bridges[i].numa = numa;
  }
}

} // namespace shmemctl
