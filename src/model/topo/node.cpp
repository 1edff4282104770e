// The node model: plain data; every fact has a source, or the reason why it is unknown.
#include "src/model/topo/node.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fmt/format.h>
#include <numeric>
#include <string_view>

#include "src/base/text.h"

namespace shmemctl {

namespace {

template <class T>
void permute(std::vector<T>& items, const std::vector<int>& order) {
  std::vector<T> moved;
  moved.reserve(items.size());
  for (int old : order)
    moved.push_back(std::move(items[static_cast<std::size_t>(old)]));
  items = std::move(moved);
}

std::vector<int> gpu_order(const Node& node) {
  std::vector<int> order(node.gpus.size());
  std::iota(order.begin(), order.end(), 0);
  const bool all_addressed =
      std::all_of(node.gpus.begin(), node.gpus.end(), [](const Gpu& gpu) { return gpu.pci >= 0; });
  if (all_addressed)
    std::stable_sort(order.begin(), order.end(), [&node](int a, int b) {
      auto address = [&node](int gpu) {
        const int entry = node.gpus[static_cast<std::size_t>(gpu)].pci;
        return node.pci[static_cast<std::size_t>(entry)].address;
      };
      return address(a) < address(b);
    });
  return order;
}

std::vector<int> nic_order(const Node& node) {
  std::vector<int> order(node.nics.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_partition(order.begin(), order.end(), [&node](int nic) {
    const Fact<bool>& rdma = node.nics[static_cast<std::size_t>(nic)].rdma;
    return !rdma || *rdma; // a NIC that may have RDMA remains a candidate
  });
  return order;
}

/// Collects the first difference, with the path of the field.
class Comparison {
public:
  template <class T>
  void field(const std::string& path, const T& left, const T& right) {
    if (difference_.empty() && !(left == right))
      difference_ = path;
  }
  template <class T>
  void field(const std::string& path, const Fact<T>& left, const Fact<T>& right) {
    field(path, left.value, right.value);
  }
  template <class T, class Each>
  void list(const std::string& path, const std::vector<T>& left, const std::vector<T>& right,
            Each each) {
    field(path + ".size", left.size(), right.size());
    for (std::size_t i = 0; difference_.empty() && i < left.size(); ++i)
      each(path + "[" + std::to_string(i) + "]", left[i], right[i]);
  }
  const std::string& difference() const { return difference_; }

private:
  std::string difference_;
};

void compare_pci(Comparison& to, const std::string& at, const PciDevice& a, const PciDevice& b) {
  to.field(at + ".address", a.address, b.address);
  to.field(at + ".kind", a.kind, b.kind);
  to.field(at + ".parent", a.parent, b.parent);
  to.field(at + ".host_bridge", a.host_bridge, b.host_bridge);
  to.field(at + ".class_code", a.class_code, b.class_code);
  to.field(at + ".vendor", a.vendor, b.vendor);
  to.field(at + ".device", a.device, b.device);
  to.field(at + ".subsystem_vendor", a.subsystem_vendor, b.subsystem_vendor);
  to.field(at + ".subsystem_device", a.subsystem_device, b.subsystem_device);
  to.field(at + ".numa", a.numa, b.numa);
  to.field(at + ".link.speed", a.link.speed_GTps, b.link.speed_GTps);
  to.field(at + ".link.width", a.link.width, b.link.width);
  to.field(at + ".link.max_speed", a.link.max_speed_GTps, b.link.max_speed_GTps);
  to.field(at + ".link.max_width", a.link.max_width, b.link.max_width);
  to.field(at + ".sysfs_path", a.sysfs_path, b.sysfs_path);
}

void compare_gpu(Comparison& to, const std::string& at, const Gpu& a, const Gpu& b) {
  to.field(at + ".index", a.index, b.index);
  to.field(at + ".pci", a.pci, b.pci);
  to.field(at + ".vendor", a.vendor, b.vendor);
  to.field(at + ".name", a.name, b.name);
  to.field(at + ".uuid", a.uuid, b.uuid);
  to.field(at + ".numa", a.numa, b.numa);
  to.field(at + ".numa_affinity", a.numa_affinity, b.numa_affinity);
  to.field(at + ".memory_numa", a.memory_numa, b.memory_numa);
  to.field(at + ".cpus", a.cpus, b.cpus);
  to.field(at + ".driver_index", a.driver_index, b.driver_index);
  to.list(at + ".links", a.links, b.links,
          [&to](const std::string& path, const GpuLink& left, const GpuLink& right) {
            to.field(path + ".kind", left.kind, right.kind);
            to.field(path + ".target", left.target, right.target);
            to.field(path + ".target_address", left.target_address, right.target_address);
            to.field(path + ".count", left.count, right.count);
            to.field(path + ".bandwidth", left.bandwidth_GBps, right.bandwidth_GBps);
          });
}

void compare_port(Comparison& to, const std::string& at, const NicPort& a, const NicPort& b) {
  to.field(at + ".number", a.number, b.number);
  to.field(at + ".state", a.state, b.state);
  to.field(at + ".link_layer", a.link_layer, b.link_layer);
  to.field(at + ".rate_Gbps", a.rate_Gbps, b.rate_Gbps);
  to.field(at + ".lid", a.lid, b.lid);
  to.field(at + ".active_mtu_bytes", a.active_mtu_bytes, b.active_mtu_bytes);
  to.field(at + ".netdev", a.netdev, b.netdev);
  to.list(at + ".gids", a.gids, b.gids,
          [&to](const std::string& path, const Gid& left, const Gid& right) {
            to.field(path + ".index", left.index, right.index);
            to.field(path + ".value", left.value, right.value);
            to.field(path + ".type", left.type, right.type);
            to.field(path + ".netdev", left.netdev, right.netdev);
          });
}

void compare_nic(Comparison& to, const std::string& at, const Nic& a, const Nic& b) {
  to.field(at + ".name", a.name, b.name);
  to.field(at + ".unnamed", a.unnamed, b.unnamed);
  to.field(at + ".source_number", a.source_number, b.source_number);
  to.field(at + ".pci", a.pci, b.pci);
  to.field(at + ".rdma", a.rdma, b.rdma);
  to.field(at + ".driver", a.driver, b.driver);
  to.field(at + ".numa", a.numa, b.numa);
  to.field(at + ".firmware", a.firmware, b.firmware);
  to.field(at + ".node_guid", a.node_guid, b.node_guid);
  to.field(at + ".virtual_device", a.virtual_device, b.virtual_device);
  to.field(at + ".data_direct", a.data_direct, b.data_direct);
  to.list(at + ".ports", a.ports, b.ports,
          [&to](const std::string& path, const NicPort& left, const NicPort& right) {
            compare_port(to, path, left, right);
          });
}

} // namespace

void normalize(Node& node) {
  const std::vector<int> gpus = gpu_order(node);
  const std::vector<int> nics = nic_order(node);
  if (node.recorded) {
    std::vector<int> devices = gpus;
    for (int nic : nics)
      devices.push_back(nic + static_cast<int>(gpus.size()));
    permute(*node.recorded, devices);
    for (auto& row : *node.recorded)
      permute(row, devices);
  }
  permute(node.gpus, gpus);
  permute(node.nics, nics);
  for (std::size_t i = 0; i < node.gpus.size(); ++i)
    node.gpus[i].index = static_cast<int>(i);
}

std::string first_difference(const Node& left, const Node& right) {
  Comparison to;
  to.field("hostname", left.hostname, right.hostname);
  to.list("packages", left.packages, right.packages,
          [&to](const std::string& at, const Package& a, const Package& b) {
            to.field(at + ".os_index", a.os_index, b.os_index);
            to.field(at + ".model", a.model, b.model);
          });
  to.list("numa_nodes", left.numa_nodes, right.numa_nodes,
          [&to](const std::string& at, const NumaNode& a, const NumaNode& b) {
            to.field(at + ".os_index", a.os_index, b.os_index);
            to.field(at + ".kind", a.kind, b.kind);
            to.field(at + ".package", a.package, b.package);
            to.field(at + ".cpus", a.cpus, b.cpus);
            to.field(at + ".memory_bytes", a.memory_bytes, b.memory_bytes);
          });
  to.list("host_bridges", left.host_bridges, right.host_bridges,
          [&to](const std::string& at, const HostBridge& a, const HostBridge& b) {
            to.field(at + ".domain", a.domain, b.domain);
            to.field(at + ".bus", a.bus, b.bus);
            to.field(at + ".numa", a.numa, b.numa);
            to.field(at + ".package", a.package, b.package);
            to.field(at + ".exact", a.exact, b.exact);
          });
  to.list("pci", left.pci, right.pci,
          [&to](const std::string& at, const PciDevice& a, const PciDevice& b) {
            compare_pci(to, at, a, b);
          });
  to.list("gpus", left.gpus, right.gpus,
          [&to](const std::string& at, const Gpu& a, const Gpu& b) { compare_gpu(to, at, a, b); });
  to.list("nics", left.nics, right.nics,
          [&to](const std::string& at, const Nic& a, const Nic& b) { compare_nic(to, at, a, b); });
  to.field("nvswitches", left.nvswitches, right.nvswitches);
  to.field("hidden_nics", left.hidden_nics, right.hidden_nics);
  to.field("recorded", left.recorded, right.recorded);
  return to.difference();
}

bool same_model(const Node& left, const Node& right) {
  return first_difference(left, right).empty();
}

namespace pci_ids {

bool is_bridge(std::uint32_t class_code) {
  return class_code >> 8 == 0x0604;
}

bool is_network(std::uint32_t class_code) {
  return class_code >> 16 == 0x02;
}

bool is_nvswitch(std::uint32_t class_code, std::uint16_t vendor) {
  return vendor == nvidia && class_code >> 8 == 0x0680;
}

bool is_gpu(std::uint32_t class_code, std::uint16_t vendor) {
  const std::uint32_t kind = class_code >> 8;
  if (vendor == nvidia || vendor == amd)
    return kind == 0x0300 || kind == 0x0302 || kind == 0x0380 || kind == 0x1200;
  return vendor == intel && (kind == 0x0302 || kind == 0x0380 || kind == 0x1200);
}

const char* gpu_vendor(std::uint16_t vendor) {
  switch (vendor) {
  case nvidia:
    return "nvidia";
  case amd:
    return "amd";
  case intel:
    return "intel";
  default:
    return "";
  }
}

} // namespace pci_ids

namespace {

constexpr int max_depth = 512; ///< twice as many buses as a PCI domain has
constexpr int max_links_of_gpu = 1000;
constexpr int max_ports = 255;
constexpr int max_gids = 65536;

bool in_range(int index, std::size_t size) {
  return index >= -1 && index < static_cast<int>(size);
}

std::string sizes(const Node& node) {
  auto over = [](std::size_t size, int limit) { return size > static_cast<std::size_t>(limit); };
  if (over(node.gpus.size() + node.nics.size(), topo_limits::max_devices))
    return fmt::format("more than {} GPUs and NICs", topo_limits::max_devices);
  if (over(node.pci.size(), topo_limits::max_pci_entries))
    return fmt::format("more than {} PCI functions", topo_limits::max_pci_entries);
  if (over(node.numa_nodes.size(), topo_limits::max_numa_nodes))
    return fmt::format("more than {} NUMA nodes", topo_limits::max_numa_nodes);
  if (over(node.packages.size(), topo_limits::max_packages))
    return fmt::format("more than {} packages", topo_limits::max_packages);
  if (over(node.host_bridges.size(), topo_limits::max_host_bridges))
    return fmt::format("more than {} host bridges", topo_limits::max_host_bridges);
  if (node.nvswitches < 0 || node.nvswitches > topo_limits::max_devices)
    return "a number of NVSwitches that cannot be";
  if (node.hidden_nics < 0 || node.hidden_nics > topo_limits::max_devices)
    return "a number of hidden NICs that cannot be";
  return "";
}

std::string tree(const Node& node) {
  std::vector<int> depth;
  for (std::size_t i = 0; i < node.pci.size(); ++i) {
    const PciDevice& entry = node.pci[i];
    const std::string name = to_string(entry.address);
    if (!in_range(entry.parent, i))
      return "the bridge above " + name + " does not come before it";
    if (!in_range(entry.host_bridge, node.host_bridges.size()))
      return "the host bridge of " + name + " does not exist";
    int above = 0;
    if (entry.parent >= 0) {
      const auto parent = static_cast<std::size_t>(entry.parent);
      if (node.pci[parent].kind == PciKind::endpoint)
        return name + " is below " + to_string(node.pci[parent].address) + ", which is no bridge";
      above = depth[parent] + 1;
    }
    if (above > max_depth)
      return name + fmt::format(" is below more than {} bridges", max_depth);
    depth.push_back(above);
  }
  return "";
}

std::string devices(const Node& node) {
  for (const Gpu& gpu : node.gpus) {
    if (!in_range(gpu.pci, node.pci.size()))
      return fmt::format("the PCI function of GPU {} does not exist", gpu.index);
    if (gpu.links.size() > static_cast<std::size_t>(max_links_of_gpu))
      return fmt::format("GPU {} has more than {} links", gpu.index, max_links_of_gpu);
    for (const GpuLink& link : gpu.links)
      if (link.count < 1 || link.count > max_links_of_gpu)
        return fmt::format("GPU {} has {} links to one target", gpu.index, link.count);
  }
  for (const Nic& nic : node.nics) {
    if (!in_range(nic.pci, node.pci.size()))
      return "the PCI function of the NIC " + nic.name + " does not exist";
    if (nic.ports.size() > static_cast<std::size_t>(max_ports))
      return "the NIC " + nic.name + fmt::format(" has more than {} ports", max_ports);
    for (const NicPort& port : nic.ports)
      if (port.number < 1 || port.number > max_ports ||
          port.gids.size() > static_cast<std::size_t>(max_gids))
        return "the NIC " + nic.name + fmt::format(" has a port {} that cannot be", port.number);
  }
  return "";
}

std::string recorded(const Node& node) {
  if (!node.recorded)
    return "";
  const std::size_t count = node.gpus.size() + node.nics.size();
  if (node.recorded->size() != count)
    return fmt::format("the matrix has {} rows for {} devices", node.recorded->size(), count);
  for (const auto& row : *node.recorded)
    if (row.size() != count)
      return fmt::format("a row of the matrix has {} cells for {} devices", row.size(), count);
  return "";
}

} // namespace

std::string shape_problem(const Node& node) {
  for (const auto& check : {sizes, tree, devices, recorded})
    if (std::string problem = check(node); !problem.empty())
      return problem;
  return "";
}

namespace {

/// rdma_rename(8): a kind, then o (on board), s (slot), p (path) or x (GUID), then a number. A PCI
/// domain other than 0 puts P<domain> in front of p.
bool is_persistent_name(std::string_view name, std::string_view kind) {
  if (!starts_with(name, kind))
    return false;
  const std::string_view rest = name.substr(kind.size());
  return rest.size() >= 2 && std::string_view("ospxP").find(rest[0]) != std::string_view::npos &&
         std::isxdigit(static_cast<unsigned char>(rest[1])) != 0;
}

/// "mlx5_ib" followed by digits.
bool is_numbered(std::string_view name, std::string_view stem) {
  return starts_with(name, stem) && name.size() > stem.size() &&
         name.find_first_not_of("0123456789", stem.size()) == std::string_view::npos;
}

} // namespace

Fact<LinkLayer> link_layer_from_name(const std::string& name) {
  struct Stem {
    std::string_view text;
    LinkLayer layer;
  };
  static constexpr std::array<Stem, 3> persistent = {
      {{"ib", LinkLayer::infiniband}, {"roce", LinkLayer::ethernet}, {"iw", LinkLayer::ethernet}}};
  static constexpr std::array<Stem, 4> numbered = {{{"mlx5_ib", LinkLayer::infiniband},
                                                    {"mlx5_eth", LinkLayer::ethernet},
                                                    {"mlx5_an", LinkLayer::ethernet},
                                                    {"mlx5_bond_", LinkLayer::ethernet}}};
  const std::string origin = "derived from the name " + name;
  for (const Stem& stem : persistent)
    if (is_persistent_name(name, stem.text))
      return known(stem.layer, origin);
  for (const Stem& stem : numbered)
    if (is_numbered(name, stem.text))
      return known(stem.layer, origin);
  return unknown<LinkLayer>("the name " + name + " does not imply the link layer");
}

const char* to_string(PortState state) {
  switch (state) {
  case PortState::down:
    return "DOWN";
  case PortState::init:
    return "INIT";
  case PortState::armed:
    return "ARMED";
  case PortState::active:
    return "ACTIVE";
  }
  return "unknown";
}

const char* to_string(LinkLayer layer) {
  switch (layer) {
  case LinkLayer::infiniband:
    return "InfiniBand";
  case LinkLayer::ethernet:
    return "Ethernet";
  case LinkLayer::other:
    return "other";
  }
  return "unknown";
}

} // namespace shmemctl
