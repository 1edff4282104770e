// PCIe link rates, and the path of a device through the PCI tree.
#include "src/model/topo/pcie.h"

#include <fmt/format.h>

namespace shmemctl {

namespace {

/// The share of payload in the line code: 8b/10b up to 5 GT/s, 128b/130b below 64 GT/s, and 242 of
/// 256 bytes of a flit from 64 GT/s on.
double line_code(double speed_GTps) {
  return speed_GTps <= 5 ? 0.8 : speed_GTps < 64 ? 128.0 / 130 : 242.0 / 256;
}

} // namespace

std::optional<PcieRate> pcie_rate(const PcieLink& link) {
  const Fact<double>& speed = link.max_speed_GTps ? link.max_speed_GTps : link.speed_GTps;
  const Fact<int>& width = link.width ? link.width : link.max_width;
  if (!speed || !width || *speed <= 0 || *width <= 0)
    return std::nullopt;
  return PcieRate{*speed * *width * line_code(*speed) / 8,
                  fmt::format("PCIe, {} lanes of {:g} GT/s", *width, *speed)};
}

namespace {

const PciDevice& at(const Node& node, int entry) {
  return node.pci[static_cast<std::size_t>(entry)];
}

/// "/sys/devices/pci0000:15". Sources that group devices by CPU (HostBridge::exact is false) may
/// give several host bridges the same bus; these must get different paths.
std::string host_bridge_path(const Node& node, int index) {
  const HostBridge& bridge = node.host_bridges[static_cast<std::size_t>(index)];
  std::string path = fmt::format("/sys/devices/pci{:04x}:{:02x}", bridge.domain, bridge.bus);
  for (int i = 0; i < index; ++i) {
    const HostBridge& earlier = node.host_bridges[static_cast<std::size_t>(i)];
    if (earlier.domain == bridge.domain && earlier.bus == bridge.bus)
      return path + fmt::format(".{}", index);
  }
  return path;
}

} // namespace

std::string synthesized_sysfs_path(const Node& node, int pci_entry) {
  std::string below; // the part of the path that is already known
  int entry = pci_entry;
  for (;;) {
    const PciDevice& device = at(node, entry);
    if (!device.sysfs_path.empty())
      return device.sysfs_path + below;
    const std::string name = to_string(device.address);
    below = "/" + name + below;
    if (device.parent < 0)
      break;
    if (at(node, device.parent).kind == PciKind::whole_switch)
      below = "/" + to_string(at(node, device.parent).address) + ":dp." + name + below;
    entry = device.parent;
  }
  const PciDevice& top = at(node, entry);
  if (top.host_bridge < 0)
    return "";
  // Devices of one CPU whose host bridges are not known are NODE, not PHB (distance.h): each top
  // device then counts as below a host bridge of its own.
  std::string host = host_bridge_path(node, top.host_bridge);
  if (!node.host_bridges[static_cast<std::size_t>(top.host_bridge)].exact)
    host += "." + to_string(top.address);
  if (top.kind == PciKind::whole_switch)
    below = "/" + to_string(top.address) + ":rp" + below;
  return host + below;
}

} // namespace shmemctl
