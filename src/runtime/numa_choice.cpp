#include "src/runtime/numa_choice.h"

#include <algorithm>

#include "src/base/text.h"

namespace shmemctl {

namespace {

constexpr std::string_view allowed_key = "Cpus_allowed_list:";

bool has_memory(const NumaNode& numa) {
  return !numa.memory_bytes || *numa.memory_bytes > 0;
}

bool holds(const NumaNode& numa, const CpuSet& cpus) {
  // Memory of GPUs, or beside that of the CPUs, is for those who ask for it.
  if (numa.kind != NumaKind::cpu || !numa.cpus || cpus.empty())
    return false;
  const std::optional<CpuSet> own = parse_cpulist(*numa.cpus);
  return own && intersection(*own, cpus) == cpus;
}

/// Nothing if the GPU's node is unknown, or is none that a host's heap belongs on.
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
    return {numa->os_index, spread + "its GPU " + std::to_string(gpu) + " is there"};
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
