// RDMA devices and their ports from /sys/class/infiniband.
#include <algorithm>
#include <fmt/format.h>

#include "src/base/text.h"
#include "src/topo/readers/machine_parts.h"
#include "src/topo/readers/sysfs_values.h"

namespace shmemctl {

namespace {

const std::string rdma_folder = "/sys/class/infiniband";
const std::string net_folder = "/sys/class/net";

/// The slots of a port's GID table that are in use. Empty slots read as zeros, and their types
/// refuse to be read (EINVAL).
std::vector<Gid> read_gids(const Sysroot& sysroot, const std::string& port) {
  std::vector<Gid> gids;
  for (const std::string& slot : sysroot.list(port + "/gids")) {
    const std::optional<long long> index = parse_integer(slot);
    const Attribute text = read_attribute(sysroot, fmt::format("{}/gids/{}", port, slot));
    const std::optional<std::string> value = text.text ? parse_gid(*text.text) : std::nullopt;
    if (!index || *index < 0 || *index > 0xffff || !value || is_zero_gid(*value))
      continue;
    Gid gid;
    gid.index = static_cast<int>(*index);
    gid.value = *value;
    gid.type = read_text_fact(sysroot, fmt::format("{}/gid_attrs/types/{}", port, slot));
    gid.netdev = read_text_fact(sysroot, fmt::format("{}/gid_attrs/ndevs/{}", port, slot));
    gids.push_back(std::move(gid));
  }
  return gids;
}

/// The port's interface: by its first GID that names one, else the only interface of the function
/// that can be it (IPoIB: dev_port counts from 0).
Fact<std::string> netdev_of(const NicPort& port, std::size_t ports_of_device, int function,
                            const std::vector<Netdev>& netdevs) {
  for (const Gid& gid : port.gids)
    if (gid.netdev)
      return gid.netdev;
  std::vector<const Netdev*> own, same_port;
  for (const Netdev& netdev : netdevs) {
    if (function < 0 || netdev.pci != function || netdev.representor)
      continue;
    own.push_back(&netdev);
    if (netdev.port_index && *netdev.port_index == port.number - 1)
      same_port.push_back(&netdev);
  }
  if (own.size() == 1 && ports_of_device == 1)
    return known(own[0]->name, net_folder + "/" + own[0]->name + "/device");
  if (same_port.size() == 1)
    return known(same_port[0]->name, net_folder + "/" + same_port[0]->name + "/dev_port");
  return unknown<std::string>(own.empty() ? "no network interface is on its PCI function"
                                          : "several network interfaces are on its PCI function");
}

NicPort read_port(const Sysroot& sysroot, const std::string& folder, int number) {
  NicPort port;
  port.number = number;
  const auto state = [](const std::string& text) { return parse_port_state(text); };
  const auto layer = [](const std::string& text) { return parse_link_layer(text); };
  const auto rate = [](const std::string& text) { return parse_rate_Gbps(text); };
  const auto lid = [](const std::string& text) { return parse_lid(text); };
  port.state = read_fact<PortState>(sysroot, folder + "/state", state);
  port.link_layer = read_fact<LinkLayer>(sysroot, folder + "/link_layer", layer);
  port.rate_Gbps = read_fact<double>(sysroot, folder + "/rate", rate);
  port.lid = read_fact<int>(sysroot, folder + "/lid", lid);
  port.active_mtu_bytes = unknown<int>("sysfs does not tell the active MTU of an RDMA port");
  port.gids = read_gids(sysroot, folder);
  return port;
}

std::vector<NicPort> read_ports(const Sysroot& sysroot, const std::string& device) {
  std::vector<NicPort> ports;
  for (const std::string& name : sysroot.list(device + "/ports")) {
    const std::optional<long long> number = parse_integer(name);
    if (number && *number >= 1 && *number <= 255)
      ports.push_back(
          read_port(sysroot, fmt::format("{}/ports/{}", device, name), static_cast<int>(*number)));
  }
  return ports;
}

/// The netdev that a software device (Soft-RoCE, siw) sits on: its `parent` file, or what its GIDs
/// name; "" if neither tells.
std::string parent_netdev(const Sysroot& sysroot, const std::string& device, const Nic& nic) {
  if (const Fact<std::string> parent = read_text_fact(sysroot, device + "/parent"))
    return *parent;
  for (const NicPort& port : nic.ports)
    for (const Gid& gid : port.gids)
      if (gid.netdev)
        return *gid.netdev;
  return "";
}

/// Software devices have no `device` link to read a driver from; two traits of theirs tell.
Fact<std::string> software_driver(const Sysroot& sysroot, const std::string& device) {
  if (sysroot.exists(device + "/parent"))
    return known<std::string>("rdma_rxe", device + "/parent, which Soft-RoCE alone has");
  const Attribute type = read_attribute(sysroot, device + "/node_type");
  if (type.text && starts_with(*type.text, "4:"))
    return known<std::string>("siw", device + "/node_type is RNIC, and there is no device link");
  return unknown<std::string>(device + "/device is absent");
}

bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos;
}

/// The PCI function below the device, or behind the netdev of a software device.
int function_of(const Sysroot& sysroot, const std::string& device, PciTree& pci, const Nic& nic) {
  if (const std::optional<std::string> path = sysroot.realpath(device + "/device"))
    return pci.add_ancestor(*path);
  const std::string netdev = parent_netdev(sysroot, device, nic);
  if (!is_plain_name(netdev))
    return -1;
  const std::optional<std::string> path = sysroot.realpath(net_folder + "/" + netdev + "/device");
  return path ? pci.add_ancestor(*path) : -1;
}

Nic read_device(const Sysroot& sysroot, const std::string& name, PciTree& pci, const Node& node) {
  const std::string device = rdma_folder + "/" + name;
  Nic nic;
  nic.name = name;
  nic.rdma = known(true, device);
  nic.ports = read_ports(sysroot, device);
  nic.firmware = read_text_fact(sysroot, device + "/fw_ver");
  nic.node_guid = read_text_fact(sysroot, device + "/node_guid");
  nic.driver = driver_of(sysroot, device);
  if (!nic.driver && !sysroot.exists(device + "/device"))
    nic.driver = software_driver(sysroot, device);
  nic.pci = function_of(sysroot, device, pci, nic);
  nic.virtual_device = nic.pci < 0;
  nic.numa = nic.pci >= 0 ? node.pci[static_cast<std::size_t>(nic.pci)].numa
                          : unknown<int>("no PCI function is behind it");
  nic.data_direct = unknown<PciAddress>(
      nic.driver && *nic.driver == "mlx5_core"
          ? "sysfs does not link a device to its data-direct function; libmlx5 would tell"
          : "not an mlx5 device");
  return nic;
}

} // namespace

