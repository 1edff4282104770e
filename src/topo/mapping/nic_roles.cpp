#include "src/topo/mapping/nic_roles.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

#include "src/base/text.h"
#include "src/topo/mapping/ports.h"

namespace shmemctl {

namespace {

constexpr int rank_below_one_switch = 1; // PXB or nearer
constexpr int rank_unknown = -1;

const Nic& nic_of(const Node& node, int nic) {
  return node.nics[static_cast<std::size_t>(nic)];
}

/// EFA or not, where driver, vendor or name tell it. rdma-core calls devices that are neither
/// InfiniBand nor Ethernet rdmap*.
std::optional<bool> is_efa(const Node& node, int index) {
  const Nic& nic = nic_of(node, index);
  if (nic.driver)
    return *nic.driver == "efa";
  if (nic.pci >= 0)
    if (const Fact<std::uint16_t>& vendor = node.pci[static_cast<std::size_t>(nic.pci)].vendor)
      return *vendor == pci_ids::amazon;
  if (starts_with(nic.name, "efa") || starts_with(nic.name, "rdmap"))
    return true;
  for (const char* other : {"mlx", "ib", "roce", "iw", "bnxt", "irdma", "hfi"})
    if (starts_with(nic.name, other))
      return false;
  return std::nullopt;
}

/// What is known about a port's kind.
struct PortKind {
  std::optional<LinkLayer> layer;
  std::optional<double> rate_Gbps;
  std::optional<bool> efa;

