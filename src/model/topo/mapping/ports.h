// The ports of a node that carry compute traffic, their roles and their paths to GPUs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/model/topo/mapping/mapping.h"

namespace shmemctl {

/// The usable ports that the operator excludes by name: NVSHMEM_HCA_LIST=^... Empty for NCCL, which
/// does not read it.
std::vector<NicUse> ports_left_out(const Node& node, const MappingRequest& request);
/// The ports over which traffic should be spread evenly: fabric_ports() without ports_left_out(),
/// or all of them if that leaves none. A port of this list without traffic counts as idle.
/// Loads, findings about loads, `sim` and `doctor` use this list; `hotspots`, `inspect` and
/// `explain` use fabric_ports(), because the job that they look at may have other settings.
std::vector<NicUse> wanted_ports(const Node& node, const MappingRequest& request);

/// The request for the best mapping with which a mapping of this request is compared: NVSHMEM's
/// list excludes nothing for NCCL.
MappingRequest optimal_request(MappingRequest request);

/// The port in the model, or nullptr if the source does not report it.
const NicPort* find_port(const Node& node, int nic, int port);

/// The link layer according to the kernel or, failing that, the device's name: rdma-core names
/// devices ib*, roce* and iw* by their link, and administrators use mlx5_ib0 and mlx5_eth0.
std::optional<LinkLayer> link_layer_of(const Node& node, int nic, int port);

/// By nvidia-smi's rules; unknown, with the reason, for a PE without a GPU (-1).
Distance gpu_nic_distance(const Node& node, int gpu, int nic);

/// 0 PIX, 1 PXB, 2 PHB, 3 NODE, 4 SYS; an unknown distance counts as SYS.
int distance_rank(const Distance& distance);

/// True if both NUMA nodes are known and differ.
bool crosses_numa(const Node& node, int gpu, int nic);

/// The number of NICs that `optimal` gives each PE: 1, or max(1, ports / PEs) with IBGDA over
/// several NICs; 0 without ports or PEs.
int nics_per_pe(const NvshmemSettings& settings, std::size_t pes, std::size_t ports);

/// The quality of a mapping; only NICs that carry traffic count. `optimal` minimises the first
/// three members, in this order, within wanted_ports().
struct MappingScore {
  double worst_load = 0;        ///< load of the busiest (NIC, port)
  std::int64_t distance = 0;    ///< sum of distance_rank()
  std::int64_t crossings = 0;   ///< pairs on different NUMA nodes
  std::int64_t without_nic = 0; ///< PEs without any NIC
  std::int64_t off_fabric = 0;  ///< uses of ports that are not fabric_ports()

  bool operator==(const MappingScore&) const = default;
};
MappingScore score(const Node& node, const Mapping& mapping);
/// True if `left` is not worse than `right`. Compares lexicographically: without_nic, off_fabric,
/// worst_load, distance, crossings.
bool at_least_as_good(const MappingScore& left, const MappingScore& right);

enum class PortRole {
  compute, ///< a port of the compute fabric: it carries the GPUs' traffic
  storage, ///< a port of the fabric's kind, but no GPU is near it, and every GPU has a nearer one
  other_network ///< a port of another kind than the fabric's: management, front end
};

struct RatedPort {
  NicUse port;
  PortRole role = PortRole::compute;
  /// True if the NIC shares a PCIe switch with a GPU, or no NIC of the fabric's kind does. Also
  /// for a NIC of that kind if, as far as known, none of that kind is nearer to one of the GPUs.
  bool serves_a_gpu = true;
};

/// Every one of usable_ports(), with its role.
///
/// Ports with the same link layer, rate and provider (EFA or not) are of one kind. The fabric is
/// the kind of most NICs that serve a GPU; in a tie EFA, because a host with EFA has no other
/// network to its peers, then the largest total rate (or the largest number, if rates are unknown).
/// Ports that no known fact separates from the fabric belong to it, and so do slower ports of the
/// same NIC model. If the link layer is unknown, it is derived from the device's name if possible
/// (rdma-core: ib*, roce*, iw*).
///
/// A NIC of that kind is for storage if it serves no GPU while others share a switch with one. A
/// NIC that is the nearest of any GPU is never a storage NIC, however far away it is. NICs whose
/// ports are down still count as a GPU's nearest: a failed port does not turn a storage NIC into a
/// compute NIC.
std::vector<RatedPort> port_roles(const Node& node);

/// True if the driver, the PCI vendor or the name identifies the NIC as an EFA.
bool is_efa_device(const Node& node, int nic);

/// A device's sysfs path, and the content of its numa_node file: -1 if unknown or missing.
struct SysfsLocation {
  std::string path; ///< "" if the device has none, or the source gives no PCI address
  int numa = -1;
  std::string doubt; ///< why the path that NVSHMEM reads may be another one; else ""
};
SysfsLocation gpu_location(const Node& node, int gpu);
/// @param data_direct  of the NIC's data-direct function, if it has one
SysfsLocation nic_location(const Node& node, int nic, bool data_direct);

/// NVSHMEM's classes from one GPU to some NICs, and a description of what was assumed ("" if
/// nothing was).
struct GpuClasses {
  std::vector<PathClass> to_nic;
  std::string doubt;
};

/// The classes to a fixed set of NICs. A recorded matrix takes precedence, and unknown cells of it
/// count as SYS.
class NvshmemDistances {
public:
  /// @param nics         indices in Node::nics
  /// @param data_direct  use the path of a NIC's data-direct function, if it has one
  NvshmemDistances(const Node& node, std::vector<int> nics, bool data_direct);

  GpuClasses of_gpu(int gpu) const;

private:
  GpuClasses recorded(int gpu) const;

  const Node& node_;
  std::vector<int> nics_;
  std::vector<SysfsLocation> locations_; ///< locations of nics_; empty if a recorded matrix decides
};

} // namespace shmemctl
