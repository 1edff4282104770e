// What is wrong with the NICs that a simulated cluster's ranks use, in topo's words.
#pragma once

#include "src/base/finding.h"
#include "src/sim/cluster.h"

namespace shmemctl::sim {

/// nic-off-fabric, as topo says it of the node: a rank on another network does not reach the others
/// as the model has it.
Findings cluster_findings(const Node& node, const Cluster& cluster);

} // namespace shmemctl::sim
