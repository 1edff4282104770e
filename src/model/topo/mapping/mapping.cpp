// Which NICs each PE uses: the policies, the request, and the result.
#include "src/model/topo/mapping/mapping.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "src/base/error.h"
#include "src/model/topo/mapping/nvshmem_devices.h"
#include "src/model/topo/mapping/ports.h"

namespace shmemctl {

namespace {

using PortKey = std::pair<int, int>; // NIC, port

std::set<PortKey> max_table_ports(const Mapping& mapping) {
  std::set<PortKey> ports;
  for (const TableEntry& row : mapping.table.entries) {
    const auto device = static_cast<std::size_t>(row.device);
    if (device < mapping.table_nics.size())
      ports.insert({mapping.table_nics[device], row.port});
  }
  return ports;
}

/// The (NIC, port) pairs among which traffic should be even: wanted_ports(). For NVSHMEM's policy,
/// only those of them in its device table or, if there are none, the whole table.
std::set<PortKey> eligible_ports(const Node& node, const Mapping& mapping) {
  std::set<PortKey> fabric;
  for (const NicUse& use : wanted_ports(node, mapping.request))
    fabric.insert({use.nic, use.port});
  if (mapping.request.policy != Policy::nvshmem)
    return fabric;
  const std::set<PortKey> table = max_table_ports(mapping);
  std::set<PortKey> both;
  std::set_intersection(table.begin(), table.end(), fabric.begin(), fabric.end(),
                        std::inserter(both, both.end()));
  return both.empty() ? table : both;
}

} // namespace

const char* to_string(Policy policy) {
  switch (policy) {
  case Policy::nvshmem:
    return "nvshmem";
  case Policy::nccl:
    return "nccl";
  case Policy::optimal:
    return "optimal";
  }
  return "nvshmem";
}

const char* to_string(World world) {
  switch (world) {
  case World::node:
    return "node";
  case World::deepep_ht:
    return "deepep-ht";
  case World::deepep_ll:
    return "deepep-ll";
  }
  return "node";
}

NvshmemSettings settings_in(World world, NvshmemSettings settings) {
  if (world != World::node)
    settings.transport = NvshmemTransport::ibgda;
  return settings;
}

std::vector<int> assign_gpus(const Node& node, int pes, const std::vector<int>& gpu_list) {
  const auto gpu_count = static_cast<int>(node.gpus.size());
  for (int gpu : gpu_list)
    if (gpu < 0 || gpu >= gpu_count)
      throw input_error("list of GPUs", "", "no GPU " + std::to_string(gpu),
                        gpu_count == 0
                            ? "omit the list: this node has no GPU"
                            : "pass indices of GPUs from 0 to " + std::to_string(gpu_count - 1));
  std::vector<int> available = gpu_list;
  if (available.empty())
    for (int gpu = 0; gpu < gpu_count; ++gpu)
      available.push_back(gpu);
  if (pes < 0)
    return available;
  std::vector<int> gpus(static_cast<std::size_t>(pes), -1);
  if (!available.empty())
    for (std::size_t pe = 0; pe < gpus.size(); ++pe)
      gpus[pe] = available[pe % available.size()];
  return gpus;
}

void fill_loads(const Node& node, Mapping& mapping) {
  std::map<PortKey, NicLoad> loads;
  const std::set<PortKey> eligible = eligible_ports(node, mapping);
  for (const PortKey& key : eligible)
    loads[key] = NicLoad{key.first, key.second, {}, 0, 0};
  double total = 0;
  for (const PeMapping& pe : mapping.pes) {
    const std::size_t used =
        std::min(pe.nics.size(), static_cast<std::size_t>(std::max(pe.used, 0)));
    for (std::size_t i = 0; i < used; ++i) {
      const NicUse& use = pe.nics[i];
      NicLoad& load = loads.try_emplace({use.nic, use.port}, NicLoad{use.nic, use.port, {}, 0, 0})
                          .first->second;
      if (load.pes.empty() || load.pes.back() != pe.pe)
        load.pes.push_back(pe.pe);
      load.load += 1.0 / static_cast<double>(used);
    }
    total += used > 0 ? 1 : 0;
  }
  mapping.nics.clear();
  mapping.load_factor = 0;
  for (auto& [key, load] : loads) {
    if (total > 0)
      load.load_factor =
          load.load * static_cast<double>(std::max<std::size_t>(1, eligible.size())) / total;
    mapping.load_factor = std::max(mapping.load_factor, load.load_factor);
    mapping.nics.push_back(std::move(load));
  }
}

namespace {

Mapping map_by_policy(const Node& node, const MappingRequest& request) {
  switch (request.policy) {
  case Policy::nvshmem:
    return map_nvshmem(node, request);
  case Policy::nccl:
    return map_nccl(node, request);
  case Policy::optimal:
    return map_optimal(node, request);
  }
  return map_nvshmem(node, request);
}

/// A mapping without NICs, since one that the source does not list may be nearer than those that it
/// lists.
Mapping with_hidden_nics(const Node& node, const MappingRequest& request) {
  Mapping mapping;
  mapping.request = request;
  mapping.undecided = std::to_string(node.hidden_nics) + " NICs of this node are not shown";
  for (std::size_t i = 0; i < request.gpus.size(); ++i) {
    PeMapping pe;
    pe.pe = static_cast<int>(i);
    pe.gpu = request.gpus[i];
    pe.reason = "unknown: " + mapping.undecided;
    mapping.pes.push_back(std::move(pe));
  }
  return mapping;
}

} // namespace

Mapping map_nics(const Node& node, const MappingRequest& request) {
  if (node.hidden_nics > 0)
    return with_hidden_nics(node, request);
  Mapping mapping = map_by_policy(node, request);
  fill_loads(node, mapping);
  return mapping;
}

PathClass nvshmem_path_class(const std::string& gpu_path, const std::string& nic_path,
                             bool numa_equal) {
  int depth = 0;
  int score = 0;
  bool same = true;
  for (std::size_t i = 0; i < gpu_path.size(); ++i) {
    same = same && i < nic_path.size() && nic_path[i] == gpu_path[i];
    if (gpu_path[i] != '/')
      continue;
    ++depth;
    score += same ? 1 : 0;
  }
  if (score <= 3)
    return numa_equal ? PathClass::node : PathClass::sys;
  // Is checked before PIX, so that a GPU whose path has five slashes (a root port's) is never PIX.
  if (score == 4)
    return PathClass::phb;
  return score == depth - 1 ? PathClass::pix : PathClass::pxb;
}

} // namespace shmemctl
