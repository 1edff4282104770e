#include "cli/host_description.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/session.h"
#include "src/base/loaded_libraries.h"
#include "src/model/topo/mapping/mapping_json.h"
#include "src/model/topo/writers/node_kind.h"
#include "src/model/topo/writers/writer.h"

namespace shmemctl {

std::vector<HostPes> hosts_of_job(const Placement& placement) {
  std::vector<HostPes> places;
  std::map<std::uint64_t, std::size_t> index;
  for (std::size_t pe = 0; pe < placement.hosts.size(); ++pe) {
    const auto found = index.emplace(placement.hosts[pe].machine_id, places.size());
    if (found.second)
      places.push_back({static_cast<int>(pe), {}, {}});
    HostPes& place = places[found.first->second];
    place.pes.push_back(static_cast<int>(pe));
    if (const int node = placement.node[pe];
        std::find(place.nodes.begin(), place.nodes.end(), node) == place.nodes.end())
      place.nodes.push_back(node);
  }
  return places;
}

HostDescription describe_host(const Node& node, const Mapping& mapping,
                              const std::vector<int>& node_pes, const HostPes& place,
                              const Node& machine, const Sysroot* sysroot) {
  HostDescription description;
  description.host = described_host(machine, sysroot);
  // the libraries of this process say nothing about a copied tree
  if (sysroot != nullptr && sysroot->live())
    for (const auto& [name, version] : loaded_library_versions())
      description.host["versions"][name] = version;
  description.host["pes"] = place.pes;
  description.host["nodes"] = place.nodes;
  Report report;
  put_node(node, numbered_by_job(mapping, node_pes), report);
  description.kind = node_kind(report.topology, mapping_json(node, mapping, {}));
  description.topology = std::move(report.topology);
  description.mapping = std::move(report.mapping);
  return description;
}

} // namespace shmemctl
