// The limit of a network path: the rate of the ports that the traffic takes.
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
  std::optional<double> rate_GBps; ///< in each direction; nothing where no wire has a rate
  /// What tells hosts apart: names may be alike.
  std::uint64_t machine_id = 0;
};

/// What the wire of that port moves in each direction, in 10^9 bytes per second. Nothing where the
/// node model does not know it, or where it is invented: software devices (Soft-RoCE, siw) and
/// virtual interfaces.
/// @param sysroot if given: where bonds and VLANs are looked up, which no node model has
std::optional<double> wire_rate_GBps(const Node& node, const HcaPort& nic,
                                     const Sysroot* sysroot = nullptr);

/// The ports that moved bytes between two readings of the transports' traffic; an operation counts
/// as a word at least, since atomics and puts of a word may have no bytes. One with less than
/// 1 % of the busiest one's has seen barriers only, and is left out.
std::vector<PortUse> ports_used(const Node& node, const std::vector<NicTraffic>& before,
                                const std::vector<NicTraffic>& after,
                                const Sysroot* sysroot = nullptr);
/// Serialized without the host, which the receiver knows.
void serialize(Archive& archive, PortUse& port);
/// The ports, with the host that they are on.
std::vector<PortUse> ports_of_host(std::vector<PortUse> ports, const std::string& host,
                                   std::uint64_t machine_id = 0);

/// Whether all transfers at that point go from one machine to another: a NIC that sends to its own
/// machine does not need its wire. @param machine_of by PE
bool leaves_machines(const Point& point, const std::vector<std::uint64_t>& machine_of);
/// Why no limit by wire is known: "no limit is known for ...".
std::string why_no_wire(const Point& point, const std::vector<std::uint64_t>& machine_of);

struct LinkLimit {
  double rate_GBps = 0;
  std::string name; ///< "mlx5_0:1 on n1, 400 Gb/s"; "4 ports of 2 hosts, 1600 Gb/s"
  int links = 0;    ///< number of NVLinks that it is the limit of
  /// The limit is the GPUs' own memory: what a PE writes to itself counts, too.
  bool of_memory = false;
  bool to_host = false; ///< the limit is the GPUs' links to the host, in whose memory the heap is
};
void serialize(Archive& archive, LinkLimit& limit);
/// A limit, or why none is known: "no limit is known for ...".
struct FoundLimit {
  std::optional<LinkLimit> limit;
  std::string reason = {};
};
/// The limit of all these ports together, each counted once. Nothing if there is none, or the rate
/// of one is unknown.
std::optional<LinkLimit> link_limit(const std::vector<PortUse>& ports);

/// What moves from one GPU to another in one direction, in 10^9 bytes per second: "NVLink, 18 links
/// of 26.562 GB/s"; "PCIe, 16 lanes of 32 GT/s". Nothing where the model does not know it, or for
/// one GPU and itself.
/// @param from,to PCI addresses
std::optional<LinkLimit> gpu_link(const Node& node, const std::string& from, const std::string& to);

/// What a GPU moves to, or from, all of `others` together. Nothing where the model does not know
/// one of them, where there is none, or where several are linked one to one.
std::optional<LinkLimit> gpu_links_limit(const Node& node, const std::string& gpu,
                                         const std::vector<std::string>& others);

/// A PE's GPU.
struct GpuOfPe {
  std::uint64_t machine_id = 0;
  std::string pci_address; ///< "": no GPU
  double memory_GBps = 0;  ///< rate of its own memory, reads and writes together; 0: not known
  /// What this PE sends at the point goes from memory of a GPU straight to memory of a GPU.
  bool between_gpus = true;
  /// ... from and to a heap in memory of the host, by the GPU's loads and stores.
  bool in_host_memory = false;
  std::string otherwise = {}; ///< if neither holds, a reason: "no limit is known for ..."
};
/// Serialized without the machine, which the receiver knows.
void serialize(Archive& archive, GpuOfPe& gpu);
/// The limit of all GPUs of a point that send together, each over its own links once, however many
/// PEs it has; or of all that receive, if that is less; gets take as much the other way. Where all
/// traffic stays on its PEs' own GPU, of these GPUs' memory, of which each byte takes a read and a
/// write. Where the heap is memory of the host, of the links to it of all GPUs that send. The
/// reason for collectives, several machines, traffic that takes a network or the host's processors,
/// traffic of which some leaves its GPU and some does not, GPUs that are linked one to one where
/// one sends to several, and what the model does not know.
/// @param node of the machine @param by_pe the GPU of each PE
FoundLimit gpu_link_limit(const Node& node, const Point& point, const std::vector<GpuOfPe>& by_pe);

