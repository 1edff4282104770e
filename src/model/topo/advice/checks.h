// The parts of check_node() and check_mapping(), one for each kind of fact.
#pragma once

#include "src/base/finding.h"
#include "src/model/topo/advice/env_fix.h"
#include "src/model/topo/mapping/mapping.h"

namespace shmemctl {

Findings check_ports(const Node& node);      ///< port-down, port-slow
Findings check_pcie_links(const Node& node); ///< pcie-degraded
Findings check_affinity(const Node& node);   ///< gpu-without-nic, numa-unknown
Findings check_nvlinks(const Node& node);    ///< gpu-without-nvlink
Findings check_rdma(const Node& node);       ///< nic-not-rdma

/// Replaces fixes that need NIC names which are unknown (labels, a prefix) by: get the names first.
void withhold_unknown_names(const Node& node, Findings& findings);

/// NVSHMEM's settings: mapping-ignored, mapping-not-pinned, mapping-order, mapping-count,
/// mapping-duplicate, mapping-malformed, mapping-empty, hca-unknown, port-unknown, nic-not-rdma,
/// remote-transport-unknown, nvshmem-version-unknown. Nothing for other policies.
Diagnoses check_lists(const Node& node, const Mapping& mapping, const Mapping& optimal);
/// The loads of NICs: nic-hotspot, nic-idle, nic-far, nic-off-fabric, mapping-collapse,
/// mapping-duplicate.
Diagnoses check_loads(const Node& node, const Mapping& mapping, const Mapping& optimal);

/// NICs that are not for GPUs' traffic: nic-without-gpu.
Diagnoses check_other_nics(const Node& node, const Mapping& mapping);

} // namespace shmemctl
