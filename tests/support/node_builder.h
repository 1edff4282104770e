// Builds node models by hand: switch trees as sysfs shows them, or a bare matrix.
#pragma once

#include <array>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "src/model/topo/distance.h"
#include "src/model/topo/node.h"

namespace shmemctl::testing {

/// Port of a NIC that is being built.
struct PortSpec {
  int number = 1;
  PortState state = PortState::active;
  LinkLayer link_layer = LinkLayer::infiniband;
  double rate_Gbps = 400;
};

/// A tree of host bridges, switches and devices. Addresses and sysfs paths are invented as a kernel
/// would number them; handles are indices of Node::pci, or for host bridges of Node::host_bridges.
class NodeBuilder {
public:
  NodeBuilder() { node.format = "built"; }

  Node node;

  int host_bridge(int numa) {
    HostBridge bridge;
    bridge.bus = next_bus();
    bridge.numa = known(numa, "built");
    node.host_bridges.push_back(bridge);
    bool exists = false;
    for (const NumaNode& other : node.numa_nodes)
      exists = exists || other.os_index == numa;
    if (!exists)
      node.numa_nodes.push_back(NumaNode{numa, NumaKind::cpu, known(0, "built"), {}, {}});
    return static_cast<int>(node.host_bridges.size()) - 1;
  }

  /// A root port below a host bridge.
  int root_port(int host) { return add(-1, host, PciKind::bridge, 0x060400); }
  /// A switch below a root port of its own: returns its upstream port.
  int pcie_switch(int host) { return bridge_below(root_port(host)); }
  int bridge_below(int parent) { return add(parent, -1, PciKind::bridge, 0x060400); }

  /// A GPU below a downstream port of a switch, or below `parent` itself if that is a root port.
  int gpu(int parent, bool own_port = true) {
    Gpu gpu;
    gpu.index = static_cast<int>(node.gpus.size());
    gpu.pci = add(own_port ? bridge_below(parent) : parent, -1, PciKind::endpoint, 0x030200);
    PciDevice& device = pci(gpu.pci);
    device.vendor = known(pci_ids::nvidia, "built");
    device.device = known(std::uint16_t{0x2330}, "built");
    gpu.vendor = "nvidia";
    gpu.numa = device.numa;
    node.gpus.push_back(gpu);
    return gpu.index;
  }
  int gpu_at_root(int host) { return gpu(root_port(host), false); }

  int nic(int parent, const std::string& name, const std::vector<PortSpec>& ports = {{}},
          bool own_port = true) {
    Nic nic;
    nic.name = name;
    nic.pci = add(own_port ? bridge_below(parent) : parent, -1, PciKind::endpoint, 0x020700);
    PciDevice& device = pci(nic.pci);
    device.vendor = known(pci_ids::mellanox, "built");
    device.device = known(std::uint16_t{0x1021}, "built");
    nic.rdma = known(true, "built");
    nic.driver = known(std::string("mlx5_core"), "built");
    nic.numa = device.numa;
    for (const PortSpec& spec : ports) {
      NicPort port;
      port.number = spec.number;
      port.state = known(spec.state, "built");
      port.link_layer = known(spec.link_layer, "built");
      port.rate_Gbps = known(spec.rate_Gbps, "built");
      nic.ports.push_back(port);
    }
    node.nics.push_back(nic);
    return static_cast<int>(node.nics.size()) - 1;
  }
  int nic_at_root(int host, const std::string& name, const std::vector<PortSpec>& ports = {{}}) {
    return nic(root_port(host), name, ports, false);
  }
  /// An Ethernet device without RDMA.
  int plain_nic(int host, const std::string& name) {
    const int index = nic_at_root(host, name, {});
    Nic& nic = node.nics[static_cast<std::size_t>(index)];
    nic.rdma = known(false, "built");
    nic.driver = known(std::string("e1000e"), "built");
    pci(nic.pci).class_code = known(0x020000U, "built");
    pci(nic.pci).vendor = known(pci_ids::intel, "built");
    return index;
  }

