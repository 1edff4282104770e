// Which ports carry the traffic of NICs that a what-if kills.
#pragma once

#include <string>
#include <vector>

#include "src/model/sim/cluster.h"

namespace shmemctl::sim {

/// A port that a PE uses instead of a dead one.
struct Substitute {
  std::string device;
  int port = 1;
  std::vector<int> pes;    ///< local PEs that used the dead port, and now use this one
  std::vector<int> shares; ///< other local PEs, which used this port before and still do
};

/// How the PEs of a dead port continue, for all nodes on which they continue in the same way.
struct Takeover {
  std::vector<int> nodes; ///< ascending; at least one
  std::string device;
  int port = 1;
  std::vector<int> pes;       ///< local PEs that used the dead port; may be empty
  std::vector<Substitute> by; ///< empty if no PE used the dead port
};

/// For each port that `changes` kills: in the order of the changes, then by node.
/// @param before the cluster as given
/// @param after the same cluster with the changes
std::vector<Takeover> takeovers(const Cluster& before, const Cluster& after,
                                const std::vector<NicChange>& changes);

} // namespace shmemctl::sim
