#include "src/topo/node.h"

#include <algorithm>
#include <numeric>

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
    return !rdma || *rdma; // not known to lack it: keep it among the candidates
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

} // namespace shmemctl
