#include "src/topo/readers/nccl_nets.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>

#include "src/base/error.h"
#include "src/base/text.h"
#include "src/topo/nic_names.h"
#include "src/topo/readers/nccl_attributes.h"

namespace shmemctl::nccl {

namespace {

/// systemd's, the kernel's and container tools' names of interfaces.
bool is_interface_name(const std::string& name) {
  static constexpr std::array<std::string_view, 17> stems = {
      "en",  "eth", "br-", "virbr", "veth", "cali", "tunl",  "lxc",   "docker",
      "cni", "tap", "tun", "vxlan", "wl",   "bond", "flann", "podman"};
  return name == "lo" || std::any_of(stems.begin(), stems.end(), [&name](std::string_view stem) {
           return starts_with(name, stem);
         });
}

/// Names that drivers and rdma-core give to RDMA devices.
bool is_rdma_name(const std::string& name) {
  static constexpr std::array<std::string_view, 11> stems = {
      "mlx4_", "mlx5_", "rdmap", "roce", "bnxt_re", "irdma", "efa_", "hfi1_", "cxi", "iw", "qedr"};
  return std::any_of(stems.begin(), stems.end(),
                     [&name](std::string_view stem) { return starts_with(name, stem); });
}

std::optional<std::uint64_t> guid_of(const XmlElement& net) {
  std::string text = net.get("guid");
  if (starts_with(text, "0x") || starts_with(text, "0X"))
    text.erase(0, 2);
  std::uint64_t value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  const bool whole = status == std::errc() && end == text.data() + text.size();
  return whole ? std::optional<std::uint64_t>(value) : std::nullopt;
}

/// Mbit/s to Gbit/s. Plugins have reported kbit/s here: what no port can do is not believed. The
/// speed of merged devices is their sum.
Fact<double> rate_of(const XmlElement& net, std::size_t merged) {
  constexpr double fastest_Gbps = 10000;
  const std::optional<double> speed = parse_number(net.get("speed"));
  if (!speed || *speed <= 0)
    return unknown<double>(silent);
  if (*speed / 1000 > fastest_Gbps)
    return unknown<double>("the speed " + printable(net.get("speed"), 24) +
                           " Mbit/s is more than any port has");
  const auto devices = static_cast<double>(merged);
  return known(*speed / 1000 / devices,
               line_of(net) + ", speed" +
                   (merged > 1 ? " of " + std::to_string(merged) + " devices" : ""));
}

/// NCCL adds the number of the device among those of its card to the port's own number
/// (`port` = port + position), so the second device's port 1 reads 2.
int port_number(const XmlElement& net, int position) {
  const long long written = parse_integer(net.get("port")).value_or(1);
  const long long number = written > position ? written - position : written;
  return number >= 1 && number <= 255 ? static_cast<int>(number) : 1;
}

NicPort port_of(const XmlElement& net, const Nic& nic, int position, std::size_t merged) {
  NicPort port;
  port.number = port_number(net, position);
  port.state = unknown<PortState>(silent);
  port.link_layer = link_layer_from_name(nic.name);
  port.rate_Gbps = rate_of(net, merged);
  port.lid = unknown<int>(silent);
  port.active_mtu_bytes = unknown<int>(silent);
  port.netdev = nic.rdma && !*nic.rdma ? known(nic.name, line_of(net) + ", name")
                                       : unknown<std::string>(silent);
  return port;
}

Nic blank_nic() {
  Nic nic;
  nic.rdma = unknown<bool>(silent);
  nic.driver = unknown<std::string>(silent);
  nic.numa = unknown<int>(silent);
  nic.firmware = unknown<std::string>(silent);
  // The guid of a <net> is the system image GUID, which all functions of a card share.
  nic.node_guid = unknown<std::string>(silent);
  nic.data_direct = unknown<PciAddress>(silent);
  return nic;
}

/// A name of NCCL's among those of one <nic>.
struct Net {
  int position = 0;        ///< among them
  std::size_t first = 0;   ///< its first device in the list
  std::size_t devices = 0; ///< that the name stands for
};

std::optional<int> dev_of(const XmlElement& net) {
  const std::optional<long long> dev = parse_integer(net.get("dev"));
  return dev && *dev >= 0 && *dev < 65536 ? std::optional<int>(static_cast<int>(*dev))
                                          : std::nullopt;
}

/// Appends the devices that a <net> of a new name stands for.
/// @return how many
std::size_t add_devices(const XmlElement& net, bool on_pci, std::vector<NetDevice>& to) {
  const std::string name = net.get("name");
  const Fact<bool> rdma = rdma_of_net(net);
  // A network interface may have any name.
  const bool interface = rdma && !*rdma;
  const VerbsNames verbs = interface ? VerbsNames{{name}, false} : verbs_names(name);
  for (const std::string& device_name : verbs.names) {
    NetDevice device;
    device.nic = blank_nic();
    device.nic.name = device_name;
    device.nic.unnamed = device_name.empty();
    device.nic.rdma = rdma;
    device.nic.virtual_device = !on_pci;
    device.dev = dev_of(net);
    device.data_direct = verbs.data_direct && on_pci;
    device.merged = verbs.names.size() > 1;
    to.push_back(std::move(device));
  }
  return verbs.names.size();
}

} // namespace

Fact<bool> rdma_of_net(const XmlElement& net) {
  const std::string name = net.get("name");
  const std::string origin = line_of(net);
  if (is_interface_name(name))
    return known(false, origin + ", a network interface's name");
  if (is_rdma_name(name))
    return known(true, origin + ", an RDMA device's name");
  const std::optional<std::uint64_t> guid = guid_of(net);
  const std::optional<long long> port = parse_integer(net.get("port"));
  if (!guid || !port)
    return unknown<bool>("neither the name nor a GUID tells");
  // NCCL's socket transport writes port 0 and its own count of interfaces as GUID.
  constexpr std::uint64_t most_interfaces = 0xffff;
  if (*guid <= most_interfaces && *port == 0)
    return known(false, origin + ", port 0 without a GUID");
  if (*guid > most_interfaces && *port >= 1)
    return known(true, origin + ", a port with a GUID");
  return unknown<bool>("neither the name nor the GUID tells");
}

VerbsNames verbs_names(const std::string& nccl_name) {
  static constexpr std::string_view data_direct = "_dma";
  constexpr std::ptrdiff_t most_merged = 16; // NCCL merges four at most
  if (std::count(nccl_name.begin(), nccl_name.end(), '+') >= most_merged)
    return {{nccl_name}, false};
  VerbsNames result;
  for (std::string part : split(nccl_name, '+')) {
    const bool direct = part.size() > data_direct.size() && ends_with(part, data_direct);
    if (direct)
      part.resize(part.size() - data_direct.size());
    result.data_direct = result.data_direct || direct;
    const bool is_new =
        std::find(result.names.begin(), result.names.end(), part) == result.names.end();
    if (!part.empty() && is_new)
      result.names.push_back(std::move(part));
  }
  if (result.names.empty())
    result.names.push_back(nccl_name);
  return result;
}

std::vector<NetDevice> devices_of(const XmlElement& nic, bool on_pci) {
  std::vector<NetDevice> found;
  std::map<std::string, Net> nets; ///< by NCCL's name
  int position = 0;
  for (const XmlElement& net : nic.children) {
    if (net.name != "net")
      continue;
    const std::string name = net.get("name");
    auto known_net = name.empty() ? nets.end() : nets.find(name);
    if (known_net == nets.end()) {
      const std::size_t first = found.size();
      const Net added{position++, first, add_devices(net, on_pci, found)};
      known_net = nets.insert_or_assign(name, added).first;
    }
    if (net.find("port") == nullptr && net.find("speed") == nullptr)
      continue;
    const Net& at = known_net->second;
    for (std::size_t i = 0; i < at.devices; ++i) {
      Nic& device = found[at.first + i].nic;
      NicPort port = port_of(net, device, at.position, at.devices);
      const auto taken = [&port](const NicPort& other) { return other.number == port.number; };
      if (std::none_of(device.ports.begin(), device.ports.end(), taken))
        device.ports.push_back(std::move(port));
    }
  }
  return found;
}

Nic nic_of_class(std::uint32_t class_code, const Fact<std::uint16_t>& vendor,
                 const Fact<std::uint16_t>& device, const std::string& origin) {
  constexpr std::uint32_t infiniband = 0x0207;
  Nic nic = blank_nic();
  nic.unnamed = true;
  const bool efa = vendor && *vendor == pci_ids::amazon && device && *device >> 8 == 0xef;
  if (class_code >> 8 == infiniband)
    nic.rdma = known(true, origin + ", PCI class InfiniBand");
  else if (efa)
    nic.rdma = known(true, origin + ", PCI id of EFA");
  else
    nic.rdma = unknown<bool>("known by its PCI class only");
  return nic;
}

} // namespace shmemctl::nccl
