// RDMA devices and their ports.
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <unistd.h>

#include "src/base/text.h"
#include "src/doctor/checks.h"
#include "src/doctor/support.h"
#include "src/topo/port_words.h"

namespace shmemctl::doctor {

namespace {

constexpr int full_mtu_bytes = 4096;
// The kernel leaves 96 bytes of a netdev's MTU for a RoCE packet's longest headers (GRH, UDP, BTH,
// XRC and atomic extensions, ICRC) and takes the next lower of 256, 512, ... 4096.
constexpr int roce_overhead_bytes = 96;

std::string port_path(const RdmaPort& at, const std::string& file) {
  return "/sys/class/infiniband/" + at.nic->name + "/ports/" + std::to_string(at.port->number) +
         "/" + file;
}

/// "export NVSHMEM_HCA_LIST=mlx5_0:1,mlx5_1:1": use these ports only.
std::string use_only(const std::vector<std::string>& ports) {
  return "export NVSHMEM_HCA_LIST=" + join(ports, ",");
}

std::string bring_up_command(const RdmaPort& at) {
  if (at.port->link_layer.value == LinkLayer::ethernet && at.port->netdev)
    return "ip link set dev " + *at.port->netdev + " up && ethtool " + *at.port->netdev;
  if (at.port->state.value == PortState::init || at.port->state.value == PortState::armed)
    return "sminfo -C " + at.nic->name + " || systemctl start opensm  # a subnet manager is needed";
  return "ibstat " + at.nic->name + " " + std::to_string(at.port->number) +
         "  # look at cable, switch port and subnet manager";
}

/// The module that makes an RDMA device of a NIC with this driver; "" if none is sure to.
std::string rdma_module_of(const Nic& nic) {
  const std::string driver = nic.driver.value.value_or("");
  return driver == "mlx5_core" ? "mlx5_ib" : driver == "mlx4_core" ? "mlx4_ib" : "";
}

/// NICs that have no RDMA device though their driver offers one, and no RDMA device on another
/// function of the same card either (a bond's second function has none of its own).
std::vector<const Nic*> nics_without_rdma(const Node& node) {
  std::vector<const Nic*> result;
  const std::vector<PciAddress> rdma = rdma_addresses(node);
  for (const Nic& nic : node.nics) {
    if (nic.rdma.value.value_or(true) || nic.pci < 0 || rdma_module_of(nic).empty())
      continue;
    const PciAddress& address = node.pci[static_cast<std::size_t>(nic.pci)].address;
    const bool same_card = std::any_of(rdma.begin(), rdma.end(), [&](const PciAddress& other) {
      return other.domain == address.domain && other.bus == address.bus;
    });
    if (!same_card)
      result.push_back(&nic);
  }
  return result;
}

struct PortMtu {
  int bytes = 0;
  std::string evidence;
};

/// What a port's packets can carry: told by the port, or following from the netdev's MTU (RoCE).
std::optional<PortMtu> port_mtu(const Sysroot& sysroot, const RdmaPort& at) {
  const NicPort& port = *at.port;
  if (port.active_mtu_bytes)
    return PortMtu{*port.active_mtu_bytes,
                   fmt::format("{}: active MTU {}", at.name(), *port.active_mtu_bytes)};
  if (port.link_layer.value != LinkLayer::ethernet || !port.netdev)
    return std::nullopt;
  const std::string path = "/sys/class/net/" + *port.netdev + "/mtu";
  const std::optional<long long> netdev_bytes = sysroot.read_integer(path);
  if (!netdev_bytes)
    return std::nullopt;
  int bytes = 256;
  while (bytes < full_mtu_bytes && bytes * 2 + roce_overhead_bytes <= *netdev_bytes)
    bytes *= 2;
  return PortMtu{bytes,
                 fmt::format("{}: {}, so {} carries {}", path, *netdev_bytes, at.name(), bytes)};
}

std::string mtu_fix(const RdmaPort& at) {
  if (at.port->link_layer.value == LinkLayer::ethernet && at.port->netdev)
    return "ip link set dev " + *at.port->netdev +
           " mtu 9000  # the switch ports must allow it as well";
  return "sminfo -C " + at.nic->name +
         "  # on the subnet manager: mtu=5 (4096) for the partition in partitions.conf";
}

} // namespace

CheckResult rdma_devices(const CheckContext& context) {
  const std::vector<const Nic*> devices = rdma_nics(context.node);
  const std::vector<const Nic*> without = nics_without_rdma(context.node);
  std::vector<std::string> names;
  names.reserve(devices.size());
  for (const Nic* nic : devices)
    names.push_back(nic->name);
  if (!without.empty()) {
    std::vector<std::string> lacking;
    lacking.reserve(without.size());
    for (const Nic* nic : without)
      lacking.push_back(nic->name + " (" + *nic->driver + ")");
    const std::string reason = "RDMA is not available on " + name_list(lacking);
    const std::string evidence =
        "/sys/class/infiniband: " + (names.empty() ? std::string("empty") : name_list(names));
    const std::string fix = "modprobe " + rdma_module_of(*without.front());
    return names.empty() ? failed(reason, evidence, fix) : warned(reason, evidence, fix);
  }
  if (devices.empty())
    return skipped("no RDMA device on this node");
  return passed(std::to_string(names.size()) + " RDMA devices",
                "/sys/class/infiniband: " + name_list(names));
}

CheckResult rdma_port_state(const CheckContext& context) {
  if (const auto reason = no_rdma_device(context.node))
    return skipped(*reason);
  std::vector<std::string> inactive;
  std::string fix;
  std::string evidence;
  std::size_t active = 0;
  for (const RdmaPort& at : rdma_ports(context.node)) {
    if (!at.port->state)
      continue;
    if (*at.port->state == PortState::active) {
      ++active;
      continue;
    }
    inactive.push_back(at.name() + " " + to_string(*at.port->state));
    if (fix.empty()) {
      fix = bring_up_command(at);
      evidence = said(port_path(at, "state"), to_string(*at.port->state));
    }
  }
  if (active == 0 && inactive.empty())
    return skipped("no port tells its state", "/sys/class/infiniband/*/ports/*/state: unknown");
  if (inactive.empty())
    return passed(fmt::format("all {} ports are active", active),
                  "/sys/class/infiniband/*/ports/*/state: ACTIVE");
  if (active == 0)
    return failed("no port is active: " + name_list(inactive), evidence, fix);
  return warned("not active: " + name_list(inactive), evidence, fix);
}

CheckResult rdma_link_layer(const CheckContext& context) {
  if (const auto reason = no_rdma_device(context.node))
    return skipped(*reason);
  std::map<LinkLayer, std::vector<std::string>> ports;
  for (const RdmaPort& at : active_rdma_ports(context.node))
    if (at.port->link_layer)
      ports[*at.port->link_layer].push_back(at.name());
  if (ports.empty())
    return skipped("no active port tells its link layer",
                   "/sys/class/infiniband/*/ports/*/link_layer: unknown");
  std::vector<std::string> groups;
  groups.reserve(ports.size());
  for (const auto& [layer, names] : ports)
    groups.push_back(std::string(to_string(layer)) + " " + name_list(names));
  const std::string evidence = "/sys/class/infiniband/*/ports/*/link_layer: " + join(groups, "; ");
  if (ports.size() == 1)
    return passed(std::string("all active ports are ") + to_string(ports.begin()->first), evidence);
  const auto most = std::max_element(ports.begin(), ports.end(), [](const auto& a, const auto& b) {
    return a.second.size() < b.second.size();
  });
  return warned("link layers are mixed, and ports of different layers cannot talk to each other",
                evidence, use_only(most->second));
}

CheckResult rdma_rate(const CheckContext& context) {
  if (const auto reason = no_rdma_device(context.node))
    return skipped(*reason);
  std::map<double, std::vector<std::string>> ports;
  for (const RdmaPort& at : active_rdma_ports(context.node))
    if (at.port->rate_Gbps)
      ports[*at.port->rate_Gbps].push_back(at.name());
  if (ports.empty())
    return skipped("no active port tells its rate",
                   "/sys/class/infiniband/*/ports/*/rate: unknown");
  const auto& [slowest_Gbps, slow] = *ports.begin();
  const auto& [fastest_Gbps, fast] = *ports.rbegin();
  const std::string evidence = fmt::format(
      "/sys/class/infiniband/*/ports/*/rate: {:g} Gb/s to {:g} Gb/s", slowest_Gbps, fastest_Gbps);
  if (ports.size() == 1)
    return passed(fmt::format("all active ports run at {:g} Gb/s", slowest_Gbps), evidence);
  return warned(fmt::format("slower than their peers: {} at {:g} Gb/s, the fastest at {:g} Gb/s",
                            name_list(slow), slowest_Gbps, fastest_Gbps),
                evidence, use_only(fast) + "  # or look at the cables of " + name_list(slow));
}

CheckResult rdma_mtu(const CheckContext& context) {
  if (const auto reason = no_rdma_device(context.node))
    return skipped(*reason);
  std::vector<std::string> small;
  std::string evidence;
  std::string fix;
  std::size_t told = 0;
  for (const RdmaPort& at : active_rdma_ports(context.node)) {
    const std::optional<PortMtu> mtu = port_mtu(context.sysroot, at);
    if (!mtu)
      continue;
    ++told;
    if (evidence.empty())
      evidence = mtu->evidence;
    if (mtu->bytes >= full_mtu_bytes)
      continue;
    small.push_back(fmt::format("{} {}", at.name(), mtu->bytes));
    if (fix.empty()) {
      fix = mtu_fix(at);
      evidence = mtu->evidence;
    }
  }
  if (told == 0)
    return skipped("no active port tells its MTU; sysfs does so only for RoCE",
                   "/sys/class/net/*/mtu: no netdev of an active RoCE port");
  if (small.empty())
    return passed("packets carry 4096 bytes on every port that tells", evidence);
  return warned("packets carry less than 4096 bytes: " + name_list(small), evidence, fix);
}

CheckResult rdma_uverbs(const CheckContext& context) {
  if (const auto reason = no_rdma_device(context.node))
    return skipped(*reason);
  const Sysroot& sysroot = context.sysroot;
  const std::string folder = "/sys/class/infiniband_verbs";
  std::map<std::string, std::string> node_of; // RDMA device -> "uverbs0"
  for (const std::string& name : sysroot.list(folder))
    if (const auto device = sysroot.read_line(fmt::format("{}/{}/ibdev", folder, name)))
      node_of.emplace(*device, name);
  if (node_of.empty())
    return failed("programs cannot use the RDMA devices: ib_uverbs is not loaded",
                  folder + ": empty or not there", "modprobe ib_uverbs");
  if (!has_device_nodes(sysroot))
    return skipped("the copied tree has no device nodes", absent("/dev"));
  const bool container = container_evidence(sysroot, context.environment).has_value();
  std::vector<std::string> problems;
  std::string fix = "modprobe ib_uverbs && udevadm trigger --subsystem-match=infiniband_verbs";
  for (const Nic* nic : rdma_nics(context.node)) {
    const auto found = node_of.find(nic->name);
    const std::string path =
        "/dev/infiniband/" + (found == node_of.end() ? "uverbs*" : found->second);
    if (found == node_of.end() || !sysroot.exists(path)) {
      problems.push_back(nic->name + ": no " + path);
    } else if (sysroot.live() && ::access(path.c_str(), R_OK | W_OK) != 0) {
      problems.push_back(nic->name + ": no permission to open " + path);
      fix = "chmod 666 /dev/infiniband/uverbs*";
    }
  }
  if (container)
    fix = "docker run --device=/dev/infiniband --cap-add=IPC_LOCK";
  if (!problems.empty())
    return failed("RDMA devices cannot be opened: " + name_list(problems),
                  "/dev/infiniband: " + name_list(sysroot.list("/dev/infiniband")), fix);
  if (!sysroot.exists("/dev/infiniband/rdma_cm"))
    return warned("the RDMA connection manager is missing: libfabric's verbs provider needs it",
                  absent("/dev/infiniband/rdma_cm"), container ? fix : "modprobe rdma_ucm");
  return passed("every RDMA device can be opened",
                "/dev/infiniband: " + name_list(sysroot.list("/dev/infiniband")));
}

} // namespace shmemctl::doctor
