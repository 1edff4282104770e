// Parts of a Node that come from /sys: RDMA devices, network interfaces, the order in which verbs
// lists devices.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/base/sysroot.h"
#include "src/topo/node.h"

namespace shmemctl {

/// Those of /sys/class/net that are up and have no device link, as NICs without a PCI function;
/// loopback interfaces are left out. They are not a part of the node model: no PE is mapped to them
/// and no advice is about them, but they carry traffic and count it.
std::vector<Nic> read_virtual_interfaces(const Sysroot& sysroot);

/// The node with these behind its NICs, for who counts what interfaces carry. Interfaces that a NIC
/// of the node has already are not added.
Node with_virtual_interfaces(Node node, const Sysroot& sysroot);

/// The rate of such an interface, where that is a wire's: of a bond the sum of its links, of a VLAN
/// that of the link below. A veth or a tunnel tells a rate, too, which no wire has: nothing.
std::optional<double> virtual_interface_Gbps(const Sysroot& sysroot, const std::string& name);

} // namespace shmemctl
