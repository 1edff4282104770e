// Where an entry of the PCI tree would be in /sys.
#pragma once

#include <string>

#include "src/topo/node.h"

namespace shmemctl {

/// The sysfs path of `node.pci[pci_entry]`: its own `sysfs_path` if the source has it, otherwise
/// one that is built from its host bridge and the bridges above it, as the kernel would write it
/// ("/sys/devices/pci0000:15/0000:15:01.0/..."). A PciKind::whole_switch stands for three levels: a
/// root port (made up if the switch is directly below the host bridge), its upstream port, and one
/// made-up downstream port per child, so that counting the slashes that two paths share gives what
/// it would give on the machine. "" if the host bridge is not known.
std::string synthesized_sysfs_path(const Node& node, int pci_entry);

} // namespace shmemctl
