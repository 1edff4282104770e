// PCIe link rates, and the path of a device through the PCI tree.
#pragma once

#include <optional>
#include <string>

#include "src/model/topo/node.h"

namespace shmemctl {

struct PcieRate {
  double rate_GBps = 0; ///< after the line code
  std::string text;     ///< "PCIe, 16 lanes of 32 GT/s"
};

/// The rate at the device's maximum speed, because idle links run slowly, and with the lanes that
/// are in use now. Nothing if speed or width is unknown.
std::optional<PcieRate> pcie_rate(const PcieLink& link);

/// The sysfs path of `node.pci[pci_entry]`: its own `sysfs_path` if the source has it, otherwise
/// one that is built from its host bridge and the bridges above it, as the kernel would write it
/// ("/sys/devices/pci0000:15/0000:15:01.0/..."). A PciKind::whole_switch represents three levels: a
/// root port (synthetic if the switch is directly below the host bridge), its upstream port, and
/// one synthetic downstream port per child, so that counting the slashes that two paths share gives
/// what it would give on the machine. "" if the host bridge is not known.
std::string synthesized_sysfs_path(const Node& node, int pci_entry);

} // namespace shmemctl
