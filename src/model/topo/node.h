// The node model: plain data; every fact has a source, or the reason why it is unknown.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/model/topo/pci_address.h"

// Upper limits of a node description. Everything that is quadratic in devices (the
// distance matrix) stays small then, whatever a file claims.
namespace shmemctl::topo_limits {

inline constexpr int max_devices = 1024; ///< GPUs and NICs together
inline constexpr int max_pci_entries = 65536;
inline constexpr int max_pci_functions = 8192; ///< functions that a file may list, of any class
inline constexpr int max_os_devices = 16384;
inline constexpr int max_numa_nodes = 1024; ///< as Linux's MAX_NUMNODES
inline constexpr int max_packages = 1024;
inline constexpr int max_host_bridges = 4096;

} // namespace shmemctl::topo_limits

namespace shmemctl {

/// A value with its origin ("/sys/bus/pci/devices/0000:18:00.0/numa_node", "line 12"), or no value
/// with the reason ("numa_node reads -1"). Unknown stays unknown: there are no defaults.
template <class T>
struct Fact {
  std::optional<T> value;
  std::string origin;

  bool known() const { return value.has_value(); }
  explicit operator bool() const { return known(); }
  const T& operator*() const { return *value; }
};

template <class T>
Fact<T> known(T value, std::string origin) {
  return Fact<T>{std::move(value), std::move(origin)};
}
template <class T>
Fact<T> unknown(std::string reason) {
  return Fact<T>{std::nullopt, std::move(reason)};
}

struct Package {
  int os_index = 0;
  Fact<std::string> model; ///< CPU model name
};

enum class NumaKind { cpu, gpu_memory, other_memory }; ///< other: CXL, HBM, no CPUs of its own
struct NumaNode {
  int os_index = 0;
  NumaKind kind = NumaKind::cpu;
  Fact<int> package;      ///< os_index of the package
  Fact<std::string> cpus; ///< Linux cpulist: "0-15,64-79"
  Fact<std::uint64_t> memory_bytes;
};

struct PcieLink {
  Fact<double> speed_GTps;     ///< now: 2.5, 5, 8, 16, 32, 64
  Fact<int> width;             ///< lanes now
  Fact<double> max_speed_GTps; ///< maximum of the device
  Fact<int> max_width;
};

/// The kind of a device of `Node::pci`.
enum class PciKind {
  endpoint,
  bridge,      ///< one bridge function: a root port, or one port of a switch (sysfs, hwloc)
  whole_switch ///< a whole switch as one device, with all its ports (NCCL's XML)
};

struct PciDevice {
  PciAddress address;
  PciKind kind = PciKind::endpoint;
  /// Index in Node::pci of the bridge above, which comes first; -1: none, or unknown.
  int parent = -1;
  /// Index in Node::host_bridges, -1 if unknown.
  int host_bridge = -1;
  Fact<std::uint32_t> class_code; ///< 24 bits: 0x030200
  Fact<std::uint16_t> vendor, device, subsystem_vendor, subsystem_device;
  Fact<int> numa; ///< os_index; unknown if the kernel reports -1
  PcieLink link;
  /// Canonical "/sys/devices/pci0000:15/..." if the source has it, else "".
  std::string sysfs_path;
};

struct HostBridge {
  std::uint32_t domain = 0;
  std::uint8_t bus = 0; ///< its root bus
  Fact<int> numa;
  Fact<int> package; ///< os_index, if only that is known
  /// False if the source groups devices by CPU and has no host bridges (NCCL's XML): devices below
  /// it share the NUMA node, so they are NODE; whether they are PHB is unknown.
  bool exact = true;
};

enum class GpuLinkKind { nvlink, xgmi, c2c };
enum class LinkTarget { gpu, nvswitch, cpu, unknown };
struct GpuLink {
  GpuLinkKind kind = GpuLinkKind::nvlink;
  LinkTarget target = LinkTarget::unknown;
  std::optional<PciAddress> target_address;
  int count = 1;               ///< active links to that target
  Fact<double> bandwidth_GBps; ///< one link, one direction
};

struct Gpu {
  int index = 0;      ///< in PCI bus order (or the source's own order if it has no addresses)
  int pci = -1;       ///< index in Node::pci, -1 if the source has no PCI address
  std::string vendor; ///< "nvidia", "amd", "intel", or "" if unknown
  Fact<std::string> name, uuid;
  Fact<std::string> vbios; ///< "96.00.89.00.01", of the live machine only
  Fact<int> numa;
  /// The NUMA nodes as a list ("0,3-9") if the source names several: `numa` is then unknown.
  Fact<std::string> numa_affinity;
  Fact<int> memory_numa;  ///< NUMA node of the GPU's own memory (nvidia-smi's GPU NUMA ID)
  Fact<std::string> cpus; ///< CPU affinity as a cpulist, if the source gives it
  Fact<int> driver_index; ///< NVML's number, or that of the source, if it differs from `index`
  std::vector<GpuLink> links;
};

enum class PortState { down, init, armed, active };
enum class LinkLayer { infiniband, ethernet, other };
struct Gid {
  int index = 0;
  std::string value;      ///< "fe80:0000:...": as sysfs writes it
  Fact<std::string> type; ///< "IB/RoCE v1", "RoCE v2"
  Fact<std::string> netdev;
};
struct NicPort {
  int number = 1; ///< from 1
  Fact<PortState> state;
  Fact<LinkLayer> link_layer;
  Fact<double> rate_Gbps;
  Fact<int> lid;
  Fact<int> active_mtu_bytes;
  Fact<std::string> netdev;
  std::vector<Gid> gids; ///< only slots in use
};

/// A network device: an HCA (RDMA) or another NIC.
struct Nic {
  std::string name; ///< RDMA device name; netdev name for other NICs; "nic0" if the source has none
  /// The source has no name: `name` is a label, unique only here. It must not be compared with
  /// names given by users or variables.
  bool unnamed = false;
  Fact<int> source_number; ///< the source's own number (NIC5: 5), if it differs from the position
  int pci = -1;            ///< index in Node::pci of the NIC's function, -1 for virtual NICs
  Fact<bool> rdma;
  Fact<std::string> driver; ///< "mlx5_core", "efa", "rdma_rxe"
  Fact<int> numa;
  Fact<std::string> firmware, node_guid;
  bool virtual_device = false;  ///< neither the device nor its netdev has a PCI function
  Fact<PciAddress> data_direct; ///< mlx5 data-direct function
  std::vector<NicPort> ports;   ///< empty: the source does not report ports
};

/// Path classes of `nvidia-smi topo`, from near to far.
enum class PathClass { self, nvlink, pix, pxb, phb, node, sys };
struct Distance {
  std::optional<PathClass> path; ///< unknown if the facts do not determine it
  int links = 0;                 ///< NVLinks (or xGMI links) for PathClass::nvlink
  std::string reason;            ///< why it is unknown; else ""

