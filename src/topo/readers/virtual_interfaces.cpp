#include "src/topo/readers/virtual_interfaces.h"

#include <algorithm>

#include "src/base/text.h"
#include "src/topo/readers/machine_parts.h"

namespace shmemctl {

namespace {

const std::string net_folder = "/sys/class/net";
constexpr const char* loopback_type = "772"; // ARPHRD_LOOPBACK

/// "bond", "vlan", "bridge", ...; "" where the kernel gives none, as for veth.
std::string kind_of(const Sysroot& sysroot, const std::string& folder) {
  for (const std::string& line : split(sysroot.read(folder + "/uevent").value_or(""), '\n'))
    if (starts_with(line, "DEVTYPE="))
      return line.substr(std::string("DEVTYPE=").size());
  return "";
}

/// The interfaces below it, by the links lower_<name>.
std::vector<std::string> lower_interfaces(const Sysroot& sysroot, const std::string& folder) {
  const std::string prefix = "lower_";
  std::vector<std::string> lower;
  for (const std::string& name : sysroot.list(folder))
    if (starts_with(name, prefix))
      lower.push_back(name.substr(prefix.size()));
  return lower;
}

/// Whether a device is at the bottom of all that is below it.
bool stands_on_devices(const Sysroot& sysroot, const std::string& name, int depth = 0) {
  constexpr int deepest = 8; // a VLAN on a bond is two; links in a copied tree may be anything
  const std::string folder = net_folder + "/" + name;
  if (sysroot.exists(folder + "/device"))
    return true;
  const std::vector<std::string> lower = lower_interfaces(sysroot, folder);
  return depth < deepest && !lower.empty() &&
         std::all_of(lower.begin(), lower.end(), [&](const std::string& below) {
           return is_device_name(below) && stands_on_devices(sysroot, below, depth + 1);
         });
}

std::optional<double> parse_speed_Gbps(const std::string& text) {
  const std::optional<long long> speed_Mbps = parse_integer(text);
  if (!speed_Mbps || *speed_Mbps <= 0 || *speed_Mbps >= 0xffffffffLL)
    return std::nullopt;
  return static_cast<double>(*speed_Mbps) / 1000.0;
}

Fact<double> rate_of(const Sysroot& sysroot, const std::string& name) {
  const std::string folder = net_folder + "/" + name;
  const std::string kind = kind_of(sysroot, folder);
  if ((kind != "bond" && kind != "vlan") || !stands_on_devices(sysroot, name))
    return unknown<double>(folder + " has no device: no wire has the rate that it may tell");
  return read_fact<double>(sysroot, folder + "/speed", parse_speed_Gbps);
}

bool is_up(const Sysroot& sysroot, const std::string& folder) {
  const std::string state = sysroot.read_line(folder + "/operstate").value_or("");
  return state == "up" || state == "unknown"; // tunnels and dummies do not tell
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
