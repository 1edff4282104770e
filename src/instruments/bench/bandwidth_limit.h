// The limit of a point's bandwidth: the rate of the ports, GPU links or memory that its traffic
// uses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "src/base/sysroot.h"
#include "src/instruments/bench/case.h"
#include "src/model/topo/node.h"
#include "src/runtime/runtime.h"

namespace shmemctl::bench {

/// A port that carried a PE's traffic.
struct PortUse {
  std::string host;
  HcaPort nic;
  /// The rate of the wire in each direction; nothing if it is unknown or the device has no wire.
  std::optional<double> rate_GBps;
  /// Distinguishes machines, several of which may have the same host name.
  std::uint64_t machine_id = 0;
};

/// The rate of that port's wire in each direction, in 10^9 bytes per second. Nothing if the node
/// model does not know it, or if the reported rate is fictitious, as with software devices
/// (Soft-RoCE, siw) and virtual interfaces.
/// @param sysroot if given: where the rates of bonds and VLANs are looked up, which no node model
/// contains
std::optional<double> wire_rate_GBps(const Node& node, const HcaPort& nic,
                                     const Sysroot* sysroot = nullptr);

/// The ports that moved bytes between two readings of the transports' traffic. Bytes count as at
/// least one word per operation, since atomics and puts of a word may be recorded without bytes. A
/// port with less than 1 % of the busiest port's bytes is left out: it probably carried barriers.
std::vector<PortUse> ports_used(const Node& node, const std::vector<NicTraffic>& before,
                                const std::vector<NicTraffic>& after,
                                const Sysroot* sysroot = nullptr);
/// Serializes everything but the host and machine, which the receiver knows.
void serialize(Archive& archive, PortUse& port);
/// Returns the ports with their host and machine set.
std::vector<PortUse> ports_of_host(std::vector<PortUse> ports, const std::string& host,
                                   std::uint64_t machine_id = 0);

/// Whether all transfers at that point go from one machine to another. (A NIC that sends to its own
/// machine does not need its wire.) False for collectives.
/// @param machine_of machine id of each PE
bool leaves_machines(const Point& point, const std::vector<std::uint64_t>& machine_of);
/// Why no limit by a wire is known: a clause that begins with "no limit is known for".
std::string why_no_wire(const Point& point, const std::vector<std::uint64_t>& machine_of);

struct LinkLimit {
  double rate_GBps = 0;
  std::string name; ///< "mlx5_0:1 on n1, 400 Gb/s"; "4 ports of 2 hosts, 1600 Gb/s"
  int links = 0;    ///< number of NVLinks whose combined rate this is
  /// The limit is the bandwidth of the GPUs' own memory. Then what a PE writes to itself counts,
  /// too.
  bool of_memory = false;
  /// The limit is the GPUs' links to the host, whose memory contains the heap.
  bool to_host = false;
};
void serialize(Archive& archive, LinkLimit& limit);
/// A limit, or why none is known: "no limit is known for ...".
struct FoundLimit {
  std::optional<LinkLimit> limit;
  std::string reason = {};
};
/// The limit of all these ports together, each counted once. Nothing if there are no ports, or if
/// the rate of one of them is unknown.
std::optional<LinkLimit> link_limit(const std::vector<PortUse>& ports);

/// The bandwidth from one GPU to another in one direction, named "NVLink, 18 links of 26.562 GB/s"
/// or "PCIe, 16 lanes of 32 GT/s". Nothing if the model does not know it, or if both addresses are
/// the same GPU.
/// @param from,to PCI addresses
std::optional<LinkLimit> gpu_link(const Node& node, const std::string& from, const std::string& to);

/// The bandwidth from a GPU, or to it, for traffic with all of `others` together. Nothing if the
/// model does not know the link to one of them, if `others` is empty, or if there are several of
/// them and the GPU's NVLinks do not go through a switch.
std::optional<LinkLimit> gpu_links_limit(const Node& node, const std::string& gpu,
                                         const std::vector<std::string>& others);

/// A PE's GPU.
struct GpuOfPe {
  std::uint64_t machine_id = 0;
  std::string pci_address; ///< "": no GPU
  double memory_GBps = 0;  ///< rate of its own memory, reads and writes together; 0: not known
  /// Whether all that this PE sends at the point goes directly from GPU memory to GPU memory.
  bool between_gpus = true;
  /// Whether it goes to and from a heap in host memory, by the GPU's loads and stores.
  bool in_host_memory = false;
  std::string otherwise = {}; ///< if neither is true, the reason: "no limit is known for ..."
};
/// Serializes everything but the machine, which the receiver knows.
void serialize(Archive& archive, GpuOfPe& gpu);
/// The limit of a point whose traffic stays between GPUs:
/// - the links of all GPUs that send, together, each GPU counted once however many PEs it has; or
///   those of all that receive, if that is less (a get loads its data in the opposite direction at
///   the same rate)
/// - if all traffic stays on its PE's own GPU: the memory of these GPUs, where each byte is read
///   once and written once
/// - if the heap is in host memory: the links to it of all GPUs that send
/// Returns the reason instead for collectives, for several machines, for traffic through a network
/// or the host's processors, for traffic that only partly leaves its GPU, for GPUs without a switch
/// where one sends to several, and for what the model does not know.
/// @param node node of the machine
/// @param by_pe the GPU of each PE
FoundLimit gpu_link_limit(const Node& node, const Point& point, const std::vector<GpuOfPe>& by_pe);

/// The limit of a collective of all PEs: the GPUs' links to the host if the heap is in host memory;
/// the GPU's memory if all PEs share one; otherwise the links of all GPUs together, or only the
/// root's if only the root has to send. The share of the limit is computed from limited_bytes().
FoundLimit gpu_collective_limit(const Node& node, const LeastTraffic& traffic,
                                const std::vector<GpuOfPe>& by_pe);
/// The bytes of `traffic` that this limit applies to: the bytes that cross links between GPUs; for
/// memory, half of the bytes read and written; for links to the host, the larger of the bytes read
/// and the bytes written.
double limited_bytes(const LeastTraffic& traffic, const LinkLimit& limit);
/// The link between a PE's GPU and the memory of its host.
struct HostLink {
  std::uint64_t machine_id = 0;
  std::string pci_address;       ///< PCI address of the GPU
  std::optional<LinkLimit> link; ///< in each direction; nothing if the model does not know it
};
/// Serializes everything but the machine, which the receiver knows.
void serialize(Archive& archive, HostLink& link);
/// The rate of PCIe at full speed, net of its line code, or of NVLink-C2C.
/// @param pci_address address of the GPU
std::optional<LinkLimit> host_link(const Node& node, const std::string& pci_address);
/// The limit of copies between each PE's GPU and its host's memory (Traffic::local), for all PEs
/// together. Each GPU's link counts once, however many PEs the GPU has, and in both directions if
/// copies go both ways.
FoundLimit host_links_limit(const std::vector<HostLink>& by_pe, Direction direction);

/// Numbers the GPUs from 0 in the order of the PEs. Returns the number of each PE's GPU.
std::vector<int> gpu_numbers(const std::vector<GpuOfPe>& by_pe);

/// Rates of each PE, in 10^9 bytes per second, while all PEs that send do so at once; 0 for PEs
/// that do not send.
struct MeasuredLink {
  std::vector<double> stores_GBps; ///< rate of the stores that leave this PE's GPU
  std::vector<double> loads_GBps;  ///< rate of the loads that come to this PE's GPU
  int blocks = 0, threads = 0;     ///< the size of each PE's kernel
  std::size_t message_bytes = 0;   ///< size of the messages to each peer
  std::string traffic;             ///< pattern of the traffic: "all-to-all", "pair"

