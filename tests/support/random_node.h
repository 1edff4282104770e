// Random node models for property tests: every field takes part, every index is valid.
#pragma once

#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "src/model/topo/node.h"

namespace shmemctl::test {

/// Draws values; the same seed gives the same node on every machine (no std distributions, whose
/// results differ between libraries).
class NodeGenerator {
public:
  explicit NodeGenerator(std::mt19937_64& random) : random_(random) {}

  Node node() {
    Node node;
    node.format = "random";
    node.hostname = one_in(3) ? "" : "host" + std::to_string(below(100));
    add_packages(node);
    add_numa_nodes(node);
    const bool addresses = !one_in(8); // a recorded matrix without legend has none
    if (addresses)
      add_pci(node);
    add_gpus(node);
    add_nics(node);
    node.nvswitches = one_in(2) ? 0 : below(12);
    node.hidden_nics = one_in(4) ? below(12) : 0;
    for (std::vector<std::string>* list : {&node.notes, &node.remarks})
      for (int left = one_in(3) ? below(3) : 0; left > 0; --left)
        list->push_back(word());
    if (!addresses || one_in(6))
      node.recorded = matrix(node.gpus.size() + node.nics.size());
    normalize(node);
    return node;
  }

private:
  int below(int limit) {
    return static_cast<int>(random_() % static_cast<std::uint64_t>(limit < 1 ? 1 : limit));
  }
  bool one_in(int n) { return below(n) == 0; }
  template <class T>
  const T& pick(const std::vector<T>& items) {
    return items[static_cast<std::size_t>(below(static_cast<int>(items.size())))];
  }
  /// Known in two of three cases.
  template <class T>
  Fact<T> fact(T value) {
    return one_in(3) ? unknown<T>(word()) : known<T>(std::move(value), "random");
  }

  /// Text with what formats like to treat as special.
  std::string word() {
    static const std::vector<std::string> words = {"NVIDIA H100 80GB HBM3",
                                                   "a",
                                                   "x<y>&\"z\"",
                                                   "it's",
                                                   "caf\xc3\xa9",
                                                   "a;b=c%3b",
                                                   "?unsure",
                                                   "100%",
                                                   "-",
                                                   "=",
                                                   "[1,2]",
                                                   "{}",
                                                   "0",
                                                   "-1",
                                                   "\\n",
                                                   "n/a",
                                                   "two  blanks",
                                                   "#"};
    return pick(words);
  }
  std::string cpulist() {
    static const std::vector<std::string> lists = {"0", "0-15", "0-15,64-79", "1,3,5,7", "96-127"};
    return pick(lists);
  }
  std::string hex(int digits) {
    std::string text;
    for (int i = 0; i < digits; ++i)
      text += "0123456789abcdef"[below(16)];
    return text;
  }
  Fact<int> numa(const Node& node) {
    if (node.numa_nodes.empty() || one_in(4))
      return unknown<int>("numa_node reads -1");
    return known(pick(node.numa_nodes).os_index, "random");
  }

  void add_packages(Node& node) {
    int os_index = 0;
    for (int left = below(3); left > 0; --left, os_index += 1 + below(2))
      node.packages.push_back({os_index, fact(word())});
  }

  void add_numa_nodes(Node& node) {
    int os_index = 0;
    for (int left = below(5); left > 0; --left, os_index += 1 + below(3)) {
      NumaNode numa;
      numa.os_index = os_index;
      numa.kind = static_cast<NumaKind>(one_in(3) ? below(3) : 0);
      if (!node.packages.empty())
        numa.package = fact(pick(node.packages).os_index);
      numa.cpus = fact(cpulist());
      numa.memory_bytes = fact(random_());
      node.numa_nodes.push_back(numa);
    }
  }

  PciAddress fresh_address() {
    static const std::vector<std::uint32_t> domains = {0, 0, 0, 1, 9, 0x10000, 0xffffffff};
    for (;;) {
      const PciAddress address{pick(domains), static_cast<std::uint8_t>(below(256)),
                               static_cast<std::uint8_t>(below(32)),
                               static_cast<std::uint8_t>(one_in(3) ? below(8) : 0)};
      if (used_.insert(address).second)
        return address;
    }
  }

