// What is wrong with a node and its mapping, and the lines that mend it.
#pragma once

#include <string>
#include <vector>

#include "src/base/finding.h"
#include "src/base/options.h"
#include "src/topo/mapping/mapping.h"

namespace shmemctl {

/// Facts about the machine alone: port-down, port-slow, pcie-degraded, gpu-without-nic,
/// nic-without-gpu, numa-unknown, nic-not-rdma.
Findings check_node(const Node& node);

/// The mapping and the lists: nic-hotspot, nic-idle, nic-far, mapping-collapse, mapping-ignored,
/// mapping-not-pinned, mapping-order, mapping-count, mapping-duplicate, mapping-malformed,
/// hca-unknown, port-unknown.
Findings check_mapping(const Node& node, const Mapping& mapping);

/// Lines of environment that give the optimal mapping.
struct Advice {
  World world = World::node;
  std::string library;            ///< "nvshmem", "nccl", "ucx"
  std::vector<std::string> lines; ///< `export NAME=value`, or one per local rank
  std::string note;               ///< why one per rank, or why it cannot be expressed
};
std::vector<Advice> advise(const Node& node, const Mapping& optimal);

} // namespace shmemctl