  bool operator==(const Distance& other) const {
    return path == other.path && links == other.links;
  }
};

/// Distances of all pairs: computed (distance_matrix()), or stated by the source (Node::recorded).
/// Devices are numbered GPUs first (by index), then NICs (by position in Node::nics).
using DistanceMatrix = std::vector<std::vector<Distance>>;

struct Node {
  std::string hostname; ///< "" if unknown
  std::string format;   ///< "live", "sysroot", "hwloc-xml", "nccl-xml", "nvidia-smi", "report"
  std::vector<Package> packages;
  std::vector<NumaNode> numa_nodes;
  std::vector<HostBridge> host_bridges;
  std::vector<PciDevice> pci; ///< bridges, GPUs, NICs and, from sysfs, NVSwitches
  std::vector<Gpu> gpus;      ///< index == position
  std::vector<Nic> nics;      ///< RDMA devices first, in enumeration order; then the others
  int nvswitches = 0;         ///< NVSwitch PCI functions seen
  /// The version of NVIDIA's driver, and the newest CUDA that it supports ("13.0"). Only known for
  /// the live machine.
  Fact<std::string> driver_version, cuda_version;
  int hidden_nics = 0; ///< NICs that exist according to the source, which does not list them
  std::optional<DistanceMatrix> recorded;
  /// What the reader could not read, omitted or took from another source; with the position if the
  /// source is a file. check_source() makes findings of the first ones.
  std::vector<std::string> notes;
  /// Less important notes, which become findings of severity info.
  std::vector<std::string> remarks;
};

/// Sorts GPUs by PCI address, if all have one, renumbers them, and puts RDMA devices before other
/// NICs (keeping each group's order), and permutes `recorded` accordingly. Every reader calls it
/// last.
void normalize(Node& node);

/// Equality of everything but the origins of facts, `format`, `notes`, `remarks`, and what only the
/// live machine has: versions of the driver, of CUDA and of VBIOS.
bool same_model(const Node& left, const Node& right);
/// For test failures: the path of the first field that differs; "" if same_model().
std::string first_difference(const Node& left, const Node& right);

/// PCI vendor ids and class codes.
namespace pci_ids {
inline constexpr std::uint16_t nvidia = 0x10de, amd = 0x1002, intel = 0x8086, mellanox = 0x15b3;
inline constexpr std::uint16_t amazon = 0x1d0f, broadcom_nic = 0x14e4;
bool is_bridge(std::uint32_t class_code);                         ///< 0x0604xx
bool is_network(std::uint32_t class_code);                        ///< 0x02xxxx
bool is_nvswitch(std::uint32_t class_code, std::uint16_t vendor); ///< 0x0680 of NVIDIA
/// A GPU as compute device: NVIDIA or AMD with class 0x0300, 0x0302, 0x0380 or 0x1200, or Intel
/// with one of these except for 0x0300 (integrated graphics). VGA of other vendors (BMC) is none.
bool is_gpu(std::uint32_t class_code, std::uint16_t vendor);
const char* gpu_vendor(std::uint16_t vendor); ///< "nvidia", "amd", "intel", ""
} // namespace pci_ids

/// Describes what is wrong with the node's indices, counts or sizes; "" if it is valid. Then
/// parents come first and are bridges, every index exists, counts lie in the range of the thing
/// they count, the recorded matrix has a row and a column per device, nothing exceeds topo_limits.
std::string shape_problem(const Node& node);

/// The link layer implied by a device's name, for sources that have names only: rdma-core's
/// persistent names (ib*, roce*, iw*: rdma_rename(8)), administrators' names by kind (mlx5_ib0,
/// mlx5_eth0, Azure's mlx5_an0), and mlx5_bond_0 (only Ethernet ports bond). The kernel's own names
/// (mlx5_0) imply nothing: unknown, with that reason. The origin says that it is derived.
Fact<LinkLayer> link_layer_from_name(const std::string& name);

/// "DOWN", "INIT", "ARMED", "ACTIVE": the word in /sys/class/infiniband/*/ports/*/state.
const char* to_string(PortState state);
/// "InfiniBand", "Ethernet", as .../link_layer has it, or "other".
const char* to_string(LinkLayer layer);

} // namespace shmemctl
