#include "src/topo/mapping/ports.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "src/base/text.h"
#include "src/topo/distance.h"
#include "src/topo/mapping/nic_roles.h"
#include "src/topo/mapping/nvshmem_versions.h"

namespace shmemctl {

namespace {

const Nic& nic_of(const Node& node, int nic) {
  return node.nics[static_cast<std::size_t>(nic)];
}

const Fact<int>& nic_numa(const Node& node, int index) {
  const Nic& nic = nic_of(node, index);
  return nic.numa || nic.pci < 0 ? nic.numa : node.pci[static_cast<std::size_t>(nic.pci)].numa;
}

} // namespace

const NicPort* find_port(const Node& node, int nic, int port) {
  const std::vector<NicPort>& ports = nic_of(node, nic).ports;
  const auto found = std::find_if(ports.begin(), ports.end(), [port](const NicPort& candidate) {
    return candidate.number == port;
  });
  return found == ports.end() ? nullptr : &*found;
}

std::optional<LinkLayer> link_layer_of(const Node& node, int nic, int port) {
  const NicPort* known_port = find_port(node, nic, port);
  if (known_port != nullptr && known_port->link_layer)
    return *known_port->link_layer;
  const std::string& name = nic_of(node, nic).name;
  auto has = [&name](const char* part) { return name.find(part) != std::string::npos; };
  if (starts_with(name, "ib") || has("_ib"))
    return LinkLayer::infiniband;
  if (starts_with(name, "roce") || starts_with(name, "iw") || has("_eth") || has("_roce"))
    return LinkLayer::ethernet;
  return std::nullopt;
}

std::vector<NicUse> usable_ports(const Node& node) {
  std::vector<NicUse> real;
  std::vector<NicUse> emulated;
  for (std::size_t i = 0; i < node.nics.size(); ++i) {
    const Nic& nic = node.nics[i];
    if (nic.rdma && !*nic.rdma)
      continue;
    std::vector<NicUse>& group = nic.virtual_device ? emulated : real;
    if (nic.ports.empty())
      group.push_back(NicUse{static_cast<int>(i), 1, {}});
    for (const NicPort& port : nic.ports)
      if (!port.state || *port.state == PortState::active)
        group.push_back(NicUse{static_cast<int>(i), port.number, {}});
  }
  return real.empty() ? emulated : real;
}

std::vector<NicUse> fabric_ports(const Node& node) {
  std::vector<NicUse> ports;
  for (const RatedPort& rated : port_roles(node))
    if (rated.role == PortRole::compute)
      ports.push_back(rated.port);
  return ports;
}

std::vector<NicUse> candidate_ports(const Node& node) {
  std::vector<NicUse> ports = fabric_ports(node);
  return ports.empty() ? usable_ports(node) : ports;
}

std::vector<NicUse> ports_left_out(const Node& node, const MappingRequest& request) {
  const NvshmemSettings& settings = request.nvshmem;
  if (request.policy == Policy::nccl || !settings.hca_list)
    return {};
  const HcaList list = parse_hca_list(*settings.hca_list, hca_list_capacity(settings.version));
  std::vector<NicUse> left_out;
  for (const NicUse& use : usable_ports(node))
    for (const HcaListEntry& entry : list.entries)
      if (list.exclude && nic_of(node, use.nic).name == entry.name &&
          (entry.port == -1 || entry.port == use.port)) {
        left_out.push_back(use);
        break;
      }
  return left_out;
}

std::vector<NicUse> wanted_ports(const Node& node, const MappingRequest& request) {
  const std::vector<NicUse> all = candidate_ports(node);
  const std::vector<NicUse> left_out = ports_left_out(node, request);
  std::vector<NicUse> wanted = all;
  std::erase_if(wanted, [&left_out](const NicUse& use) {
    return std::find(left_out.begin(), left_out.end(), use) != left_out.end();
  });
  return wanted.empty() ? all : wanted;
}

MappingRequest optimal_request(MappingRequest request) {
  if (request.policy == Policy::nccl)
    request.nvshmem.hca_list.reset();
  request.policy = Policy::optimal;
  return request;
}

Distance gpu_nic_distance(const Node& node, int gpu, int nic) {
  if (gpu < 0)
    return Distance{std::nullopt, 0, "the PE has no GPU"};
  return distance(node, gpu, static_cast<int>(node.gpus.size()) + nic);
}

int distance_rank(const Distance& distance) {
  if (!distance.path)
    return 4;
  switch (*distance.path) {
  case PathClass::self:
  case PathClass::nvlink:
  case PathClass::pix:
    return 0;
  case PathClass::pxb:
    return 1;
  case PathClass::phb:
    return 2;
  case PathClass::node:
    return 3;
  case PathClass::sys:
    return 4;
  }
  return 4;
}

bool crosses_numa(const Node& node, int gpu, int nic) {
  if (gpu < 0)
    return false;
  const Fact<int>& left = node.gpus[static_cast<std::size_t>(gpu)].numa;
  const Fact<int>& right = nic_numa(node, nic);
  return left && right && *left != *right;
}

int nics_per_pe(const NvshmemSettings& settings, std::size_t pes, std::size_t ports) {
  if (pes == 0 || ports == 0)
    return 0;
  if (settings.transport != NvshmemTransport::ibgda || !settings.ibgda_multi_port)
    return 1;
  return static_cast<int>(std::max<std::size_t>(1, ports / pes));
}

MappingScore score(const Node& node, const Mapping& mapping) {
  MappingScore result;
  std::map<std::pair<int, int>, double> loads;
  const std::vector<NicUse> fabric = candidate_ports(node);
  for (const PeMapping& pe : mapping.pes) {
    const std::size_t used =
        std::min(pe.nics.size(), static_cast<std::size_t>(std::max(pe.used, 0)));
    result.without_nic += used == 0 ? 1 : 0;
    for (std::size_t i = 0; i < used; ++i) {
      const NicUse& use = pe.nics[i];
      double& load = loads[{use.nic, use.port}];
      load += 1.0 / static_cast<double>(used);
      result.worst_load = std::max(result.worst_load, load);
      result.off_fabric += std::find(fabric.begin(), fabric.end(), use) == fabric.end() ? 1 : 0;
      result.distance += distance_rank(gpu_nic_distance(node, pe.gpu, use.nic));
      result.crossings += crosses_numa(node, pe.gpu, use.nic) ? 1 : 0;
    }
  }
  return result;
}

bool at_least_as_good(const MappingScore& left, const MappingScore& right) {
  // Loads are sums of fractions: an even share may differ in its last bits.
  constexpr double rounding = 1e-9;
  if (left.without_nic != right.without_nic)
    return left.without_nic < right.without_nic;
  if (left.off_fabric != right.off_fabric)
    return left.off_fabric < right.off_fabric;
  if (std::abs(left.worst_load - right.worst_load) > rounding)
    return left.worst_load < right.worst_load;
  return std::tie(left.distance, left.crossings) <= std::tie(right.distance, right.crossings);
}

} // namespace shmemctl