Fact<std::string> driver_of(const Sysroot& sysroot, const std::string& class_device) {
  const std::string link = class_device + "/device/driver";
  const std::optional<std::string> driver = sysroot.realpath(link);
  if (!driver)
    return unknown<std::string>(link + " is absent");
  const std::string name = driver->substr(driver->rfind('/') + 1);
  return is_device_name(name) ? known(name, link)
                              : unknown<std::string>(link + " leads to no driver's name");
}

void read_rdma_devices(const Sysroot& sysroot, const std::vector<std::string>& order, PciTree& pci,
                       Node& node) {
  std::vector<std::string> names = sysroot.list(rdma_folder);
  std::stable_sort(names.begin(), names.end(),
                   [&order](const std::string& left, const std::string& right) {
                     return std::find(order.begin(), order.end(), left) <
                            std::find(order.begin(), order.end(), right);
                   });
  std::vector<Nic> nics;
  for (const std::string& name : names)
    if (is_device_name(name))
      nics.push_back(read_device(sysroot, name, pci, node));
  const std::vector<Netdev> netdevs = list_netdevs(sysroot, pci);
  for (Nic& nic : nics) {
    const std::size_t ports = nic.ports.size();
    const int function = nic.virtual_device ? -1 : nic.pci;
    for (NicPort& port : nic.ports)
      port.netdev = netdev_of(port, ports, function, netdevs);
    node.nics.push_back(std::move(nic));
  }
}

} // namespace shmemctl
