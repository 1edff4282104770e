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

/// Mbit/s to Gbit/s. Plugins have reported kbit/s here: what no port can do is not believed.
Fact<double> rate_of(const XmlElement& net) {
  constexpr double fastest_Gbps = 10000;
  const std::optional<double> speed = parse_number(net.get("speed"));
  if (!speed || *speed <= 0)
    return unknown<double>(silent);
  if (*speed / 1000 > fastest_Gbps)
    return unknown<double>("the speed " + printable(net.get("speed"), 24) +
                           " Mbit/s is more than any port has");
  return known(*speed / 1000, line_of(net) + ", speed");
}

/// NCCL adds the number of the device among those of its card to the port's own number
/// (`port` = port + position), so the second device's port 1 reads 2.
int port_number(const XmlElement& net, int position) {
  const long long written = parse_integer(net.get("port")).value_or(1);
  const long long number = written > position ? written - position : written;
  return number >= 1 && number <= 255 ? static_cast<int>(number) : 1;
}

NicPort port_of(const XmlElement& net, const Nic& nic, int position) {
  NicPort port;
  port.number = port_number(net, position);
  port.state = unknown<PortState>(silent);
  port.link_layer = link_layer_from_name(nic.name);
  port.rate_Gbps = rate_of(net);
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

std::vector<Nic> nics_of(const XmlElement& nic, bool on_pci) {
  std::vector<Nic> found;
  std::map<std::string, std::size_t> position; ///< by name
  for (const XmlElement& net : nic.children) {
    if (net.name != "net")
      continue;
    const std::string name = net.get("name");
    const auto [entry, is_new] = position.emplace(name, found.size());
    if (is_new || name.empty()) {
      entry->second = found.size();
      found.push_back(blank_nic());
      found.back().name = name;
      found.back().rdma = rdma_of_net(net);
      found.back().virtual_device = !on_pci;
    }
    Nic& device = found[entry->second];
    if (net.find("port") == nullptr && net.find("speed") == nullptr)
      continue;
    NicPort port = port_of(net, device, static_cast<int>(entry->second));
    const auto taken = [&port](const NicPort& other) { return other.number == port.number; };
    if (std::none_of(device.ports.begin(), device.ports.end(), taken))
      device.ports.push_back(std::move(port));
  }
  return found;
}

Nic nic_of_class(std::uint32_t class_code, const Fact<std::uint16_t>& vendor,
                 const Fact<std::uint16_t>& device, const std::string& origin) {
  constexpr std::uint32_t infiniband = 0x0207;
  Nic nic = blank_nic();
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
