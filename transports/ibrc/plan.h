// Which ports connect, and how: pure functions over the data of both ends.
#pragma once

#include <vector>

#include "transports/ibrc/settings.h"
#include "transports/ibrc/wire.h"
#include "transports/rc/job.h"

namespace shmemctl::ibrc {

/// A pair of GIDs that may serve a connection; the peer's address as it travelled.
struct AddressPair {
  std::size_t local = 0; ///< index in the own list of NICs
  verbs::GidKind kind = verbs::GidKind::v2_ipv4;
  verbs::RawGid remote{};
};

/// The path from one local NIC to one remote NIC.
struct PathPlan {
  std::size_t nic = 0, peer_nic = 0;
  int mtu_bytes = 0;
  int outstanding_reads = 1;
  std::uint64_t max_message_bytes = 0;
  bool global = true;                 ///< with a GRH
  std::vector<AddressPair> addresses; ///< to try in this order; empty without a GRH
};

/// Paths between two PEs, over the NICs that rc::pair_ports() pairs. Throws
/// Error (unavailable, or usage for an option) that names both ends' ports if they cannot be
/// connected.
std::vector<PathPlan> plan_paths(const Hello& local, const Hello& remote, const Settings& settings,
                                 const rc::Job& job, int peer);

} // namespace shmemctl::ibrc
