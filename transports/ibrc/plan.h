// Plans which ports connect and how. Pure functions of the data of both ends.
#pragma once

#include <vector>

#include "transports/ibrc/settings.h"
#include "transports/ibrc/wire.h"
#include "transports/rc/job.h"

namespace shmemctl::ibrc {

/// A pair of GIDs that a connection may use.
struct AddressPair {
  std::size_t local = 0; ///< index in this PE's NIC's list of addresses
  verbs::GidKind kind = verbs::GidKind::v2_ipv4;
  verbs::RawGid remote{};
};

/// The path from one local NIC to one remote NIC.
struct PathPlan {
  std::size_t nic = 0, peer_nic = 0;
  int mtu_bytes = 0;
  int outstanding_reads = 1;
  std::uint64_t max_message_bytes = 0;
  bool global = true;                 ///< whether packets have a GRH
  std::vector<AddressPair> addresses; ///< in the order in which to try them; empty without a GRH
};

/// The paths between two PEs, over the NICs that rc::pair_ports() pairs. If two ports cannot be
/// connected, throws Error that names them: usage for IB_SL, IB_TRAFFIC_CLASS, else unavailable.
std::vector<PathPlan> plan_paths(const Hello& local, const Hello& remote, const Settings& settings,
                                 const rc::Job& job, int peer);

} // namespace shmemctl::ibrc
