// Parts of a Node that come from /sys: RDMA devices, network interfaces, the order in which verbs
// lists devices.
#include "src/model/topo/readers/sysfs_nics.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

#include "src/base/dynamic_library.h"
#include "src/base/text.h"
#include "src/model/topo/readers/machine.h"
#include "src/model/topo/readers/sysfs.h"

namespace shmemctl {

namespace {

const std::string rdma_folder = "/sys/class/infiniband";
const std::string net_folder = "/sys/class/net";

/// The slots of a port's GID table that are in use. Empty slots read as zeros, and reading their
/// types fails (EINVAL).
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

/// The port's interface: named by its first GID that names one; else the function's only interface,
/// if the device has one port; else the only one with the port's dev_port (which counts from 0).
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
  port.active_mtu_bytes = unknown<int>("sysfs does not report the active MTU of an RDMA port");
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

/// The netdev of a software device (Soft-RoCE, siw): its `parent` file, or the one that its GIDs
/// name; "" if unknown.
std::string parent_netdev(const Sysroot& sysroot, const std::string& device, const Nic& nic) {
  if (const Fact<std::string> parent = read_text_fact(sysroot, device + "/parent"))
    return *parent;
  for (const NicPort& port : nic.ports)
    for (const Gid& gid : port.gids)
      if (gid.netdev)
        return *gid.netdev;
  return "";
}

/// Software devices have no `device` link to read a driver from; two of their properties identify
/// them.
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

/// The PCI function of the device, or of the netdev under a software device.
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
                          : unknown<int>("it has no PCI function");
  nic.data_direct = unknown<PciAddress>(
      nic.driver && *nic.driver == "mlx5_core"
          ? "sysfs does not link a device to its data-direct function; libmlx5 does"
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
                              : unknown<std::string>(link + " does not name a driver");
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

namespace {

/// operstate as the state of an RDMA port.
std::optional<PortState> parse_operstate(const std::string& text) {
  if (text == "up")
    return PortState::active;
  if (text == "down" || text == "lowerlayerdown" || text == "notpresent")
    return PortState::down;
  if (text == "dormant" || text == "testing")
    return PortState::init;
  return std::nullopt; // "unknown": not reported by the driver
}

/// Mbit/s; -1 if the link is down or the driver (virtio) does not report it.
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
    nic.firmware =
        unknown<std::string>("sysfs does not report the firmware of a network interface");
    nic.node_guid = unknown<std::string>("not an RDMA device");
    nic.data_direct = unknown<PciAddress>("not an RDMA device");
    nic.ports.push_back(describe_port(sysroot, netdev.name));
    node.nics.push_back(std::move(nic));
  }
}

std::vector<std::string> verbs_device_order() {
  struct VerbsDevice; // only ever handed back to the library
  const std::optional<DynamicLibrary> verbs = DynamicLibrary::open({"libibverbs.so.1"});
  if (!verbs)
    return {};
  auto* get_list = verbs->function<VerbsDevice**(int*)>("ibv_get_device_list");
  auto* free_list = verbs->function<void(VerbsDevice**)>("ibv_free_device_list");
  auto* name_of = verbs->function<const char*(VerbsDevice*)>("ibv_get_device_name");
  if (get_list == nullptr || free_list == nullptr || name_of == nullptr)
    return {};
  int count = 0;
  VerbsDevice** devices = get_list(&count);
  if (devices == nullptr)
    return {};
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i)
    if (const char* name = name_of(devices[i]))
      names.emplace_back(name);
  free_list(devices);
  return names;
}

namespace {

constexpr const char* loopback_type = "772"; // ARPHRD_LOOPBACK

/// "bond", "vlan", "bridge", ...; "" if the kernel gives none, as for veth.
std::string kind_of(const Sysroot& sysroot, const std::string& folder) {
  for (const std::string& line : split(sysroot.read(folder + "/uevent").value_or(""), '\n'))
    if (starts_with(line, "DEVTYPE="))
      return line.substr(std::string("DEVTYPE=").size());
  return "";
}

/// The interfaces below the one of this folder, by the links lower_<name>.
std::vector<std::string> lower_interfaces(const Sysroot& sysroot, const std::string& folder) {
  const std::string prefix = "lower_";
  std::vector<std::string> lower;
  for (const std::string& name : sysroot.list(folder))
    if (starts_with(name, prefix))
      lower.push_back(name.substr(prefix.size()));
  return lower;
}

/// Whether the interface has a device, or everything below it ends at one.
bool stands_on_devices(const Sysroot& sysroot, const std::string& name, int depth = 0) {
  constexpr int deepest =
      8; // a VLAN on a bond has depth two; links in a copied tree may be anything
  const std::string folder = net_folder + "/" + name;
  if (sysroot.exists(folder + "/device"))
    return true;
  const std::vector<std::string> lower = lower_interfaces(sysroot, folder);
  return depth < deepest && !lower.empty() &&
         std::all_of(lower.begin(), lower.end(), [&](const std::string& below) {
           return is_device_name(below) && stands_on_devices(sysroot, below, depth + 1);
         });
}

Fact<double> rate_of(const Sysroot& sysroot, const std::string& name) {
  const std::string folder = net_folder + "/" + name;
  const std::string kind = kind_of(sysroot, folder);
  if ((kind != "bond" && kind != "vlan") || !stands_on_devices(sysroot, name))
    return unknown<double>(folder + " has no device, so its reported rate is not that of a link");
  return read_fact<double>(sysroot, folder + "/speed", parse_speed_Gbps);
}

bool is_up(const Sysroot& sysroot, const std::string& folder) {
  const std::string state = sysroot.read_line(folder + "/operstate").value_or("");
  return state == "up" || state == "unknown"; // tunnels and dummies do not report
}

Nic describe(const Sysroot& sysroot, const std::string& name) {
  const std::string folder = net_folder + "/" + name, none = "it is a virtual interface";
  Nic nic;
  nic.name = name;
  nic.virtual_device = true;
  nic.rdma = known(false, folder);
  const std::string kind = kind_of(sysroot, folder);
  nic.driver = kind.empty() ? unknown<std::string>(none) : known(kind, folder + "/uevent");
  nic.numa = unknown<int>(none);
  nic.firmware = unknown<std::string>(none);
  nic.node_guid = unknown<std::string>(none);
  nic.data_direct = unknown<PciAddress>(none);
  NicPort port;
  port.state = known(PortState::active, folder + "/operstate");
  port.link_layer = unknown<LinkLayer>(none);
  port.rate_Gbps = rate_of(sysroot, name);
  port.lid = unknown<int>("not an RDMA port");
  port.active_mtu_bytes = unknown<int>("not an RDMA port");
  port.netdev = known(name, folder);
  nic.ports.push_back(std::move(port));
  return nic;
}

bool has_interface(const Node& node, const std::string& netdev) {
  return std::any_of(node.nics.begin(), node.nics.end(), [&netdev](const Nic& nic) {
    return nic.name == netdev ||
           std::any_of(nic.ports.begin(), nic.ports.end(), [&netdev](const NicPort& port) {
             return port.netdev && *port.netdev == netdev;
           });
  });
}

} // namespace

std::vector<Nic> read_virtual_interfaces(const Sysroot& sysroot) {
  std::vector<Nic> nics;
  for (const std::string& name : sysroot.list(net_folder)) {
    const std::string folder = net_folder + "/" + name;
    if (!is_device_name(name) || sysroot.exists(folder + "/device") ||
        !sysroot.is_directory(folder + "/statistics") || !is_up(sysroot, folder) ||
        sysroot.read_line(folder + "/type").value_or("") == loopback_type)
      continue;
    nics.push_back(describe(sysroot, name));
  }
  return nics;
}

Node with_virtual_interfaces(Node node, const Sysroot& sysroot) {
  for (Nic& nic : read_virtual_interfaces(sysroot))
    if (!has_interface(node, nic.name))
      node.nics.push_back(std::move(nic));
  return node;
}

std::optional<double> virtual_interface_Gbps(const Sysroot& sysroot, const std::string& name) {
  const std::string folder = net_folder + "/" + name;
  if (!is_device_name(name) || name.find('/') != std::string::npos ||
      !sysroot.is_directory(folder) || sysroot.exists(folder + "/device"))
    return std::nullopt;
  return rate_of(sysroot, name).value;
}

} // namespace shmemctl