  void link(int entry, double speed_GTps, int width, double max_speed_GTps, int max_width) {
    PcieLink& link = pci(entry).link;
    link.speed_GTps = known(speed_GTps, "built");
    link.width = known(width, "built");
    link.max_speed_GTps = known(max_speed_GTps, "built");
    link.max_width = known(max_width, "built");
  }

  PciDevice& pci(int entry) { return node.pci[static_cast<std::size_t>(entry)]; }

  /// `pairs` switches with one GPU and one NIC each, half of them on each of two sockets.
  static NodeBuilder hgx(int pairs = 8, int gpus_per_switch = 1, int nics_per_switch = 1) {
    NodeBuilder builder;
    int nics = 0;
    for (int i = 0; i < pairs; ++i) {
      const int tree = builder.pcie_switch(builder.host_bridge(i * 2 / pairs));
      for (int gpu = 0; gpu < gpus_per_switch; ++gpu)
        builder.gpu(tree);
      for (int nic = 0; nic < nics_per_switch; ++nic)
        builder.nic(tree, "mlx5_" + std::to_string(nics++));
    }
    return builder;
  }

  /// A node known only by the matrix of a recorded `nvidia-smi topo -m`: rows of GPU-NIC words.
  /// GPUs see each other as NV18, NICs see each other as SYS.
  static Node from_matrix(const std::vector<std::string>& nic_names,
                          const std::vector<std::vector<std::string>>& rows) {
    Node node;
    node.format = "nvidia-smi";
    for (std::size_t i = 0; i < rows.size(); ++i) {
      Gpu gpu;
      gpu.index = static_cast<int>(i);
      gpu.vendor = "nvidia";
      gpu.numa = unknown<int>("built without");
      node.gpus.push_back(gpu);
    }
    for (const std::string& name : nic_names) {
      Nic nic;
      nic.name = name;
      nic.rdma = unknown<bool>("the matrix does not tell");
      nic.numa = unknown<int>("the matrix does not tell");
      node.nics.push_back(nic);
    }
    const std::size_t gpus = rows.size();
    const std::size_t count = gpus + nic_names.size();
    node.recorded = DistanceMatrix(count, std::vector<Distance>(count));
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t j = 0; j < count; ++j)
        (*node.recorded)[i][j] = *parse_distance(i == j                   ? "X"
                                                 : i < gpus && j < gpus   ? "NV18"
                                                 : i >= gpus && j >= gpus ? "SYS"
                                                 : i < gpus               ? rows[i][j - gpus]
                                                                          : rows[j][i - gpus]);
    return node;
  }

private:
  std::uint8_t next_bus() { return static_cast<std::uint8_t>(bus_++); }

  int add(int parent, int host, PciKind kind, std::uint32_t class_code) {
    PciDevice device;
    device.kind = kind;
    device.parent = parent;
    device.host_bridge = parent >= 0 ? pci(parent).host_bridge : host;
    const HostBridge& root = node.host_bridges[static_cast<std::size_t>(device.host_bridge)];
    // 8 bits of bus are few for 64 switches: a new domain begins when they are used up.
    device.address = PciAddress{static_cast<std::uint32_t>(bus_ / 256), next_bus(), 0, 0};
    device.class_code = known(class_code, "built");
    device.numa = root.numa;
    std::array<char, 32> root_name{};
    std::snprintf(root_name.data(), root_name.size(), "pci%04x:%02x", root.domain, root.bus);
    device.sysfs_path =
        (parent >= 0 ? pci(parent).sysfs_path : std::string("/sys/devices/") + root_name.data()) +
        "/" + to_string(device.address);
    node.pci.push_back(device);
    return static_cast<int>(node.pci.size()) - 1;
  }

  int bus_ = 0;
};

} // namespace shmemctl::testing
