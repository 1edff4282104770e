// The counters of NIC ports: read twice, they tell what a port has moved in between.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/sysroot.h"
#include "src/topo/node.h"

namespace shmemctl {

/// One counter of one port. Names of what counts bytes end in "_bytes".
struct CounterReading {
  std::string device;
  int port = 1;
  std::string counter;                ///< "port_xmit_data_bytes", "sent_pkts", "netdev_tx_bytes"
  std::optional<std::uint64_t> value; ///< nothing: the file does not tell ("N/A (no PMA)")
};

/// Of every port of every RDMA device: ports/N/counters and ports/N/hw_counters, the device's own
/// hw_counters if the port has none, and, where ports/N/counters is missing (Soft-RoCE, EFA), the
/// bytes of its network interface. port_xmit_data and port_rcv_data, which count words of 4 bytes,
/// are given in bytes (InfiniBand Architecture, PortCounters). `lifespan` is no counter. One file
/// that cannot be read loses only itself.
std::vector<CounterReading> read_nic_counters(const Sysroot& sysroot, const Node& node);

/// What a counter did between two readings.
struct CounterChange {
  std::string device;
  int port = 1;
  std::string counter;
  std::optional<std::uint64_t> before, after;
  std::optional<std::int64_t> delta; ///< nothing: one is missing, or it was reset
};

/// Counters that are in either list, in the order of the second. A counter that went back has gone
/// round if it was near 2^32 (what it counts in that unit), and was reset otherwise; one that stays
/// at 2^32 - 1 is stuck there, and tells nothing.
std::vector<CounterChange> nic_counter_changes(const std::vector<CounterReading>& before,
                                               const std::vector<CounterReading>& after);

enum class WireDirection { sent, received };

/// What a port has moved at most, payload and headers.
struct MovedBytes {
  std::uint64_t at_most = 0;
  std::string by; ///< the counter that says so
};
/// By the best counter that the port has: its data counters, EFA's bytes, Soft-RoCE's packets (of
/// at most 4 KiB payload each), the interface's bytes. Nothing if there is none of them.
std::optional<MovedBytes> moved_bytes(const std::vector<CounterChange>& changes,
                                      const std::string& device, int port, WireDirection direction);

} // namespace shmemctl
