// Which network the PEs of a job use to reach other nodes, gathered from all of them.
#pragma once

#include <string>
#include <vector>

#include "reports/networks.h"
#include "src/runtime/runtime.h"

namespace shmemctl {

/// What this PE uses: the transport of each PE of another node, and that of kernels where it is
/// ibgda. The proxy's requests go by the former.
std::vector<NetworkUse> networks_in_use(Runtime& runtime);
/// As message for the others: a few bytes for each way and range of nodes.
std::string networks_message(const std::vector<NetworkUse>& mine);
/// @param messages networks_message() of every PE, by PE
/// @param node_of_pe their nodes
/// Throws Error (unavailable) for a malformed message.
std::vector<NetworkRow> merge_networks(const std::vector<std::string>& messages,
                                       const std::vector<int>& node_of_pe, int n_nodes);

/// Collective: of all pairs of nodes, on PE 0; empty elsewhere, and for a job on one node.
std::vector<NetworkRow> gather_networks(Runtime& runtime);

} // namespace shmemctl
