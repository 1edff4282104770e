// Which ports connect, and how: pure functions over the data of both ends.
#pragma once

#include <string>
#include <vector>

#include "src/base/error.h"
#include "transports/ibrc/settings.h"
#include "transports/ibrc/wire.h"

namespace shmemctl::ibrc {

/// A pair of GIDs that may serve a connection; the peer's address as it travelled.
struct AddressPair {
  std::size_t mine = 0; ///< index in the own list of NICs
  verbs::GidKind kind = verbs::GidKind::v2_ipv4;
  verbs::RawGid theirs{};
};

/// One NIC here to one NIC there.
struct PathPlan {
  std::size_t nic = 0, peer_nic = 0;
  int mtu_bytes = 0;
  int outstanding_reads = 1;
  std::uint64_t max_message_bytes = 0;
  bool global = true;                 ///< with a GRH
  std::vector<AddressPair> addresses; ///< to try in this order; empty without a GRH
};

/// Which ends of a plan its errors name.
struct PlanNames {
  std::string peer; ///< "PE 3 on node2"
  std::string host;
  int pe = 0;
};

/// Paths between two PEs: as many as the PE with more NICs has NICs, the other PE's NICs assigned
/// round-robin, so that the best NICs of both are paired. Both ends compute the same plan. Throws
/// Error (unavailable, or usage for an option) that names both ends' ports if they cannot be
/// connected.
std::vector<PathPlan> plan_paths(const Hello& mine, const Hello& theirs, const Settings& settings,
                                 const PlanNames& names);

/// "rxe0:1"
std::string port_name(const Hello::Nic& nic);

} // namespace shmemctl::ibrc
