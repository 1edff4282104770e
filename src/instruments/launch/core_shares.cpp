#include "src/instruments/launch/core_shares.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "src/base/text.h"

namespace shmemctl {

namespace {

constexpr const char* nvidia_vendor = "0x10de";
constexpr long long display_class = 0x03; // VGA and 3D controllers

/// Parses the line "Cpus_allowed_list: 0-7" of /proc/self/status.
std::optional<CpuSet> allowed_cpus_of(const Sysroot& sysroot) {
  const std::string key = "Cpus_allowed_list:";
  for (const std::string& line : split(sysroot.read("/proc/self/status").value_or(""), '\n'))
    if (starts_with(line, key))
      return parse_cpulist(trim(line.substr(key.size())));
  return std::nullopt;
}

/// The CPUs that the control group allows. A process that may use all of these is not restricted by
/// anybody but its container.
std::optional<CpuSet> cpus_of_group(const Sysroot& sysroot) {
  std::string group, group_v1;
  for (const std::string& line : split(sysroot.read("/proc/self/cgroup").value_or(""), '\n')) {
    const std::vector<std::string> parts = split(line, ':');
    if (parts.size() == 3 && parts[0] == "0")
      group = parts[2];
    if (parts.size() == 3 && parts[1] == "cpuset")
      group_v1 = parts[2];
  }
  for (const std::string& file : {"/sys/fs/cgroup" + group + "/cpuset.cpus.effective",
                                  std::string("/sys/fs/cgroup/cpuset.cpus.effective"),
                                  "/sys/fs/cgroup/cpuset" + group_v1 + "/cpuset.effective_cpus",
                                  std::string("/sys/fs/cgroup/cpuset/cpuset.effective_cpus")})
    if (const auto text = sysroot.read_line(file); text && !text->empty())
      return parse_cpulist(*text);
  return std::nullopt;
}

std::string value_of(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

/// The GPU of each PE; nothing if there is no GPU, or if a list has other words than GPU indices.
std::optional<std::vector<int>> gpus_of_pes(const Environment& environment, int n_gpus, int n_pes) {
  std::vector<int> visible;
  for (int i = 0; i < n_gpus; ++i)
    visible.push_back(i);
  for (const char* name : {"CUDA_VISIBLE_DEVICES", "SHMEMCTL_GPUS"}) {
    const std::string text = value_of(environment, name);
    if (text.empty())
      continue;
    std::vector<int> chosen;
    for (const std::string& word : split(text, ',')) {
      const auto number = parse_integer(trim(word));
      if (!number || *number < 0 || *number >= static_cast<long long>(visible.size()))
        return std::nullopt;
      chosen.push_back(visible[static_cast<std::size_t>(*number)]);
    }
    visible = std::move(chosen);
  }
  if (visible.empty())
    return std::nullopt;
  std::vector<int> gpus;
  for (int pe = 0; pe < n_pes; ++pe)
    gpus.push_back(visible[static_cast<std::size_t>(pe) % visible.size()]);
  return gpus;
}

/// The usable cores of one NUMA node, and the PEs that share them.
struct NumaShare {
  std::vector<CpuSet> cores;
  std::vector<std::size_t> pes;
  bool has_room() const { return pes.size() < cores.size(); }
  double cores_with_one_more() const {
    return static_cast<double>(cores.size()) / static_cast<double>(pes.size() + 1);
  }
};

NumaShare& roomiest(std::map<int, NumaShare>& nodes) {
  return std::max_element(nodes.begin(), nodes.end(),
                          [](const auto& a, const auto& b) {
                            if (a.second.has_room() != b.second.has_room())
                              return b.second.has_room();
                            return a.second.cores_with_one_more() < b.second.cores_with_one_more();
                          })
      ->second;
}

/// Distributes PEs without a preferred node: each node gets PEs in proportion to its cores, in PE
/// order.
void spread(const std::vector<std::size_t>& pes, std::map<int, NumaShare>& nodes) {
  std::map<int, NumaShare> counted = nodes;
  for (const std::size_t pe : pes)
    roomiest(counted).pes.push_back(pe);
  std::size_t next = 0;
  for (auto& [number, node] : nodes)
    for (std::size_t i = node.pes.size(); i < counted.at(number).pes.size(); ++i)
      node.pes.push_back(pes[next++]);
}

} // namespace

CoreShares share_cores(const CpuLayout& layout, const CpuSet& allowed,
                       const std::vector<int>& numa_of_pe) {
  std::map<int, NumaShare> nodes;
  std::size_t n_cores = 0;
  for (const CpuSet& core : layout.cores)
    if (const CpuSet usable = intersection(core, allowed); !usable.empty()) {
      nodes[layout.numa_of(core).value_or(-1)].cores.push_back(usable);
      ++n_cores;
    }
  const std::size_t n_pes = numa_of_pe.size();
  if (n_pes > n_cores)
    return {{}, fmt::format("{} PEs and {} cores: they have to take turns", n_pes, n_cores), {}};
  CoreShares shares{std::vector<CpuSet>(n_pes), "", {}};
  std::vector<std::size_t> anywhere;
  for (std::size_t pe = 0; pe < n_pes; ++pe) {
    const bool has_wish = numa_of_pe[pe] >= 0;
    const auto wished = nodes.find(numa_of_pe[pe]);
    const bool near_gpu = has_wish && wished != nodes.end() && wished->second.has_room();
    (near_gpu ? wished->second.pes : anywhere).push_back(pe);
    shares.criteria.emplace_back(near_gpu   ? "cores near its GPU"
                                 : has_wish ? "no core near its GPU was free"
                                            : "cores");
  }
  spread(anywhere, nodes);
  for (const auto& entry : nodes) {
    const NumaShare& node = entry.second;
    for (std::size_t i = 0; i < node.pes.size(); ++i)
      for (std::size_t core = i * node.cores.size() / node.pes.size();
           core < (i + 1) * node.cores.size() / node.pes.size(); ++core)
        shares.cpus[node.pes[i]].add(node.cores[core]);
  }
  return shares;
}

std::vector<int> gpu_numa_nodes(const Sysroot& sysroot) {
  const std::string folder = "/sys/bus/pci/devices";
  std::vector<std::string> addresses = sysroot.list(folder);
  std::sort(addresses.begin(), addresses.end()); // sorts hexadecimal numbers, too: 3a after 18
  std::vector<int> nodes;
  for (const std::string& address : addresses) {
    const std::string device = folder + "/" + address;
    const auto code = sysroot.read_integer(device + "/class", 16);
    if (!code || *code >> 16 != display_class ||
        sysroot.read_line(device + "/vendor").value_or("") != nvidia_vendor)
      continue;
    const auto numa = sysroot.read_integer(device + "/numa_node");
    nodes.push_back(numa && *numa >= 0 && *numa < max_cpus ? static_cast<int>(*numa) : -1);
  }
  return nodes;
}

CoreShares choose_core_shares(const Sysroot& sysroot, const Environment& environment, int n_pes) {
  if (n_pes < 2)
    return {{}, "one PE has all of them", {}};
  for (const char* name : {"SHMEMCTL_PROXY_CPUS", "NVSHMEM_PROXY_CPUS"})
    if (!value_of(environment, name).empty())
      return {{}, std::string(name) + " chooses CPUs", {}};
  const std::optional<CpuSet> allowed = allowed_cpus_of(sysroot);
  if (!allowed || allowed->empty())
    return {{}, "the kernel does not report which CPUs may be used", {}};
  const auto online =
      parse_cpulist(sysroot.read_line("/sys/devices/system/cpu/online").value_or(""));
  if (online && intersection(*online, *allowed) != *online && cpus_of_group(sysroot) != allowed)
    return {{},
            fmt::format("this process may use CPUs {} only: somebody has chosen them",
                        format_cpulist(*allowed)),
            {}};
  std::vector<int> numa(static_cast<std::size_t>(n_pes), -1);
  const std::vector<int> of_gpus = gpu_numa_nodes(sysroot);
  if (const auto gpus = gpus_of_pes(environment, static_cast<int>(of_gpus.size()), n_pes))
    for (std::size_t pe = 0; pe < numa.size(); ++pe)
      numa[pe] = of_gpus[static_cast<std::size_t>((*gpus)[pe])];
  return share_cores(read_cpu_layout(sysroot), *allowed, numa);
}

std::string to_text(const CoreShares& shares, const CpuLayout& layout) {
  if (shares.cpus.empty())
    return "PEs are not bound to CPUs: " + shares.reason + "\n";
  std::string text;
  for (std::size_t pe = 0; pe < shares.cpus.size(); ++pe) {
    const auto numa = layout.numa_of(shares.cpus[pe]);
    text += fmt::format("PE {} is bound to CPUs {}{} ({}; run --pin none leaves it free)\n", pe,
                        format_cpulist(shares.cpus[pe]),
                        numa ? fmt::format(" of NUMA node {}", *numa) : "", shares.criteria[pe]);
  }
  return text;
}

} // namespace shmemctl
