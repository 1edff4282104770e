// The limit of a network path: the rate of the ports that the traffic takes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/sysroot.h"
#include "src/bench/case.h"
#include "src/topo/node.h"

namespace shmemctl::bench {

/// A port that carried a PE's traffic.
struct PortUse {
  std::string host;
  HcaPort nic;
  std::optional<double> rate_GBps; ///< in each direction; nothing where no wire has it
  /// What tells hosts apart: names may be alike.
  std::uint64_t machine_id = 0;
};

/// What the wire of that port moves in each direction, in 10^9 bytes per second. Nothing where the
/// node model does not know it, or where it is made up: software devices (Soft-RoCE, siw) and
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
/// What a PE tells PE 0, and back. Throws Error (unavailable) for a text that is none.
std::string ports_text(const std::vector<PortUse>& ports);
std::vector<PortUse> ports_from(const std::string& text, const std::string& host,
                                std::uint64_t machine_id = 0);

/// Whether all transfers at that point go from one machine to another: a NIC that sends to its own
/// machine does not need its wire. @param machine_of by PE
bool leaves_machines(const Point& point, const std::vector<std::uint64_t>& machine_of);
/// Why there is no limit where that is so: "no limit is known for ...".
std::string why_no_wire(const Point& point, const std::vector<std::uint64_t>& machine_of);

struct LinkLimit {
  double rate_GBps = 0;
  std::string name;       ///< "mlx5_0:1 on n1, 400 Gb/s"; "4 ports of 2 hosts, 1600 Gb/s"
  int links = 0;          ///< NVLinks that it is of
  bool of_memory = false; ///< of GPUs' own memory: what a PE writes to itself counts, too
  bool to_host = false;   ///< of GPUs' links to the host, in whose memory the heap is
};
/// A limit, or why none is known: "no limit is known for ...".
struct FoundLimit {
  std::optional<LinkLimit> limit;
  std::string reason = {};
};
/// Of all these ports together, each counted once. Nothing if there is none, or one is not known.
std::optional<LinkLimit> link_limit(const std::vector<PortUse>& ports);

} // namespace shmemctl::bench
