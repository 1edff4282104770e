// Parts of a Node that come from /sys: PCI devices and links, CPUs, GPUs.
#include "src/model/topo/readers/sysfs.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

#include "src/base/text.h"
#include "src/base/units.h"
#include "src/model/topo/cpus.h"
#include "src/model/topo/readers/machine.h"

namespace shmemctl {

namespace {

bool is_hex_word(std::string_view word, std::size_t digits) {
  return word.size() == digits &&
         word.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}

} // namespace

std::optional<PortState> parse_port_state(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos)
    return std::nullopt;
  const std::optional<long long> number = parse_integer(trim(text.substr(0, colon)));
  if (!number)
    return std::nullopt;
  switch (*number) {
  case 1:
    return PortState::down;
  case 2:
    return PortState::init;
  case 3:
    return PortState::armed;
  case 4:
  case 5:
    return PortState::active;
  default:
    return std::nullopt;
  }
}

std::optional<LinkLayer> parse_link_layer(std::string_view text) {
  const std::string word = lower(trim(text));
  if (word == "infiniband")
    return LinkLayer::infiniband;
  if (word == "ethernet")
    return LinkLayer::ethernet;
  if (word == "unknown" || word == "unspecified")
    return LinkLayer::other;
  return std::nullopt;
}

std::optional<double> parse_rate_Gbps(std::string_view text) {
  const std::vector<std::string> words = split_blanks(trim(text));
  if (words.size() < 2 || words[1] != "Gb/sec")
    return std::nullopt;
  const std::optional<double> rate_Gbps = parse_number(words[0]);
  if (!rate_Gbps || *rate_Gbps <= 0 || *rate_Gbps > 1e6)
    return std::nullopt;
  return rate_Gbps;
}

std::optional<int> parse_lid(std::string_view text) {
  const std::string_view word = trim(text);
  const std::optional<long long> lid = parse_integer(word, starts_with(word, "0x") ? 16 : 10);
  if (!lid || *lid < 0 || *lid > 0xffff)
    return std::nullopt;
  return static_cast<int>(*lid);
}

std::optional<std::string> parse_gid(std::string_view text) {
  const std::string_view word = trim(text);
  if (word.size() != 39)
    return std::nullopt;
  const std::vector<std::string> groups = split(word, ':');
  const bool well_formed =
      groups.size() == 8 && std::all_of(groups.begin(), groups.end(), [](const std::string& group) {
        return is_hex_word(group, 4);
      });
  if (!well_formed)
    return std::nullopt;
  return lower(word);
}

bool is_zero_gid(std::string_view gid) {
  return gid.find_first_not_of("0:") == std::string_view::npos;
}

std::optional<int> parse_link_width(std::string_view text) {
  const std::optional<long long> lanes = parse_integer(trim(text));
  if (!lanes || *lanes < 1 || *lanes > 32)
    return std::nullopt;
  return static_cast<int>(*lanes);
}

std::optional<std::uint64_t> parse_memory_total_bytes(std::string_view text) {
  for (const std::string& line : split(text, '\n')) {
    const std::size_t at = line.find("MemTotal:");
    if (at == std::string::npos)
      continue;
    const std::vector<std::string> words = split_blanks(std::string_view(line).substr(at + 9));
    if (words.size() != 2 || words[1] != "kB")
      return std::nullopt;
    const std::optional<long long> kB = parse_integer(words[0]);
    if (!kB || *kB < 0 || *kB > (1LL << 52))
      return std::nullopt;
    return static_cast<std::uint64_t>(*kB) * 1024; // the kernel's kB are 1024 bytes
  }
  return std::nullopt;
}

std::optional<std::string> parse_field(std::string_view text, std::string_view key) {
  for (const std::string& line : split(text, '\n')) {
    const std::size_t colon = line.find(':');
    if (colon != std::string::npos && trim(std::string_view(line).substr(0, colon)) == key)
      return std::string(trim(std::string_view(line).substr(colon + 1)));
  }
  return std::nullopt;
}

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

