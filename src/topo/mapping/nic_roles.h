// What each NIC port is for: one rule, which topo, sim, loads and hot spots share.
#pragma once

#include <vector>

#include "src/topo/mapping/mapping.h"

namespace shmemctl {

enum class PortRole {
  compute,      ///< of the compute fabric: it carries the GPUs' traffic
  storage,      ///< of the fabric's kind, but no GPU is near it, and every GPU has a nearer one
  other_network ///< of another kind than the fabric: management, front end
};

struct RatedPort {
  NicUse port;
  PortRole role = PortRole::compute;
  /// The NIC is below a switch with a GPU; or none is; or, for NICs of the fabric's kind, no NIC is
  /// nearer to some GPU, or that is not known.
  bool serves_a_gpu = true;
};

/// Every one of usable_ports(), with its role.
///
/// Ports of one link layer, rate and provider (EFA or not) are of one kind. The fabric is the kind
/// that most NICs which serve a GPU are of; among equals EFA, since a host that has it has no other
/// network to its peers, then the largest total rate (the number, where rates are unknown). Ports
/// that no known fact sets apart from the fabric belong to it, and so do slower ports of the same
/// NIC model. Where the link layer is unknown, the device's name may tell it (rdma-core: ib*,
/// roce*, iw*).
///
/// A NIC of that kind is for storage if it serves no GPU while others are below a switch with one.
/// A NIC that is the nearest of any GPU is never taken for one, however far it is. NICs whose ports
/// are down count as a GPU's nearest all the same: a failed port makes no storage NIC a compute
/// one.
std::vector<RatedPort> port_roles(const Node& node);

/// True if the driver, the PCI vendor or the name says that the NIC is an EFA.
bool is_efa_device(const Node& node, int nic);

} // namespace shmemctl
