// The ports of a node that carry compute traffic, their roles and their paths to GPUs.
#include "src/model/topo/mapping/ports.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "src/base/text.h"
#include "src/model/topo/distance.h"
#include "src/model/topo/mapping/nvshmem_mapping.h"
#include "src/model/topo/pcie.h"

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
  const std::vector<NicUse> all = fabric_ports(node);
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
  const std::vector<NicUse> fabric = fabric_ports(node);
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
  // Loads are sums of fractions: equal shares may differ in their last bits.
  constexpr double rounding = 1e-9;
  if (left.without_nic != right.without_nic)
    return left.without_nic < right.without_nic;
  if (left.off_fabric != right.off_fabric)
    return left.off_fabric < right.off_fabric;
  if (std::abs(left.worst_load - right.worst_load) > rounding)
    return left.worst_load < right.worst_load;
  return std::tie(left.distance, left.crossings) <= std::tie(right.distance, right.crossings);
}

namespace {

constexpr int rank_below_one_switch = 1; // PXB or nearer
constexpr int rank_unknown = -1;

/// Whether the device is an EFA, if driver, vendor or name determine that. rdma-core calls devices
/// that are neither InfiniBand nor Ethernet rdmap*.
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

/// The known facts about a port's kind.
struct PortKind {
  std::optional<LinkLayer> layer;
  std::optional<double> rate_Gbps;
  std::optional<bool> efa;

  /// That a port is not EFA says nothing about its kind.
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

/// Whether a port belongs to the fabric: it does unless known facts say otherwise. A slower port of
/// the fabric's own NIC model is a member with a degraded link, not another network.
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

/// The distance of each NIC from each GPU, and the nearest NICs of each GPU.
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

  /// Whether the NIC shares a switch with a GPU, or some GPU has no nearer NIC among `others`.
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

/// NICs that would be usable if their ports were not down.
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

/// The kind of port that is the fabric; the first one in a tie. Empty if no kind is known.
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

namespace {

const PciDevice& pci_at(const Node& node, int entry) {
  return node.pci[static_cast<std::size_t>(entry)];
}

/// The content of a PCI function's numa_node file. The kernel's tree has it; other sources may have
/// the NUMA node of the device, or of its host bridge only.
int numa_file(const Node& node, int entry, const Fact<int>& of_device) {
  if (entry < 0)
    return of_device.value.value_or(-1);
  const PciDevice& function = pci_at(node, entry);
  if (function.numa || !function.sysfs_path.empty())
    return function.numa.value.value_or(-1);
  if (of_device)
    return *of_device;
  if (function.host_bridge < 0)
    return -1;
  return node.host_bridges[static_cast<std::size_t>(function.host_bridge)].numa.value.value_or(-1);
}

std::optional<int> pci_entry_of(const Node& node, const PciAddress& address) {
  for (std::size_t i = 0; i < node.pci.size(); ++i)
    if (node.pci[i].address == address)
      return static_cast<int>(i);
  return std::nullopt;
}

SysfsLocation location(const Node& node, int entry, const Fact<int>& numa_of_device) {
  return {entry < 0 ? "" : synthesized_sysfs_path(node, entry),
          numa_file(node, entry, numa_of_device), ""};
}

/// A recorded cell as a class: empty if it is unknown or is not a PCIe class.
std::optional<PathClass> recorded_class(const Node& node, int gpu, int nic) {
  const auto row = static_cast<std::size_t>(gpu);
  const std::size_t column = node.gpus.size() + static_cast<std::size_t>(nic);
  if (row >= node.recorded->size() || column >= (*node.recorded)[row].size())
    return std::nullopt;
  const Distance& cell = (*node.recorded)[row][column];
  if (!cell.path || *cell.path == PathClass::self || *cell.path == PathClass::nvlink)
    return std::nullopt;
  return cell.path;
}

/// "mlx5_0, mlx5_1, mlx5_2 and 5 more"
std::string some_of(const std::vector<std::string>& texts, std::string_view separator) {
  constexpr std::size_t shown = 3;
  if (texts.size() <= shown)
    return join(texts, separator);
  const std::vector<std::string> first(texts.begin(), texts.begin() + shown);
  return fmt::format("{} and {} more", join(first, separator), texts.size() - shown);
}

} // namespace

SysfsLocation gpu_location(const Node& node, int gpu) {
  const Gpu& device = node.gpus[static_cast<std::size_t>(gpu)];
  SysfsLocation found = location(node, device.pci, device.numa);
  if (found.path.empty())
    found.doubt = fmt::format("GPU{} has no known PCI path: NODE or SYS by NUMA node", gpu);
  return found;
}

SysfsLocation nic_location(const Node& node, int nic, bool data_direct) {
  const Nic& device = node.nics[static_cast<std::size_t>(nic)];
  const bool wanted = data_direct && device.data_direct;
  if (wanted)
    if (const std::optional<int> entry = pci_entry_of(node, *device.data_direct))
      return location(node, *entry, unknown<int>("of another function"));
  SysfsLocation found = location(node, device.pci, device.numa);
  if (found.path.empty())
    found.doubt = fmt::format("{} has no PCI path: NODE or SYS by NUMA node", device.name);
  else if (wanted)
    found.doubt = fmt::format("the path of {}'s data-direct function {} is unknown; its own is "
                              "used",
                              device.name, to_string(*device.data_direct));
  return found;
}

NvshmemDistances::NvshmemDistances(const Node& node, std::vector<int> nics, bool data_direct)
    : node_(node), nics_(std::move(nics)) {
  if (node.recorded)
    return;
  for (const int nic : nics_)
    locations_.push_back(nic_location(node, nic, data_direct));
}

GpuClasses NvshmemDistances::recorded(int gpu) const {
  GpuClasses classes;
  std::vector<std::string> unknown_to;
  for (const int nic : nics_) {
    const std::optional<PathClass> path = recorded_class(node_, gpu, nic);
    classes.to_nic.push_back(path.value_or(PathClass::sys));
    if (!path)
      unknown_to.push_back(node_.nics[static_cast<std::size_t>(nic)].name);
  }
  if (!unknown_to.empty())
    classes.doubt = fmt::format("the recorded distance from GPU{} to {} is unknown; taken as SYS",
                                gpu, some_of(unknown_to, ", "));
  return classes;
}

GpuClasses NvshmemDistances::of_gpu(int gpu) const {
  if (node_.recorded)
    return recorded(gpu);
  GpuClasses classes;
  const SysfsLocation from = gpu_location(node_, gpu);
  std::vector<std::string> doubts;
  if (!from.doubt.empty())
    doubts.push_back(from.doubt);
  for (const SysfsLocation& to : locations_) {
    classes.to_nic.push_back(nvshmem_path_class(from.path, to.path, from.numa == to.numa));
    if (!to.doubt.empty())
      doubts.push_back(to.doubt);
  }
  classes.doubt = some_of(doubts, "; ");
  return classes;
}

} // namespace shmemctl