/// numa_node; -1 means that the firmware does not report it.
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

/// The last "pciDDDD:BB" of a path and what follows it; VMD puts a second one after the first.
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

/// Adds a function, with the bridges on its real path in the tree. A plain folder in
/// /sys/bus/pci/devices has no such path: then adds the function alone.
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

/// Adds every function on a path below its host bridge, topmost first. Returns the index of the
/// last, or -1 if the path has none or a part that is not one.
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
  bridge.package = unknown<int>("sysfs does not report the package of a host bridge");
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

/// A host bridge has no numa_node of its own: its NUMA node is that of the functions below it, if
/// all known ones agree.
void PciTree::find_host_bridge_numa() {
  for (std::size_t i = 0; i < node_.host_bridges.size(); ++i) {
    Fact<int> numa = unknown<int>("no function below it reports a NUMA node");
    for (const PciDevice& device : node_.pci) {
      if (device.host_bridge != static_cast<int>(i) || !device.numa)
        continue;
      if (numa && *numa != *device.numa) {
        numa = unknown<int>("functions below it report different NUMA nodes");
        break;
      }
      if (!numa)
        numa = device.numa;
    }
    node_.host_bridges[i].numa = numa;
  }
}

namespace {

/// Model and UUID from /proc/driver/nvidia/gpus/<address>/information. Before the driver has
/// initialised a GPU, its UUID is a row of question marks.
void read_nvidia_information(const Sysroot& sysroot, const std::string& address, Gpu& gpu) {
  const std::string path = "/proc/driver/nvidia/gpus/" + address + "/information";
  const Attribute information = read_attribute(sysroot, path);
  if (!information.text) {
    gpu.name = unknown<std::string>(information.origin);
    gpu.uuid = unknown<std::string>(information.origin);
    return;
  }
  const auto field = [&information, &path](std::string_view key) {
    const std::optional<std::string> value = parse_field(*information.text, key);
    if (!value || value->empty() || value->find('?') != std::string::npos)
      return unknown<std::string>(path + " has no " + std::string(key));
    return known(*value, path);
  };
  gpu.name = field("Model");
  gpu.uuid = field("GPU UUID");
}

} // namespace

void read_gpus(const Sysroot& sysroot, Node& node) {
  for (std::size_t i = 0; i < node.pci.size(); ++i) {
    const PciDevice& device = node.pci[i];
    const std::string address = to_string(device.address);
    const std::uint16_t vendor = device.vendor.value.value_or(0);
    if (!device.class_code || !pci_ids::is_gpu(*device.class_code, vendor))
      continue;
    if (sysroot.exists("/sys/bus/pci/devices/" + address + "/physfn")) {
      node.notes.push_back(address + " is a virtual function of a GPU and is left out");
      continue;
    }
    Gpu gpu;
    gpu.pci = static_cast<int>(i);
    gpu.vendor = pci_ids::gpu_vendor(vendor);
    gpu.numa = device.numa;
    gpu.cpus = unknown<std::string>("only NVML reports a GPU's CPU affinity");
    gpu.driver_index = unknown<int>("only NVML numbers GPUs");
    gpu.name = gpu.uuid = unknown<std::string>("the driver was not queried");
    if (vendor == pci_ids::nvidia)
      read_nvidia_information(sysroot, address, gpu);
    node.gpus.push_back(std::move(gpu));
  }
}

