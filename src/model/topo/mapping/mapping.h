// Which NICs each PE uses: the policies, the request, and the result.
#pragma once

#include <string>
#include <vector>

#include "src/model/topo/mapping/nvshmem_devices.h"
#include "src/model/topo/node.h"

namespace shmemctl {

enum class Policy { nvshmem, nccl, optimal };
const char* to_string(Policy policy);

/// Which PEs of the node are in one NVSHMEM world.
enum class World {
  node,      ///< all PEs of a node
  deepep_ht, ///< DeepEP's high-throughput mode: each local rank alone (npes_node = 1), with IBGDA
  deepep_ll  ///< DeepEP's low-latency mode: all local ranks in one world, with IBGDA
};
const char* to_string(World world); ///< "node", "deepep-ht", "deepep-ll"

struct MappingRequest {
  Policy policy = Policy::nvshmem;
  World world = World::node;
  NvshmemSettings nvshmem;
  std::vector<int> gpus; ///< GPU index of each PE; PE i of the node is at position i
  /// If ranks have different settings: those of each PE, instead of `nvshmem`; else empty.
  std::vector<NvshmemSettings> nvshmem_per_pe;
  /// NCCL_IB_HCA of each PE as exact names, "=mlx5_0:1,mlx5_1:1"; empty: unset.
  std::vector<std::string> nccl_ib_hca;
};

/// The settings that apply in that world: DeepEP sets NVSHMEM_IB_ENABLE_IBGDA=1 itself, in both of
/// its modes.
NvshmemSettings settings_in(World world, NvshmemSettings settings);

/// The GPU of each PE: `gpu_list` or, if that is empty, all GPUs in order, repeated if there are
/// more PEs. `pes` < 0 means one PE for each of these GPUs. On a node without GPUs, `pes` PEs have
/// GPU -1. Throws Error (usage) if `gpu_list` names a GPU that the node does not have.
std::vector<int> assign_gpus(const Node& node, int pes, const std::vector<int>& gpu_list);

struct NicUse {
  int nic = 0; ///< index in Node::nics
  int port = 1;
  Distance distance; ///< by nvidia-smi's rules, to the PE's GPU
  bool operator==(const NicUse& other) const { return nic == other.nic && port == other.port; }
};
struct PeMapping {
  int pe = 0;
  int gpu = -1;
  std::vector<NicUse> nics; ///< what the policy chose, in its order, including duplicates
  /// How many of the NICs, from the first on, carry traffic: all, but for NVSHMEM often only one.
  int used = 0;
  std::string chosen_by; ///< "distance", "ENABLE_NIC_PE_MAPPING", "only device", "nccl", ...
  std::string reason;    ///< why it has no NIC, or what was assumed about the distances; else ""
};
struct NicLoad {
  int nic = 0;
  int port = 1;
  std::vector<int> pes;
  double load = 0;        ///< sum over PEs of 1 / (number of NICs that the PE uses)
  double load_factor = 0; ///< load over the even share: (sum of loads) / (eligible ports)
};
struct Mapping {
  MappingRequest request;
  std::vector<PeMapping> pes;
  std::vector<NicLoad> nics; ///< every (NIC, port) that is eligible or used, in node order
  double load_factor = 0;    ///< load factor of the busiest port
  std::string undecided; ///< why the source is insufficient to determine the NICs, so that no PE
                         ///< has one; else ""
  DeviceTable table;     ///< policy nvshmem: the table with the reasons for exclusions
  std::vector<int> table_nics; ///< enumeration index in `table` -> Node::nics
};

/// The (NIC, port) pairs that can carry traffic: RDMA not known to be absent, the port active or of
/// unknown state, and not virtual if there are real ones. A NIC without port data in the source
/// counts as port 1, active.
std::vector<NicUse> usable_ports(const Node& node);
/// The usable ports of the compute fabric (PortRole::compute; see port_roles() for the rule). Not
/// empty if any port is usable. `nccl` uses these or nccl_ib_hca, `optimal` wanted_ports().
std::vector<NicUse> fabric_ports(const Node& node);

Mapping map_nics(const Node& node, const MappingRequest& request);

/// The policies themselves, without the loads; map_nics() calls one of them and then fills in the
/// loads.
Mapping map_nvshmem(const Node& node, const MappingRequest& request);
/// NCCL: nearest by path type; among equals by GPU number, as its newer releases do
/// (nccl_mapping.cpp says what is followed and what is not). A PE's NICs are those of its channels,
/// channel 0 first.
Mapping map_nccl(const Node& node, const MappingRequest& request);
/// Our policy: minimises the load of the busiest NIC, then the total distance, then the number of
/// NUMA crossings, by a min-cost flow over wanted_ports(). Ties go to the lower PE and NIC, so that
/// the result is stable.
/// Each PE gets nics_per_pe() NICs: one, unless IBGDA uses several (IBGDA_ENABLE_MULTI_PORT).
Mapping map_optimal(const Node& node, const MappingRequest& request);

/// Fills `nics` and the load factors from `pes`. The wanted_ports() are eligible, for NVSHMEM those
/// in its table or, if none is, the whole table; other ports count only if a PE uses them. A port
/// that a PE names twice carries its load twice.
void fill_loads(const Node& node, Mapping& mapping);

} // namespace shmemctl