  /// The higher of the two rates, which is what the link can do.
  double limit_GBps(std::size_t pe) const;
  /// The conditions of the measurement: "stores, 132 blocks of 1024 threads, messages of 16M,
  /// all-to-all".
  std::string conditions(std::size_t pe) const;
};

/// The result of a measurement, or the reason why there is none.
struct LinkMeasurement {
  std::optional<MeasuredLink> link;
  std::string reason;
};

/// The sum of the measured rates of all senders. Without a measurement, the model's limit; the name
/// says which it is.
std::optional<LinkLimit> limit_of(const LinkMeasurement& measured,
                                  const std::optional<LinkLimit>& model);

/// Measures the links once for each pattern of traffic.
class LinkMeter {
public:
  explicit LinkMeter(Runtime& runtime) : runtime_(runtime) {}
  /// Collective; returns the same on all PEs. The first call for a pattern takes some ms and,
  /// meanwhile, up to 64 MiB of the GPU heap. Returns a reason instead of rates if nothing goes to
  /// another PE, if PEs share a GPU (they take turns on it), if the heap is not GPU memory that all
  /// PEs map, if it has no room, or if wrong data arrived. Throws Error like the waits for kernels.
  /// @param like a point with the traffic, direction and pair of PEs to measure
  const LinkMeasurement& of(const Point& like);

private:
  using Pattern = std::tuple<Traffic, Direction, int, int>;
  Runtime& runtime_;
  std::map<Pattern, LinkMeasurement> known_;
};

/// How all that this PE sends travels at a point on GPUs.
struct GpuPath {
  bool between_gpus = false;   ///< loads, stores and copy engines, from GPU memory to GPU memory
  bool in_host_memory = false; ///< loads and stores of GPUs, in a heap of host memory
  std::string otherwise;       ///< "no limit is known for ..." if neither
};
GpuPath path_of(Runtime& runtime, const Point& point);

/// The limit of a point, and whether it is one of GPUs rather than of a network.
struct GpuLimit {
  bool on_gpus = false; ///< no PE's traffic takes a network or the host's processors
  FoundLimit found;
  double collective_bytes = 0; ///< for a collective: the bytes per PE that the limit applies to
};
/// Collective; the same on all PEs of a machine. If kernels issue the operations and links between
/// GPUs are the limit, it is the limit measured by kernels, if there is one, because SMs may not
/// reach the rate of a copy engine; otherwise the model's.
/// @param links nullptr: the model's limit is used for kernels, too
/// @param body the case, which tells what a collective moves; may be nullptr for other points
GpuLimit gpu_limit_of(Runtime& runtime, const Point& point, LinkMeter* links,
                      const Case* body = nullptr);

} // namespace shmemctl::bench