  void add_pci(Node& node) {
    std::set<std::pair<std::uint32_t, int>> buses;
    for (int left = below(4); left > 0; --left) {
      HostBridge bridge;
      bridge.domain = one_in(4) ? 1 : 0;
      bridge.bus = static_cast<std::uint8_t>(below(256));
      bridge.numa = numa(node);
      if (!node.packages.empty())
        bridge.package = fact(pick(node.packages).os_index);
      bridge.exact = !one_in(4);
      if (buses.insert({bridge.domain, bridge.bus}).second)
        node.host_bridges.push_back(bridge);
    }
    for (int left = below(24); left > 0; --left)
      node.pci.push_back(pci_device(node));
  }

  PciDevice pci_device(const Node& node) {
    PciDevice entry;
    entry.address = fresh_address();
    entry.kind = one_in(2)   ? PciKind::endpoint
                 : one_in(3) ? PciKind::whole_switch
                             : PciKind::bridge;
    std::vector<int> bridges;
    for (std::size_t i = 0; i < node.pci.size(); ++i)
      if (node.pci[i].kind != PciKind::endpoint)
        bridges.push_back(static_cast<int>(i));
    if (!bridges.empty() && !one_in(3)) {
      entry.parent = pick(bridges);
      entry.host_bridge = node.pci[static_cast<std::size_t>(entry.parent)].host_bridge;
    } else if (!node.host_bridges.empty() && !one_in(6)) {
      entry.host_bridge = below(static_cast<int>(node.host_bridges.size()));
    }
    const bool bridge = entry.kind != PciKind::endpoint;
    entry.class_code = fact<std::uint32_t>(bridge ? 0x060400 : one_in(2) ? 0x030200 : 0x020700);
    entry.vendor = fact<std::uint16_t>(one_in(2) ? pci_ids::nvidia : pci_ids::mellanox);
    entry.device = fact(static_cast<std::uint16_t>(below(65536)));
    entry.subsystem_vendor = fact(static_cast<std::uint16_t>(below(65536)));
    entry.subsystem_device = fact(static_cast<std::uint16_t>(below(65536)));
    entry.numa = numa(node);
    entry.link = link();
    if (one_in(2))
      entry.sysfs_path = "/sys/devices/pci0000:00/" + to_string(entry.address);
    return entry;
  }

  PcieLink link() {
    static const std::vector<double> speeds = {2.5, 5, 8, 16, 32, 64};
    static const std::vector<int> widths = {1, 2, 4, 8, 16};
    PcieLink link;
    link.speed_GTps = fact(pick(speeds));
    link.width = fact(pick(widths));
    link.max_speed_GTps = fact(pick(speeds));
    link.max_width = fact(pick(widths));
    return link;
  }

  std::vector<int> endpoints(const Node& node) {
    std::vector<int> found;
    for (std::size_t i = 0; i < node.pci.size(); ++i)
      if (node.pci[i].kind == PciKind::endpoint)
        found.push_back(static_cast<int>(i));
    return found;
  }

  void add_gpus(Node& node) {
    std::vector<int> free = endpoints(node);
    const int count = below(5);
    for (int i = 0; i < count; ++i) {
      Gpu gpu;
      gpu.index = i;
      if (!free.empty() && !one_in(8)) {
        const int at = below(static_cast<int>(free.size()));
        gpu.pci = free[static_cast<std::size_t>(at)];
        free.erase(free.begin() + at);
      }
      gpu.vendor = std::vector<std::string>{"nvidia", "amd", "intel", ""}[below(4)];
      gpu.name = fact(word());
      gpu.uuid = fact("GPU-" + hex(8));
      gpu.numa = numa(node);
      gpu.numa_affinity = fact(cpulist());
      gpu.memory_numa = fact(below(64));
      gpu.cpus = fact(cpulist());
      gpu.driver_index = fact(below(16));
      node.gpus.push_back(gpu);
    }
    for (Gpu& gpu : node.gpus)
      for (int left = below(4); left > 0; --left)
        gpu.links.push_back(gpu_link(node));
  }

