#include "src/topo/mapping/ports.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>

#include "src/base/text.h"
#include "src/topo/distance.h"

namespace shmemctl {

namespace {

const Nic& nic_of(const Node& node, int nic) {
  return node.nics[static_cast<std::size_t>(nic)];
}

/// What is known about a port's kind.
struct PortKind {
  std::optional<LinkLayer> layer;
  std::optional<double> rate_Gbps;

  bool any_known() const { return layer || rate_Gbps; }
  bool operator==(const PortKind&) const = default;
};

PortKind kind_of(const Node& node, const NicUse& use) {
  const NicPort* port = find_port(node, use.nic, use.port);
  return {link_layer_of(node, use.nic, use.port),
          port != nullptr ? port->rate_Gbps.value : std::nullopt};
}

struct PortGroup {
  PortKind kind;
  std::vector<NicUse> ports;
  double weight = 0;
};

/// The compute fabric's own group: the largest total rate, or, as soon as one rate is unknown, the
/// largest number; the first one of equals.
std::optional<PortGroup> largest_group(const Node& node, const std::vector<NicUse>& ports) {
  std::vector<PortGroup> groups;
  bool all_rates = true;
  for (const NicUse& use : ports) {
    const PortKind kind = kind_of(node, use);
    if (!kind.any_known())
      continue;
    all_rates = all_rates && kind.rate_Gbps.has_value();
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&kind](const PortGroup& other) { return other.kind == kind; });
    if (group == groups.end())
      group = groups.insert(groups.end(), PortGroup{kind, {}, 0});
    group->ports.push_back(use);
  }
  for (PortGroup& group : groups)
    group.weight =
        static_cast<double>(group.ports.size()) * (all_rates ? *group.kind.rate_Gbps : 1.0);
  const auto largest =
      std::max_element(groups.begin(), groups.end(),
                       [](const PortGroup& a, const PortGroup& b) { return a.weight < b.weight; });
  return largest == groups.end() ? std::nullopt : std::optional(*largest);
}

bool same_model_of_nic(const Node& node, int left, int right) {
  const int left_pci = nic_of(node, left).pci;
  const int right_pci = nic_of(node, right).pci;
  if (left_pci < 0 || right_pci < 0)
    return false;
  const PciDevice& a = node.pci[static_cast<std::size_t>(left_pci)];
  const PciDevice& b = node.pci[static_cast<std::size_t>(right_pci)];
  return a.vendor && b.vendor && a.device && b.device && *a.vendor == *b.vendor &&
         *a.device == *b.device;
}

/// Unless the facts say otherwise. A slower port of a NIC of the fabric's own model is a member
/// that came up slow, not another network.
bool belongs_to(const Node& node, const NicUse& use, const PortGroup& fabric) {
  const PortKind kind = kind_of(node, use);
  if (kind.layer && fabric.kind.layer && *kind.layer != *fabric.kind.layer)
    return false;
  if (!kind.rate_Gbps || !fabric.kind.rate_Gbps || *kind.rate_Gbps == *fabric.kind.rate_Gbps)
    return true;
  return *kind.rate_Gbps < *fabric.kind.rate_Gbps &&
         std::any_of(fabric.ports.begin(), fabric.ports.end(), [&](const NicUse& member) {
           return same_model_of_nic(node, use.nic, member.nic);
         });
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
  std::vector<NicUse> ports = usable_ports(node);
  const std::optional<PortGroup> fabric = largest_group(node, ports);
  if (fabric)
    std::erase_if(ports, [&](const NicUse& use) { return !belongs_to(node, use, *fabric); });
  return ports;
}

std::vector<NicUse> candidate_ports(const Node& node) {
  std::vector<NicUse> ports = fabric_ports(node);
  return ports.empty() ? usable_ports(node) : ports;
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
