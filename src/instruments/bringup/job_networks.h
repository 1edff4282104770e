// Which networks the PEs of a job use to reach other nodes, gathered from all PEs.
#pragma once

#include <string>
#include <vector>

#include "reports/networks.h"
#include "src/runtime/runtime.h"

namespace shmemctl {

/// What this PE uses: the transport to each PE of another node, which also carries the requests of
/// the proxy, and in addition ibgda if kernels use that.
std::vector<NetworkUse> networks_in_use(Runtime& runtime);
/// These uses as a message for the others: a few bytes for each path and range of nodes.
std::string networks_message(const std::vector<NetworkUse>& mine);
/// @param messages networks_message() of every PE, by PE
/// @param node_of_pe node of each PE
/// Throws Error (unavailable) for a malformed message.
std::vector<NetworkRow> merge_networks(const std::vector<std::string>& messages,
                                       const std::vector<int>& node_of_pe, int n_nodes);

/// Collective: the networks between all pairs of nodes, on PE 0; empty elsewhere, and for a job on
/// one node.
std::vector<NetworkRow> gather_networks(Runtime& runtime);

} // namespace shmemctl
