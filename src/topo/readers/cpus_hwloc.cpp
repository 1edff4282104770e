// Packages and NUMA nodes of this machine, by hwloc.
#include <hwloc.h>

#include "src/base/unique_handle.h"
#include "src/topo/cpu_set.h"
#include "src/topo/readers/machine_parts.h"

namespace shmemctl {

namespace {

using Topology = CHandle<hwloc_topology, hwloc_topology_destroy>;

/// Only what we read: no I/O, caches or cores, so that it stays fast with hundreds of CPUs. The x86
/// backend is left out because it binds this thread to every CPU in turn; Linux tells the same.
Topology load_topology() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0)
    return nullptr;
  Topology topology(raw);
  hwloc_topology_set_components(raw, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
  hwloc_topology_set_all_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_type_filter(raw, HWLOC_OBJ_PACKAGE, HWLOC_TYPE_FILTER_KEEP_ALL);
  hwloc_topology_set_flags(
      raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED | HWLOC_TOPOLOGY_FLAG_NO_DISTANCES |
               HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS | HWLOC_TOPOLOGY_FLAG_NO_CPUKINDS);
  return hwloc_topology_load(raw) == 0 ? std::move(topology) : nullptr;
}

/// hwloc says -1 as unsigned where the system gives no number.
int os_index(const hwloc_obj& object) {
  return static_cast<int>(object.os_index == HWLOC_UNKNOWN_INDEX ? object.logical_index
                                                                 : object.os_index);
}

Package describe_package(hwloc_obj& object) {
  Package package;
  package.os_index = os_index(object);
  const char* model = hwloc_obj_get_info_by_name(&object, "CPUModel");
  package.model = model != nullptr ? known<std::string>(model, "hwloc: CPUModel")
                                   : unknown<std::string>("hwloc names no CPUModel");
  return package;
}

std::string cpulist_of(hwloc_const_cpuset_t bitmap) {
  CpuSet cpus;
  for (int cpu = hwloc_bitmap_first(bitmap); cpu >= 0 && cpu < max_cpus;
       cpu = hwloc_bitmap_next(bitmap, cpu))
    cpus.add(cpu);
  return format_cpulist(cpus);
}

NumaNode describe_numa(hwloc_topology_t topology, hwloc_obj& object) {
  NumaNode numa;
  numa.os_index = os_index(object);
  const bool has_cpus = hwloc_bitmap_iszero(object.cpuset) == 0;
  numa.kind = has_cpus ? NumaKind::cpu : NumaKind::other_memory;
  numa.cpus = known(cpulist_of(object.cpuset), "hwloc: cpuset");
  numa.memory_bytes =
      known<std::uint64_t>(object.attr->numanode.local_memory, "hwloc: local memory");
  const hwloc_obj* package = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_PACKAGE, &object);
  numa.package = package != nullptr ? known(os_index(*package), "hwloc: parent package")
                                    : unknown<int>("hwloc puts it in no single package");
  return numa;
}

/// A machine with one NUMA node may have it above its only package: still that package's.
void settle_single_package(Node& node) {
  if (node.packages.size() != 1)
    return;
  for (NumaNode& numa : node.numa_nodes)
    if (!numa.package)
      numa.package = known(node.packages.front().os_index, "hwloc: the only package");
}

} // namespace

void read_cpus_hwloc(const Sysroot& sysroot, Node& node) {
  const Topology topology = load_topology();
  if (!topology) {
    node.notes.emplace_back("hwloc could not read this machine; its CPUs are read from sysfs");
    read_cpus_sysfs(sysroot, node);
    return;
  }
  hwloc_obj* package = nullptr;
  while ((package = hwloc_get_next_obj_by_type(topology.get(), HWLOC_OBJ_PACKAGE, package)))
    node.packages.push_back(describe_package(*package));
  hwloc_obj* numa = nullptr;
  while ((numa = hwloc_get_next_obj_by_type(topology.get(), HWLOC_OBJ_NUMANODE, numa)))
    node.numa_nodes.push_back(describe_numa(topology.get(), *numa));
  settle_single_package(node);
  add_memory_nodes(sysroot, node);
}

} // namespace shmemctl
