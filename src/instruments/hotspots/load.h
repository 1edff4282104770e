// How much each port carried, and which ports carry more than their peers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/instruments/hotspots/counters.h"
#include "src/instruments/hotspots/totals.h"

namespace shmemctl {

/// One direction of one port. GBps is set only if the counter is plausible.
struct DirectionLoad {
  std::optional<std::uint64_t> bytes;
  std::optional<double> GBps, peak_GBps;
  std::optional<double> link_share; ///< share of the link's rate
  std::optional<double> packets_per_s;
  std::string counter; ///< the counter that counts the bytes
  std::string reason;  ///< why GBps is not set
};

/// Payload that one PE's transports report for a port.
struct PeBytes {
  int pe = 0;
  std::uint64_t put_bytes = 0, get_bytes = 0;
};

struct PortLoad {
  std::string host, device, netdev;
  int port = 1;
  bool rdma = false, fabric = false, software = false;
  int rail = -1;
  std::optional<double> link_Gbps;
  std::string link_reason;
  double window_s = 0;
  DirectionLoad sent, received;
  std::vector<int> pes; ///< PEs that use the port, by the mapping or their transports
  /// Why the PEs are not known; "" if they are.
  std::string pes_reason = "no mapping was asked for";
  std::vector<PeBytes> moved_by; ///< by PE, if the job's transports report it
  bool hot = false;

  /// "mlx5_0:1"; a network interface has no port number: "eth0".
  std::string name() const { return rdma ? device + ":" + std::to_string(port) : device; }
  const DirectionLoad& in(WireDirection direction) const {
    return direction == WireDirection::sent ? sent : received;
  }
  /// "sent", "received", "both", "idle" or "unknown": the direction of most of the traffic.
  std::string direction() const;
};

/// Computed from the best available counters: the physical port's bytes (`ethtool -S`), the port's
/// data, the device's own bytes (EFA, bnxt_re), or, for NICs without hardware RDMA, the interface's
/// bytes. A counter is rejected and gives no rate if it exceeds the link rate, stands still while
/// packets are counted, counts more bytes than the packets can hold, misses packets of Soft-RoCE,
/// or was read twice within the driver's refresh interval.
PortLoad load_of(const PortTotals& totals, const std::string& host);
std::vector<PortLoad> loads_of(const NodeTotals& totals, const std::string& host);

/// Upper bound of the payload that a port transferred; byte counters count headers as well.
struct MovedBytes {
  std::uint64_t at_most = 0;
  std::string by; ///< the counter that the value was read from
};
/// Read from the best available counter: the port's data, the device's own bytes (EFA, bnxt_re),
/// Soft-RoCE's packets (at most 4 KiB of payload each), and, except for hardware RDMA, which
/// bypasses it, the interface's bytes. Empty if there is none of them.
std::optional<MovedBytes> moved_bytes(const PortTotals& totals, WireDirection direction);

/// Whether a counter of that name may measure the load of a port: bytes or packets.
bool is_load_counter(const std::string& counter);

/// When a load is an outlier: all conditions that apply must hold.
struct OutlierSettings {
  double mads = 3.5;          ///< multiples of 1.4826 * MAD above the median
  double link_share = 0.1;    ///< excess over the median as a share of the link rate
  double ratio = 2;           ///< multiple of the median; used if the link rate is unknown
  double GBps = 0.001;        ///< minimum excess over the median, for any link
  double packets_per_s = 100; ///< minimum excess if only packets are known
  bool ratio_too = false;     ///< `ratio` applies also if the link rate is known
};
/// The settings for loads that are averaged over a job with its pauses: `link_share` is a tenth of
/// the given one, and `ratio` always applies.
OutlierSettings over_a_job(OutlierSettings settings);

/// Ports that are expected to carry equal loads in one direction: the fabric ports of one host
/// (kind "node"), or those at the same index on all hosts (kind "rail").
struct LoadGroup {
  std::string kind, name; ///< the host of a node, the index of a rail
  WireDirection direction = WireDirection::sent;
  bool packets = false;             ///< packets/s, because more ports have them than GB/s
  std::vector<std::size_t> members; ///< indices of the loads
  std::vector<std::size_t> unknown; ///< ports of the group that cannot be compared
  double median = 0, mad = 0;       ///< GB/s or packets/s; mad: 1.4826 * median distance
  double skew = 1;                  ///< the largest load divided by the mean; 1 if there is no load
  std::vector<std::size_t> hot, low;
};

/// Compares each load with the others of its group by median and MAD, so that one port cannot hide
/// itself by shifting the mean. With two or three ports, each is compared with the others only.
std::vector<LoadGroup> judge_balance(const std::vector<PortLoad>& loads,
                                     const OutlierSettings& settings);

/// A port's load in the group's unit.
double load_in(const LoadGroup& group, const PortLoad& load);

} // namespace shmemctl
