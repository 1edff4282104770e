#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <tuple>

#include "src/base/text.h"
#include "src/topo/advice/checks.h"
#include "src/topo/advice/wording.h"
#include "src/topo/mapping/ports.h"
#include "src/topo/port_words.h"

namespace shmemctl {

namespace {

/// A port that a finding is about.
struct PortRef {
  int nic = 0;
  const NicPort* port = nullptr;
};

bool is_real_rdma(const Nic& nic) {
  return !nic.virtual_device && (!nic.rdma || *nic.rdma);
}

bool carries_traffic(const NicPort& port) {
  return !port.state || *port.state == PortState::active;
}

std::vector<std::string> names_of(const Node& node, const std::vector<PortRef>& ports) {
  std::vector<std::string> names;
  for (const PortRef& ref : ports)
    names.push_back(port_name(node, ref.nic, ref.port->number));
  return names;
}

/// What shows a port's cable and errors: the vendor's tool, or else the kernel's.
std::string port_tool(const Node& node, const PortRef& ref) {
  const Nic& nic = node.nics[static_cast<std::size_t>(ref.nic)];
  const Fact<std::uint16_t> vendor = nic.pci >= 0
                                         ? node.pci[static_cast<std::size_t>(nic.pci)].vendor
                                         : unknown<std::uint16_t>("no PCI function");
  const bool mlx5 = nic.driver ? starts_with(*nic.driver, "mlx5")
                    : vendor   ? *vendor == pci_ids::mellanox
                               : starts_with(nic.name, "mlx5");
  if (mlx5)
    return fmt::format("mlxlink -d {} -p {}", nic_name(node, ref.nic), ref.port->number);
  if (ref.port->netdev)
    return "ethtool " + *ref.port->netdev;
  return fmt::format("rdma link show {}/{}", nic_name(node, ref.nic), ref.port->number);
}

/// The same, with what the transceiver says.
std::string port_module_tool(const Node& node, const PortRef& ref) {
  const std::string tool = port_tool(node, ref);
  if (starts_with(tool, "mlxlink"))
    return tool + " -m";
  return starts_with(tool, "ethtool") ? "ethtool -m " + *ref.port->netdev : tool;
}

std::string port_down_fix(const Node& node, const PortRef& ref) {
  if (*ref.port->state != PortState::down)
    return fmt::format("start a subnet manager for {} (systemctl start opensm, or on the switch)",
                       port_name(node, ref.nic, ref.port->number));
  if (ref.port->netdev)
    return fmt::format("ip link set dev {} up, then look at the cable: {}", *ref.port->netdev,
                       port_tool(node, ref));
  return "check the cable and the switch's port: " + port_tool(node, ref);
}

Finding port_down(const Node& node, const std::vector<PortRef>& ports, Severity severity,
                  const std::string& consequence) {
  std::vector<std::string> states;
  for (const PortRef& ref : ports)
    states.push_back(port_name(node, ref.nic, ref.port->number) + " is " +
                     to_string(*ref.port->state));
  return {"port-down", severity, enumerate(names_of(node, ports)), enumerate(states) + consequence,
          port_down_fix(node, ports[0])};
}

Findings check_port_states(const Node& node) {
  std::vector<PortRef> dead_nics;
  std::vector<PortRef> spare_ports;
  bool any_active = false;
  for (std::size_t i = 0; i < node.nics.size(); ++i) {
    const Nic& nic = node.nics[i];
    if (!is_real_rdma(nic))
      continue;
    const bool active =
        nic.ports.empty() || std::any_of(nic.ports.begin(), nic.ports.end(), carries_traffic);
    any_active = any_active || active;
    for (const NicPort& port : nic.ports)
      if (!carries_traffic(port))
        (active ? spare_ports : dead_nics).push_back({static_cast<int>(i), &port});
  }
  Findings findings;
  if (!dead_nics.empty())
    findings.push_back(
        any_active
            ? port_down(node, dead_nics, Severity::warning,
                        ": no traffic goes there, and NVSHMEM's numbers of later devices shift")
            : port_down(node, dead_nics, Severity::error, ": no active RDMA port remains"));
  if (!spare_ports.empty())
    findings.push_back(
        port_down(node, spare_ports, Severity::info, ", beside an active port of the same NIC"));
  return findings;
}

/// Ports are peers if they are of one NIC model and one link layer.
using PeerGroup = std::tuple<std::uint16_t, std::uint16_t, LinkLayer>;

std::map<PeerGroup, std::vector<PortRef>> peer_groups(const Node& node) {
  std::map<PeerGroup, std::vector<PortRef>> groups;
  for (std::size_t i = 0; i < node.nics.size(); ++i) {
    const Nic& nic = node.nics[i];
    if (!is_real_rdma(nic) || nic.pci < 0)
      continue;
    const PciDevice& device = node.pci[static_cast<std::size_t>(nic.pci)];
    if (!device.vendor || !device.device)
      continue;
    for (const NicPort& port : nic.ports)
      if (carries_traffic(port) && port.rate_Gbps && port.link_layer)
        groups[{*device.vendor, *device.device, *port.link_layer}].push_back(
            {static_cast<int>(i), &port});
  }
  return groups;
}

/// What most of them run at; of equally frequent rates the higher one.
double usual_rate_Gbps(const std::vector<PortRef>& peers) {
  std::map<double, int> counts;
  for (const PortRef& ref : peers)
    ++counts[*ref.port->rate_Gbps];
  return std::max_element(counts.begin(), counts.end(),
                          [](const auto& a, const auto& b) {
                            return std::tie(a.second, a.first) < std::tie(b.second, b.first);
                          })
      ->first;
}

Findings check_port_rates(const Node& node) {
  Findings findings;
  for (const auto& [group, peers] : peer_groups(node)) {
    const double usual = usual_rate_Gbps(peers);
    std::vector<PortRef> slow;
    std::vector<std::string> rates;
    for (const PortRef& ref : peers)
      if (*ref.port->rate_Gbps < usual) {
        slow.push_back(ref);
        rates.push_back(fmt::format("{} runs at {} Gb/s",
                                    port_name(node, ref.nic, ref.port->number),
                                    *ref.port->rate_Gbps));
      }
    if (!slow.empty())
      findings.push_back(
          {"port-slow", Severity::warning, enumerate(names_of(node, slow)),
           fmt::format("{} while its peers of the same model run at {} Gb/s", enumerate(rates),
                       usual),
           "compare the cable, the transceiver and the switch's port with a peer's: " +
               port_module_tool(node, slow[0])});
  }
  return findings;
}

} // namespace

Findings check_ports(const Node& node) {
  Findings findings = check_port_states(node);
  for (Finding& finding : check_port_rates(node))
    findings.push_back(std::move(finding));
  return findings;
}

} // namespace shmemctl