namespace {

const std::string cpu_folder = "/sys/devices/system/cpu";
const std::string node_folder = "/sys/devices/system/node";
constexpr std::size_t max_cpuinfo_bytes = std::size_t{16} << 20;

/// N of names like cpuN or nodeN; empty for names such as "cpufreq".
std::optional<int> numbered(const std::string& name, std::string_view prefix) {
  if (!starts_with(name, prefix) || name.size() == prefix.size() ||
      name.find_first_not_of("0123456789", prefix.size()) != std::string::npos)
    return std::nullopt;
  const std::optional<long long> number =
      parse_integer(std::string_view(name).substr(prefix.size()));
  if (!number || *number > max_os_index)
    return std::nullopt;
  return static_cast<int>(*number);
}

std::optional<int> parse_id(const std::string& text) {
  const std::optional<long long> id = parse_integer(text);
  if (!id || *id < 0 || *id > max_os_index)
    return std::nullopt;
  return static_cast<int>(*id);
}

/// CPU -> package, for the CPUs that have one (the online ones).
std::map<int, int> packages_of_cpus(const Sysroot& sysroot) {
  std::map<int, int> packages;
  for (const std::string& name : sysroot.list(cpu_folder)) {
    const std::optional<int> cpu = numbered(name, "cpu");
    if (!cpu)
      continue;
    const Fact<int> package = read_fact<int>(
        sysroot, fmt::format("{}/{}/topology/physical_package_id", cpu_folder, name), parse_id);
    if (package)
      packages[*cpu] = *package;
  }
  return packages;
}

/// The model name, if all CPUs have one and the same (x86 calls it "model name", POWER "cpu").
Fact<std::string> cpu_model(const Sysroot& sysroot) {
  const std::optional<std::string> text = sysroot.read("/proc/cpuinfo", max_cpuinfo_bytes);
  if (!text)
    return unknown<std::string>("/proc/cpuinfo is absent");
  std::set<std::string> models;
  for (const std::string& line : split(*text, '\n')) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos)
      continue;
    const std::string_view key = trim(std::string_view(line).substr(0, colon));
    if (key == "model name" || key == "cpu")
      models.emplace(trim(std::string_view(line).substr(colon + 1)));
    if (models.size() > 1)
      return unknown<std::string>("/proc/cpuinfo names several models");
  }
  if (models.empty() || !is_device_name(*models.begin()))
    return unknown<std::string>("/proc/cpuinfo names no model");
  return known(*models.begin(), "/proc/cpuinfo");
}

/// cpulist, or, if a kernel or a copy lacks it, cpumap.
Fact<CpuSet> cpus_of_node(const Sysroot& sysroot, const std::string& folder) {
  const auto as_list = [](const std::string& text) { return parse_cpulist(text); };
  const auto as_map = [](const std::string& text) { return parse_cpumap(text); };
  Fact<CpuSet> list = read_fact<CpuSet>(sysroot, folder + "/cpulist", as_list);
  if (list)
    return list;
  Fact<CpuSet> map = read_fact<CpuSet>(sysroot, folder + "/cpumap", as_map);
  return map ? map : list;
}

/// The package that all these CPUs are in.
Fact<int> package_of(const CpuSet& cpus, const std::map<int, int>& packages,
                     const std::string& origin) {
  std::set<int> found;
  for (const auto& [cpu, package] : packages)
    if (cpus.contains(cpu))
      found.insert(package);
  if (found.size() == 1)
    return known(*found.begin(), origin);
  return unknown<int>(origin + (found.empty() ? ": its CPUs name no package"
                                              : ": its CPUs are in several packages"));
}

/// NUMA node of a GPU's memory -> the GPU's name under /proc/driver/nvidia/gpus.
std::map<int, std::string> gpu_memory_nodes(const Sysroot& sysroot) {
  std::map<int, std::string> nodes;
  const std::string folder = "/proc/driver/nvidia/gpus";
  for (const std::string& name : sysroot.list(folder)) {
    const Attribute status =
        read_attribute(sysroot, fmt::format("{}/{}/numa_status", folder, name));
    if (!status.text || !parse_pci_address(name))
      continue;
    const std::optional<std::string> text = parse_field(*status.text, "Node");
    const std::optional<int> node = text ? parse_id(*text) : std::nullopt;
    if (node)
      nodes[*node] = name;
  }
  return nodes;
}

