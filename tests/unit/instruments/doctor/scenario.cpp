#include "tests/unit/instruments/doctor/scenario.h"

#include <fmt/format.h>
#include <stdexcept>

namespace shmemctl {

namespace {

constexpr const char* origin = "test";

int add_function(Node& node, const std::string& address, PciKind kind, int parent,
                 int host_bridge) {
  PciDevice device;
  device.address = parse_pci_address(address).value();
  device.kind = kind;
  device.parent = parent;
  device.host_bridge = host_bridge;
  device.link = {known(32.0, origin), known(16, origin), known(32.0, origin), known(16, origin)};
  node.pci.push_back(device);
  return static_cast<int>(node.pci.size()) - 1;
}

Gpu make_gpu(int index, int pci) {
  Gpu gpu;
  gpu.index = index;
  gpu.pci = pci;
  gpu.vendor = "nvidia";
  gpu.name = known<std::string>("NVIDIA H100 80GB HBM3", origin);
  GpuLink link;
  link.target = LinkTarget::gpu;
  link.count = 18;
  gpu.links.push_back(link);
  return gpu;
}

Nic make_hca(int index, int pci) {
  Nic nic;
  nic.name = "mlx5_" + std::to_string(index);
  nic.pci = pci;
  nic.rdma = known(true, origin);
  nic.driver = known<std::string>("mlx5_core", origin);
  NicPort port;
  port.state = known(PortState::active, origin);
  port.link_layer = known(LinkLayer::infiniband, origin);
  port.rate_Gbps = known(400.0, origin);
  nic.ports.push_back(port);
  return nic;
}

void put_byte(std::string& bytes, std::size_t at, unsigned value) {
  bytes[at] = static_cast<char>(value & 0xffU);
}
void put_word(std::string& bytes, std::size_t at, unsigned value) {
  put_byte(bytes, at, value);
  put_byte(bytes, at + 1, value >> 8);
}

} // namespace

Node healthy_node() {
  Node node;
  node.format = "sysroot";
  for (int i = 0; i < 2; ++i) {
    const int bus = 0x10 * (i + 1);
    node.host_bridges.push_back({0, static_cast<std::uint8_t>(bus), {}, {}, true});
    auto address = [&](int below, int device) {
      return fmt::format("0000:{:02x}:{:02x}.0", bus + below, device);
    };
    const int root = add_function(node, address(0, 1), PciKind::bridge, -1, i);
    const int upstream = add_function(node, address(1, 0), PciKind::bridge, root, i);
    const int to_gpu = add_function(node, address(2, 0), PciKind::bridge, upstream, i);
    const int to_nic = add_function(node, address(2, 1), PciKind::bridge, upstream, i);
    const int gpu = add_function(node, address(3, 0), PciKind::endpoint, to_gpu, i);
    const int nic = add_function(node, address(4, 0), PciKind::endpoint, to_nic, i);
    node.gpus.push_back(make_gpu(i, gpu));
    node.nics.push_back(make_hca(i, nic));
    NumaNode numa;
    numa.os_index = i;
    node.numa_nodes.push_back(numa);
  }
  return node;
}

Node roce_node() {
  Node node = healthy_node();
  for (int i = 0; i < 2; ++i) {
    NicPort& port = node.nics[static_cast<std::size_t>(i)].ports.front();
    port.link_layer = known(LinkLayer::ethernet, origin);
    port.netdev = known("eth" + std::to_string(i), origin);
    const Fact<std::string> v1 = known<std::string>("IB/RoCE v1", origin);
    const Fact<std::string> v2 = known<std::string>("RoCE v2", origin);
    const std::string local = "fe80:0000:0000:0000:0000:00ff:fe00:000" + std::to_string(i);
    const std::string ipv4 = "0000:0000:0000:0000:0000:ffff:0a00:000" + std::to_string(i);
    port.gids = {{0, local, v1, port.netdev},
                 {1, local, v2, port.netdev},
                 {2, ipv4, v1, port.netdev},
                 {3, ipv4, v2, port.netdev}};
  }
  return node;
}

Node node_without_gpus() {
  Node node = healthy_node();
  node.gpus.clear();
  return node;
}

Node node_without_rdma() {
  Node node = healthy_node();
  node.nics.clear();
  return node;
}

PciDevice& function_at(Node& node, const std::string& address) {
  for (PciDevice& device : node.pci)
    if (to_string(device.address) == address)
      return device;
  throw std::logic_error("no function " + address);
}

std::string config_bytes(std::size_t size, std::uint16_t device_control,
                         std::uint16_t acs_control) {
  std::string bytes(4096, '\0');
  put_word(bytes, 0x06, 0x10);   // status: has capabilities
  put_byte(bytes, 0x34, 0x40);   // the first one: power management
  put_word(bytes, 0x40, 0x6001); // id 0x01, next at 0x60
  put_word(bytes, 0x60, 0x0010); // id 0x10 (PCI Express), the last
  put_word(bytes, 0x68, device_control);
  put_word(bytes, 0x100, 0x0001); // advanced error reporting, version 2, next at 0x148
  put_word(bytes, 0x102, 0x1482);
  put_word(bytes, 0x148, 0x000d); // ACS, version 1, the last
  put_word(bytes, 0x14a, 0x0001);
  put_word(bytes, 0x14e, acs_control);
  bytes.resize(size);
  return bytes;
}

} // namespace shmemctl
