#include <algorithm>

#include "src/base/text.h"
#include "src/runtime/locality.h"

namespace shmemctl {

namespace {

void add_once(std::vector<HcaPort>& ports, const HcaPort& port) {
  if (std::find(ports.begin(), ports.end(), port) == ports.end())
    ports.push_back(port);
}

std::vector<HcaPort> ports_of_table(const Node& node, const Mapping& mapping) {
  std::vector<HcaPort> ports;
  for (const TableEntry& entry : mapping.table.entries) {
    const int nic = mapping.table_nics[static_cast<std::size_t>(entry.device)];
    add_once(ports, {node.nics[static_cast<std::size_t>(nic)].name, entry.port});
  }
  return ports;
}

std::vector<NicUse> uses_of(const Node& node, const std::vector<HcaPort>& ports) {
  std::vector<NicUse> uses;
  for (const HcaPort& port : ports)
    for (std::size_t nic = 0; nic < node.nics.size(); ++nic)
      if (node.nics[nic].name == port.device)
        uses.push_back(
            {static_cast<int>(nic), port.port, Distance{std::nullopt, 0, "the PE has no GPU"}});
  return uses;
}

} // namespace

std::vector<HcaPort> ports_of_pe(const Node& node, const Mapping& mapping, std::size_t local_pe,
                                 std::size_t local_pes) {
  std::vector<HcaPort> ports;
  if (local_pe >= mapping.pes.size())
    return ports;
  const PeMapping& pe_mapping = mapping.pes[local_pe];
  if (pe_mapping.gpu < 0) {
    const std::vector<HcaPort> all = ports_of_table(node, mapping);
    for (std::size_t at = all.empty() ? 0 : local_pe % all.size(); at < all.size(); at += local_pes)
      ports.push_back(all[at]);
    return ports;
  }
  for (int i = 0; i < pe_mapping.used && i < static_cast<int>(pe_mapping.nics.size()); ++i) {
    const NicUse& use = pe_mapping.nics[static_cast<std::size_t>(i)];
    add_once(ports, {node.nics[static_cast<std::size_t>(use.nic)].name, use.port});
  }
  return ports;
}

Mapping mapping_in_use(const Node& node, Mapping mapping, std::size_t local_pes) {
  const Mapping given = mapping;
  for (std::size_t pe = 0; pe < mapping.pes.size(); ++pe) {
    PeMapping& pe_mapping = mapping.pes[pe];
    if (pe_mapping.gpu >= 0)
      continue;
    pe_mapping.nics = uses_of(node, ports_of_pe(node, given, pe, local_pes));
    pe_mapping.used = static_cast<int>(pe_mapping.nics.size());
    if (pe_mapping.nics.empty())
      continue;
    pe_mapping.chosen_by = "shared";
    pe_mapping.reason = "it has no GPU: the PEs of the node share all NICs";
  }
  fill_loads(node, mapping);
  return mapping;
}

namespace {

constexpr std::string_view allowed_key = "Cpus_allowed_list:";

bool has_memory(const NumaNode& numa) {
  return !numa.memory_bytes || *numa.memory_bytes > 0;
}

bool holds(const NumaNode& numa, const CpuSet& cpus) {
  // NUMA nodes of GPU memory, and nodes without CPUs, are never chosen.
  if (numa.kind != NumaKind::cpu || !numa.cpus || cpus.empty())
    return false;
  const std::optional<CpuSet> own = parse_cpulist(*numa.cpus);
  return own && intersection(*own, cpus) == cpus;
}

/// The GPU's NUMA node; nullptr if it is unknown or is not a node of host memory.
const NumaNode* node_of_gpu(const Node& node, int gpu) {
  if (gpu < 0 || static_cast<std::size_t>(gpu) >= node.gpus.size())
    return nullptr;
  const Fact<int>& wanted = node.gpus[static_cast<std::size_t>(gpu)].numa;
  const auto found =
      std::find_if(node.numa_nodes.begin(), node.numa_nodes.end(), [&](const NumaNode& numa) {
        return wanted && numa.os_index == *wanted && numa.kind == NumaKind::cpu;
      });
  return found == node.numa_nodes.end() ? nullptr : &*found;
}

} // namespace

NumaChoice choose_numa_node(const Node& node, const CpuSet& bound_to, int gpu) {
  if (std::count_if(node.numa_nodes.begin(), node.numa_nodes.end(), has_memory) < 2)
    return {-1, "this machine has one"};
  for (const NumaNode& numa : node.numa_nodes)
    if (holds(numa, bound_to))
      return {numa.os_index, "the PE is bound to its CPUs (" + format_cpulist(bound_to) + ")"};
  const std::string spread = "the PE is not bound to the CPUs of one node, and ";
  if (const NumaNode* numa = node_of_gpu(node, gpu))
    return {numa->os_index, spread + "its GPU " + std::to_string(gpu) + " is on node " +
                                std::to_string(numa->os_index)};
  return {-1, spread + (gpu < 0 ? "has no GPU" : "its GPU's node is unknown")};
}

CpuSet allowed_cpus(const Sysroot& sysroot) {
  const std::string status = sysroot.read("/proc/thread-self/status").value_or("");
  for (const std::string& line : split(status, '\n'))
    if (starts_with(line, allowed_key))
      return parse_cpulist(trim(std::string_view(line).substr(allowed_key.size())))
          .value_or(CpuSet());
  return {};
}

} // namespace shmemctl
