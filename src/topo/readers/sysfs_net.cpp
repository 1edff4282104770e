// Network interfaces from /sys/class/net.
#include <fmt/format.h>
#include <set>

#include "src/base/text.h"
#include "src/topo/readers/machine_parts.h"
#include "src/topo/readers/sysfs_values.h"

namespace shmemctl {

namespace {

const std::string net_folder = "/sys/class/net";

/// operstate in the words of an RDMA port.
std::optional<PortState> parse_operstate(const std::string& text) {
  if (text == "up")
    return PortState::active;
  if (text == "down" || text == "lowerlayerdown" || text == "notpresent")
    return PortState::down;
  if (text == "dormant" || text == "testing")
    return PortState::init;
  return std::nullopt; // "unknown": the driver does not say
}

/// Mbit/s; -1 where the link is down or the driver (virtio) does not say.
std::optional<double> parse_speed_Gbps(const std::string& text) {
  const std::optional<long long> speed_Mbps = parse_integer(text);
  if (!speed_Mbps || *speed_Mbps <= 0 || *speed_Mbps >= 0xffffffffLL)
    return std::nullopt;
  return static_cast<double>(*speed_Mbps) / 1000.0;
}

/// ARPHRD numbers: 1 Ethernet, 32 InfiniBand.
std::optional<LinkLayer> parse_hardware_type(const std::string& text) {
  if (text == "1")
    return LinkLayer::ethernet;
  if (text == "32")
    return LinkLayer::infiniband;
  return parse_integer(text) ? std::optional(LinkLayer::other) : std::nullopt;
}

NicPort describe_port(const Sysroot& sysroot, const std::string& name) {
  const std::string folder = net_folder + "/" + name;
  NicPort port;
  port.state = read_fact<PortState>(sysroot, folder + "/operstate", parse_operstate);
  port.link_layer = read_fact<LinkLayer>(sysroot, folder + "/type", parse_hardware_type);
  port.rate_Gbps = read_fact<double>(sysroot, folder + "/speed", parse_speed_Gbps);
  port.lid = unknown<int>("not an RDMA port");
  port.active_mtu_bytes = unknown<int>("not an RDMA port");
  port.netdev = known(name, folder);
  return port;
}

} // namespace

std::vector<Netdev> list_netdevs(const Sysroot& sysroot, PciTree& pci) {
  std::vector<Netdev> netdevs;
  for (const std::string& name : sysroot.list(net_folder)) {
    const std::string folder = fmt::format("{}/{}", net_folder, name);
    const std::optional<std::string> device = sysroot.realpath(folder + "/device");
    if (!device || !is_device_name(name))
      continue;
    Netdev netdev;
    netdev.name = name;
    netdev.pci = pci.add_ancestor(*device);
    if (netdev.pci < 0)
      continue;
    netdev.port_index =
        read_fact<long long>(sysroot, folder + "/dev_port", [](const std::string& text) {
          return parse_integer(text);
        }).value;
    // Uplinks are named p0, p1; representors pf0vf3, pf0sf1, pf0hpf.
    const Attribute port_name = read_attribute(sysroot, folder + "/phys_port_name");
    netdev.representor = port_name.text && starts_with(*port_name.text, "pf");
    netdevs.push_back(std::move(netdev));
  }
  return netdevs;
}

void read_other_nics(const Sysroot& sysroot, PciTree& pci, Node& node) {
  std::set<int> rdma_functions;
  for (const Nic& nic : node.nics)
    if (nic.pci >= 0)
      rdma_functions.insert(nic.pci);
  for (const Netdev& netdev : list_netdevs(sysroot, pci)) {
    const PciDevice& function = node.pci[static_cast<std::size_t>(netdev.pci)];
    if (netdev.representor || rdma_functions.count(netdev.pci) != 0 || !function.class_code ||
        !pci_ids::is_network(*function.class_code))
      continue;
    Nic nic;
    nic.name = netdev.name;
    nic.pci = netdev.pci;
    nic.rdma = known(false, "/sys/class/infiniband has no device on this function");
    nic.driver = driver_of(sysroot, net_folder + "/" + netdev.name);
    nic.numa = function.numa;
    nic.firmware = unknown<std::string>("sysfs tells no firmware of a network interface");
    nic.node_guid = unknown<std::string>("not an RDMA device");
    nic.data_direct = unknown<PciAddress>("not an RDMA device");
    nic.ports.push_back(describe_port(sysroot, netdev.name));
    node.nics.push_back(std::move(nic));
  }
}

} // namespace shmemctl