/// The limit of a collective of all PEs: that of the memory of the one GPU that all share; or of
/// the links of all GPUs together, or the root's if only that has to send; or of their links to the
/// host. A share counts limited_bytes().
FoundLimit gpu_collective_limit(const Node& node, const LeastTraffic& traffic,
                                const std::vector<GpuOfPe>& by_pe);
/// What of it that limit is about: what crosses links; half of what memory reads and writes; over
/// links to the host, what is read or what is written, whichever is more.
double limited_bytes(const LeastTraffic& traffic, const LinkLimit& limit);
/// Between a PE's GPU and the memory of its host.
struct HostLink {
  std::uint64_t machine_id = 0;
  std::string pci_address;       ///< PCI address of the GPU
  std::optional<LinkLimit> link; ///< in each direction; nothing where the model does not know it
};
/// Serialized without the machine, which the receiver knows.
void serialize(Archive& archive, HostLink& link);
/// PCIe at full speed after its line code, or NVLink-C2C. @param pci_address of the GPU
std::optional<LinkLimit> host_link(const Node& node, const std::string& pci_address);
/// The limit of copies between each PE's GPU and its host's memory (Traffic::local), all PEs
/// together: each GPU's link counts once, however many PEs it has, and in both directions if they
/// copy both ways.
FoundLimit host_links_limit(const std::vector<HostLink>& by_pe, Direction direction);

/// By PE: the number of its GPU, from 0 in the order of the PEs.
std::vector<int> gpu_numbers(const std::vector<GpuOfPe>& by_pe);

/// Rates by PE, in 10^9 bytes per second, while all PEs that send do so at once; 0 for PEs that do
/// not send.
struct MeasuredLink {
  std::vector<double> stores_GBps; ///< rate of the stores that leave this PE's GPU
  std::vector<double> loads_GBps;  ///< rate of the loads that come to this PE's GPU
  int blocks = 0, threads = 0;     ///< the size of each PE's kernel
  std::size_t message_bytes = 0;   ///< to each peer
  std::string traffic;             ///< pattern of the traffic: "all-to-all", "pair"

  /// The larger one: what the link is able to.
  double limit_GBps(std::size_t pe) const;
  /// "stores, 132 blocks of 1024 threads, messages of 16M, all-to-all".
  std::string conditions(std::size_t pe) const;
};

/// What was measured, or why nothing was.
struct LinkMeasurement {
  std::optional<MeasuredLink> link;
  std::string reason;
};

/// The limit of a point in which all senders of the measurement send: the sum of theirs; else the
/// model's, whose name says so.
std::optional<LinkLimit> limit_of(const LinkMeasurement& measured,
                                  const std::optional<LinkLimit>& model);

/// Measures each kind of traffic once.
class LinkMeter {
public:
  explicit LinkMeter(Runtime& runtime) : runtime_(runtime) {}
  /// Collective; the same on all PEs. The first time it takes some ms and, for as long, 96 MiB of
  /// the GPU heap. Nothing where PEs share a GPU (they take turns on it), where one is not mapped,
  /// where the heap has no room, or where what was moved came wrong. Throws Error as kernels' waits
  /// do.
  /// @param like whose traffic, direction and PEs count
  const LinkMeasurement& of(const Point& like);

private:
  using Pattern = std::tuple<Traffic, Direction, int, int>;
  Runtime& runtime_;
  std::map<Pattern, LinkMeasurement> known_;
};

/// What carries all that this PE sends at a point on GPUs.
struct GpuPath {
  bool between_gpus = false;   ///< loads, stores and copy engines, from GPU memory to GPU memory
  bool in_host_memory = false; ///< loads and stores of GPUs, in a heap of host memory
  std::string otherwise;       ///< "no limit is known for ..." if neither
};
GpuPath path_of(Runtime& runtime, const Point& point);

/// What the limit of a point is, and whether there can be one of a network.
struct GpuLimit {
  bool on_gpus = false; ///< no PE's traffic takes a network or the host's processors
  FoundLimit found;
  double collective_bytes = 0; ///< for a collective: the bytes per PE that the limit is about
};
/// Collective, the same on all PEs of a machine. For operations that kernels issue, the measured
/// limit of kernels, because SMs may not reach the rate of a copy engine; otherwise the model's.
/// @param links may be nullptr: the model's
/// @param body of a collective, which says what it moves; else it may be nullptr
GpuLimit gpu_limit_of(Runtime& runtime, const Point& point, LinkMeter* links,
                      const Case* body = nullptr);

} // namespace shmemctl::bench
