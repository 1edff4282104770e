// Parts of a Node that come from /sys: RDMA devices, network interfaces, the order in which verbs
// lists devices.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/base/sysroot.h"
#include "src/model/topo/node.h"

namespace shmemctl {

/// The interfaces of /sys/class/net that are up, or do not report their state, and have no device
/// link, as NICs without a PCI function; loopback interfaces are excluded. They are not part of the
/// node model: no PE is mapped to them, no advice concerns them, but they carry and count traffic.
std::vector<Nic> read_virtual_interfaces(const Sysroot& sysroot);

/// The node with these interfaces appended to its NICs, to count their traffic. Interfaces that a
/// NIC of the node already has are not added.
Node with_virtual_interfaces(Node node, const Sysroot& sysroot);

/// The rate of such an interface, if it is that of a physical link: the sum of its links for a
/// bond, that of the link below for a VLAN. Empty for a veth or a tunnel, whose reported rate is
/// not that of a link.
std::optional<double> virtual_interface_Gbps(const Sysroot& sysroot, const std::string& name);

} // namespace shmemctl