/// The package nearest to a GPU, by the local CPUs of its PCI function.
Fact<int> package_of_gpu(const Sysroot& sysroot, const std::string& name,
                         const std::map<int, int>& packages) {
  const std::string path = "/sys/bus/pci/devices/" + name + "/local_cpus";
  const auto as_map = [](const std::string& text) { return parse_cpumap(text); };
  const Fact<CpuSet> cpus = read_fact<CpuSet>(sysroot, path, as_map);
  return cpus ? package_of(*cpus, packages, path) : unknown<int>(cpus.origin);
}

/// One NUMA node from its folder. `gpu` is the GPU whose memory it is, or "".
NumaNode describe_numa(const Sysroot& sysroot, int number, const std::string& gpu,
                       const std::map<int, int>& packages) {
  const std::string folder = node_folder + "/node" + std::to_string(number);
  const auto total = [](const std::string& text) { return parse_memory_total_bytes(text); };
  const Fact<CpuSet> cpus = cpus_of_node(sysroot, folder);
  NumaNode numa;
  numa.os_index = number;
  numa.cpus = cpus ? known(format_cpulist(*cpus), cpus.origin) : unknown<std::string>(cpus.origin);
  numa.memory_bytes = read_fact<std::uint64_t>(sysroot, folder + "/meminfo", total);
  if (!gpu.empty()) {
    numa.kind = NumaKind::gpu_memory;
    numa.package = package_of_gpu(sysroot, gpu, packages);
  } else if (!cpus) {
    numa.package = unknown<int>(cpus.origin);
  } else {
    numa.kind = (*cpus).empty() ? NumaKind::other_memory : NumaKind::cpu;
    numa.package = package_of(*cpus, packages, cpus.origin);
  }
  return numa;
}

/// Whether the NUMA node has no CPUs and no memory: such nodes are reserved by a driver (GB200's
/// for MIG instances) or for hot-plugged memory.
bool is_empty(const NumaNode& numa) {
  return numa.cpus && (*numa.cpus).empty() && numa.memory_bytes && *numa.memory_bytes == 0;
}

} // namespace

void add_memory_nodes(const Sysroot& sysroot, Node& node) {
  const std::map<int, std::string> gpu_memory = gpu_memory_nodes(sysroot);
  const std::map<int, int> packages = packages_of_cpus(sysroot);
  std::size_t empty_nodes = 0;
  for (const std::string& name : sysroot.list(node_folder)) {
    const std::optional<int> number = numbered(name, "node");
    if (!number || name != "node" + std::to_string(*number))
      continue;
    const auto gpu = gpu_memory.find(*number);
    const auto listed =
        std::find_if(node.numa_nodes.begin(), node.numa_nodes.end(),
                     [&number](const NumaNode& other) { return other.os_index == *number; });
    if (listed != node.numa_nodes.end()) {
      if (gpu != gpu_memory.end())
        listed->kind = NumaKind::gpu_memory;
      continue;
    }
    NumaNode numa =
        describe_numa(sysroot, *number, gpu != gpu_memory.end() ? gpu->second : "", packages);
    if (is_empty(numa))
      ++empty_nodes;
    else
      node.numa_nodes.push_back(std::move(numa));
  }
  if (empty_nodes > 0)
    node.remarks.push_back(counted(empty_nodes, "NUMA node") + " without CPUs and memory " +
                           (empty_nodes == 1 ? "is" : "are") + " left out");
  std::sort(node.numa_nodes.begin(), node.numa_nodes.end(),
            [](const NumaNode& a, const NumaNode& b) { return a.os_index < b.os_index; });
}

void read_cpus_sysfs(const Sysroot& sysroot, Node& node) {
  const Fact<std::string> model = cpu_model(sysroot);
  std::set<int> seen;
  for (const auto& [cpu, package] : packages_of_cpus(sysroot))
    if (seen.insert(package).second)
      node.packages.push_back({package, model});
  std::sort(node.packages.begin(), node.packages.end(),
            [](const Package& a, const Package& b) { return a.os_index < b.os_index; });
  add_memory_nodes(sysroot, node);
}

} // namespace shmemctl
