// Packages and NUMA nodes from /sys/devices/system, and GPU memory from /proc/driver/nvidia.
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

#include "src/base/text.h"
#include "src/topo/cpu_set.h"
#include "src/topo/readers/machine_parts.h"
#include "src/topo/readers/sysfs_values.h"

namespace shmemctl {

namespace {

const std::string cpu_folder = "/sys/devices/system/cpu";
const std::string node_folder = "/sys/devices/system/node";
constexpr std::size_t max_cpuinfo_bytes = std::size_t{16} << 20;

/// N of names like cpuN or nodeN; nothing for "cpufreq" and such.
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

/// CPU -> its package, of the CPUs that say so (those that are online).
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

/// cpulist, or where a kernel or a copy lacks it, cpumap.
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

/// The package next to a GPU, by the CPUs that its PCI function calls local.
Fact<int> package_of_gpu(const Sysroot& sysroot, const std::string& name,
                         const std::map<int, int>& packages) {
  const std::string path = "/sys/bus/pci/devices/" + name + "/local_cpus";
  const auto as_map = [](const std::string& text) { return parse_cpumap(text); };
  const Fact<CpuSet> cpus = read_fact<CpuSet>(sysroot, path, as_map);
  return cpus ? package_of(*cpus, packages, path) : unknown<int>(cpus.origin);
}

/// One NUMA node as its folder tells it. `gpu` is the GPU whose memory it is, or "".
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

/// Kept free by a driver (GB200's for MIG instances) or for memory that may be plugged in.
bool is_empty(const NumaNode& numa) {
  return numa.cpus && (*numa.cpus).empty() && numa.memory_bytes && *numa.memory_bytes == 0;
}

} // namespace

void add_memory_nodes(const Sysroot& sysroot, Node& node) {
  const std::map<int, std::string> gpu_memory = gpu_memory_nodes(sysroot);
  const std::map<int, int> packages = packages_of_cpus(sysroot);
  int empty_nodes = 0;
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
    node.remarks.push_back(std::to_string(empty_nodes) +
                           " NUMA nodes without CPUs and memory are left out");
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
