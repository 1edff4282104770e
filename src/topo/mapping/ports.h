// The ports a PE can choose among, and how good a choice is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/topo/mapping/mapping.h"

namespace shmemctl {

/// fabric_ports(), or usable_ports() if there is no fabric: what `nccl` and `optimal` choose from.
std::vector<NicUse> candidate_ports(const Node& node);

/// The usable ports that the operator leaves out by name: NVSHMEM_HCA_LIST=^... Nothing for NCCL,
/// which does not read it.
std::vector<NicUse> ports_left_out(const Node& node, const MappingRequest& request);
/// candidate_ports() without ports_left_out(), or, if that leaves nothing, with them: among these
/// traffic should be even, and what carries none of it is idle.
std::vector<NicUse> wanted_ports(const Node& node, const MappingRequest& request);

/// The request for the best mapping that a mapping of this request is compared with: NVSHMEM's list
/// leaves nothing out for NCCL.
MappingRequest optimal_request(MappingRequest request);

/// The port's entry in the model, or nullptr where the source does not tell about ports.
const NicPort* find_port(const Node& node, int nic, int port);

/// What the kernel or, failing that, the device's name says: rdma-core names devices ib*, roce*
/// and iw* by their link, and sites write mlx5_ib0 and mlx5_eth0.
std::optional<LinkLayer> link_layer_of(const Node& node, int nic, int port);

/// By nvidia-smi's rules; unknown, with the reason, for a PE without a GPU (-1).
Distance gpu_nic_distance(const Node& node, int gpu, int nic);

/// 0 PIX, 1 PXB, 2 PHB, 3 NODE, 4 SYS; an unknown distance counts as SYS.
int distance_rank(const Distance& distance);

/// True if both NUMA nodes are known and differ.
bool crosses_numa(const Node& node, int gpu, int nic);

/// NICs that carry traffic for each PE: 1, or with IBGDA over several NICs max(1, ports / PEs).
int nics_per_pe(const NvshmemSettings& settings, std::size_t pes, std::size_t ports);

/// What `optimal` minimises, in this order, after it has kept to wanted_ports(); only NICs that
/// carry traffic count.
struct MappingScore {
  double worst_load = 0;        ///< of the busiest (NIC, port)
  std::int64_t distance = 0;    ///< sum of distance_rank()
  std::int64_t crossings = 0;   ///< pairs on different NUMA nodes
  std::int64_t without_nic = 0; ///< PEs that have no NIC at all
  std::int64_t off_fabric = 0;  ///< uses of ports that are not candidate_ports()

  bool operator==(const MappingScore&) const = default;
};
MappingScore score(const Node& node, const Mapping& mapping);
/// No PE more without a NIC, no NIC more off the fabric, and not worse lexicographically.
bool at_least_as_good(const MappingScore& left, const MappingScore& right);

} // namespace shmemctl
