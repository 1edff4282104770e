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

/// What one counter did between two readings: how far it went, or in words why that cannot be told.
struct CounterStep {
  std::optional<std::int64_t> delta;
  std::string problem;     ///< "went back from 9 to 3: it was reset"; "" if there is a delta
  bool went_round = false; ///< passed 2^32, once or more often
};
/// A counter that went back has gone round if it was near 2^32 (what it counts in that unit), and
/// was reset otherwise. One that stays at the largest value of its width (IBA's PortCounters are of
/// 4 to 32 bits and stay there) is stuck, and tells nothing.
CounterStep counter_step(const std::string& counter, std::uint64_t before, std::uint64_t after);

/// What one step of a counter is in its name's unit: 4 bytes for port_xmit_data_bytes.
std::uint64_t counter_step_bytes(const std::string& counter);

/// Counters that are in either list, in the order of the second, with their counter_step().
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