  GpuLink gpu_link(const Node& node) {
    GpuLink link;
    link.kind = static_cast<GpuLinkKind>(below(3));
    link.target = static_cast<LinkTarget>(below(4));
    const int peer = node.gpus.empty() ? -1 : pick(node.gpus).pci;
    if (link.target == LinkTarget::gpu && peer >= 0)
      link.target_address = node.pci[static_cast<std::size_t>(peer)].address;
    else if (one_in(2))
      link.target_address = fresh_address();
    link.count = 1 + below(18);
    link.bandwidth_GBps = fact(pick(std::vector<double>{25.0, 53.125, 1.0 / 3.0, 0.0, 1e-9, 2e9}));
    return link;
  }

  void add_nics(Node& node) {
    const std::vector<int> places = endpoints(node);
    const int count = below(6);
    for (int i = 0; i < count; ++i) {
      Nic nic;
      nic.name = (one_in(4) ? "eth" : "mlx5_") + std::to_string(i);
      nic.unnamed = one_in(6);
      if (nic.unnamed)
        nic.name = (one_in(2) ? "nic" : "NIC") + std::to_string(i);
      nic.source_number = fact(below(64));
      if (!places.empty() && !one_in(5))
        nic.pci = pick(places); // two devices may share a function
      nic.rdma = fact(!one_in(3));
      nic.driver = fact<std::string>(one_in(2) ? "mlx5_core" : "efa");
      nic.numa = numa(node);
      nic.firmware = fact<std::string>("28.39.1002 (" + word() + ")");
      nic.node_guid = fact(hex(4) + ":" + hex(4));
      nic.virtual_device = nic.pci < 0 && one_in(2);
      nic.data_direct = fact(fresh_address());
      for (int number = 1, left = below(3); left > 0; --left, number += 1 + below(2))
        nic.ports.push_back(port(number));
      node.nics.push_back(nic);
    }
  }

  NicPort port(int number) {
    NicPort port;
    port.number = number;
    port.state = fact(static_cast<PortState>(below(4)));
    port.link_layer = fact(static_cast<LinkLayer>(below(3)));
    port.rate_Gbps = fact(pick(std::vector<double>{10, 100, 200, 400, 2.5, 56.25}));
    port.lid = fact(below(65536));
    port.active_mtu_bytes = fact(pick(std::vector<int>{256, 1024, 4096}));
    port.netdev = fact<std::string>("ens" + std::to_string(below(10)));
    for (int index = 0, left = below(3); left > 0; --left, index += 1 + below(3)) {
      Gid gid;
      gid.index = index;
      gid.value = "fe80:0000:0000:0000:" + hex(4) + ":" + hex(4) + ":" + hex(4) + ":" + hex(4);
      gid.type = fact<std::string>(one_in(2) ? "RoCE v2" : "IB/RoCE v1");
      gid.netdev = fact<std::string>("ens" + std::to_string(below(10)));
      port.gids.push_back(gid);
    }
    return port;
  }

  DistanceMatrix matrix(std::size_t count) {
    DistanceMatrix matrix(count, std::vector<Distance>(count));
    for (std::size_t i = 0; i < count; ++i) {
      matrix[i][i].path = PathClass::self;
      for (std::size_t j = 0; j < i; ++j) {
        Distance& cell = matrix[i][j];
        if (one_in(8)) {
          cell.reason = word();
        } else {
          cell.path = static_cast<PathClass>(1 + below(6));
          cell.links = *cell.path == PathClass::nvlink ? 1 + below(18) : 0;
        }
        matrix[j][i] = cell;
      }
    }
    return matrix;
  }

  std::mt19937_64& random_;
  std::set<PciAddress> used_;
};

/// A well-formed, normalized node: parents come first, indices and NUMA nodes exist, addresses,
/// host bridges and NIC names are unique. It may be empty, and anything may be unknown.
inline Node random_node(std::mt19937_64& random) {
  return NodeGenerator(random).node();
}

} // namespace shmemctl::test