  /// That it is not EFA tells nothing of what it is.
  bool any_known() const { return layer || rate_Gbps || efa.value_or(false); }
  bool operator==(const PortKind& other) const {
    return layer == other.layer && rate_Gbps == other.rate_Gbps &&
           efa.value_or(false) == other.efa.value_or(false);
  }
};

PortKind kind_of(const Node& node, const NicUse& use) {
  const NicPort* port = find_port(node, use.nic, use.port);
  return {link_layer_of(node, use.nic, use.port),
          port != nullptr ? port->rate_Gbps.value : std::nullopt, is_efa(node, use.nic)};
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

struct PortGroup {
  PortKind kind;
  std::vector<NicUse> ports;
  std::size_t nics_for_gpus = 0;
  double weight = 0;
};

/// Unless the facts say otherwise. A slower port of a NIC of the fabric's own model is a member
/// that came up slow, not another network.
bool belongs_to(const Node& node, const NicUse& use, const PortGroup& fabric) {
  const PortKind kind = kind_of(node, use);
  if (kind.layer && fabric.kind.layer && *kind.layer != *fabric.kind.layer)
    return false;
  if (kind.efa && fabric.kind.efa && *kind.efa != *fabric.kind.efa)
    return false;
  if (!kind.rate_Gbps || !fabric.kind.rate_Gbps || *kind.rate_Gbps == *fabric.kind.rate_Gbps)
    return true;
  return *kind.rate_Gbps < *fabric.kind.rate_Gbps &&
         std::any_of(fabric.ports.begin(), fabric.ports.end(), [&](const NicUse& member) {
           return same_model_of_nic(node, use.nic, member.nic);
         });
}

/// How far each NIC is from each GPU, and which NICs are a GPU's nearest.
class Nearness {
public:
  explicit Nearness(const Node& node) {
    for (std::size_t nic = 0; nic < node.nics.size(); ++nic) {
      std::vector<int> to_gpus;
      for (const Gpu& gpu : node.gpus) {
        const Distance distance = gpu_nic_distance(node, gpu.index, static_cast<int>(nic));
        to_gpus.push_back(distance.path ? distance_rank(distance) : rank_unknown);
      }
      ranks_.push_back(std::move(to_gpus));
    }
  }

  bool is_below_a_gpus_switch(int nic) const {
    const std::vector<int>& ranks = ranks_[static_cast<std::size_t>(nic)];
    return std::any_of(ranks.begin(), ranks.end(), [](int rank) {
      return rank != rank_unknown && rank <= rank_below_one_switch;
    });
  }

  /// Whether some GPU has no nearer NIC among `others`, or is below one switch with it.
  bool serves_a_gpu(int nic, const std::set<int>& others) const {
    const std::vector<int>& ranks = ranks_[static_cast<std::size_t>(nic)];
    if (ranks.empty() || is_below_a_gpus_switch(nic))
      return true;
    for (std::size_t gpu = 0; gpu < ranks.size(); ++gpu)
      if (ranks[gpu] == rank_unknown || !any_nearer(ranks[gpu], gpu, others))
        return true;
    return false;
  }

private:
  bool any_nearer(int rank, std::size_t gpu, const std::set<int>& others) const {
    return std::any_of(others.begin(), others.end(), [&](int other) {
      const int theirs = ranks_[static_cast<std::size_t>(other)][gpu];
      return theirs != rank_unknown && theirs < rank;
    });
  }

  std::vector<std::vector<int>> ranks_; ///< [NIC][GPU]
};

/// NICs that would be usable, were a port of theirs not down.
std::set<int> dead_nics(const Node& node) {
  std::set<int> dead;
  for (std::size_t i = 0; i < node.nics.size(); ++i) {
    const Nic& nic = node.nics[i];
    const bool down = !nic.ports.empty() &&
                      std::all_of(nic.ports.begin(), nic.ports.end(), [](const NicPort& port) {
                        return port.state && *port.state != PortState::active;
                      });
    if (down && !nic.virtual_device && (!nic.rdma || *nic.rdma))
      dead.insert(static_cast<int>(i));
  }
  return dead;
}

std::set<int> nics_of(const std::vector<NicUse>& ports) {
  std::set<int> nics;
  for (const NicUse& use : ports)
    nics.insert(use.nic);
  return nics;
}

/// The kind of port that makes the fabric; the first one of equals. Nothing if no kind is known.
std::optional<PortGroup> fabric_kind(const Node& node, const std::vector<NicUse>& ports,
                                     const Nearness& nearness) {
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
      group = groups.insert(groups.end(), PortGroup{kind, {}, 0, 0});
    group->ports.push_back(use);
  }
  const std::set<int> all = nics_of(ports);
  for (PortGroup& group : groups) {
    for (const int nic : nics_of(group.ports))
      group.nics_for_gpus += !node.gpus.empty() && nearness.serves_a_gpu(nic, all) ? 1 : 0;
    group.weight =
        static_cast<double>(group.ports.size()) * (all_rates ? *group.kind.rate_Gbps : 1.0);
  }
  const auto importance = [](const PortGroup& group) {
    return std::tuple(group.nics_for_gpus, group.kind.efa.value_or(false), group.weight);
  };
  const auto largest =
      std::max_element(groups.begin(), groups.end(), [&](const PortGroup& a, const PortGroup& b) {
        return importance(a) < importance(b);
      });
  return largest == groups.end() ? std::nullopt : std::optional(*largest);
}

} // namespace

bool is_efa_device(const Node& node, int nic) {
  return is_efa(node, nic).value_or(false);
}

std::vector<RatedPort> port_roles(const Node& node) {
  const std::vector<NicUse> ports = usable_ports(node);
  const Nearness nearness(node);
  const std::optional<PortGroup> fabric = fabric_kind(node, ports, nearness);
  const std::set<int> dead = dead_nics(node);
  std::vector<RatedPort> rated;
  std::set<int> members = dead;
  for (const NicUse& use : ports) {
    const bool member = !fabric || belongs_to(node, use, *fabric);
    rated.push_back({use, member ? PortRole::compute : PortRole::other_network, true});
    if (member)
      members.insert(use.nic);
  }
  const bool any_below_a_switch = std::any_of(members.begin(), members.end(), [&](int nic) {
    return nearness.is_below_a_gpus_switch(nic);
  });
  bool any_compute = false;
  for (RatedPort& each : rated) {
    each.serves_a_gpu =
        !any_below_a_switch ||
        (each.role == PortRole::other_network ? nearness.is_below_a_gpus_switch(each.port.nic)
                                              : nearness.serves_a_gpu(each.port.nic, members));
    any_compute = any_compute || (each.role == PortRole::compute && each.serves_a_gpu);
  }
  for (RatedPort& each : rated)
    if (any_compute && each.role == PortRole::compute && !each.serves_a_gpu)
      each.role = PortRole::storage;
  return rated;
}

} // namespace shmemctl
