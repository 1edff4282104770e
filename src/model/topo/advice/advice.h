// Findings about a node and its mapping, and the environment settings that fix them.
#pragma once

#include <string>
#include <vector>

#include "src/base/finding.h"
#include "src/base/options.h"
#include "src/model/topo/mapping/mapping.h"

namespace shmemctl {

/// Findings about facts that the reader could not read, omitted, mirrored or synthesized:
/// topology-incomplete, nic-names-unknown. Part of check_node().
Findings check_source(const Node& node);

/// Findings about the machine alone: port-down, port-slow, pcie-degraded, gpu-without-nic,
/// gpu-without-nvlink, numa-unknown, nic-not-rdma, and those of check_source(). Most severe first,
/// then by id.
Findings check_node(const Node& node);

/// Findings about the mapping and the settings: nic-hotspot, nic-idle, nic-far, mapping-collapse,
/// mapping-ignored, mapping-not-pinned, mapping-order, mapping-count, mapping-duplicate,
/// mapping-malformed, hca-unknown, port-unknown, nic-not-rdma (a list names one), nic-off-fabric (a
/// PE's NIC is not on the network of the compute fabric), mapping-empty (a list, a prefix or a
/// transport leaves no device), remote-transport-unknown, nvshmem-version-unknown, nic-without-gpu.
/// Most severe first, then by id. Variables in a fix were tried on the model (with_tried_fixes());
/// they contain only known NIC names. Only mapping-unknown if the source is insufficient to
/// determine the mapping.
Findings check_mapping(const Node& node, const Mapping& mapping);

/// Environment lines that give the optimal mapping.
struct Advice {
  World world = World::node;
  std::string library;            ///< "nvshmem", "nccl", "ucx"
  std::vector<std::string> lines; ///< `unset ...`, `export NAME=value`, or lines_per_rank()
  std::string note;               ///< a remark, such as why each rank needs lines of its own
  /// nvshmem only: the variables per local rank, so that a simulation can confirm them.
  std::vector<NvshmemSettings> settings_per_rank;
};
/// For NVSHMEM one per world, each confirmed by simulation: lists unset if the default is optimal,
/// else an NVSHMEM_HCA_LIST that excludes storage and management NICs, else NVSHMEM_HCA_PE_MAPPING,
/// else NVSHMEM_NETDEVS_POLICY, else one NVSHMEM_HCA_LIST per local rank, each after the
/// transport_changes() that it needs; no lines if none of them works. For NCCL and UCX one each,
/// valid in every world. Empty if a PE has no NIC, or one whose name is unknown.
std::vector<Advice> advise(const Node& node, const Mapping& optimal);

} // namespace shmemctl
