// A synthetic machine's counters as files, and the node that goes with them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "src/base/sysroot.h"
#include "src/instruments/hotspots/hotspots.h"
#include "tests/support/temporary_folder.h"

namespace shmemctl {

/// Nodes with ports mlx5_0, mlx5_1, ... of InfiniBand at 400 Gb/s.
inline Node hca_node(int ports, const std::string& driver = "mlx5_core") {
  Node node;
  for (int i = 0; i < ports; ++i) {
    Nic nic;
    nic.name = "mlx5_" + std::to_string(i);
    nic.rdma = known(true, "test");
    nic.driver = known(driver, "test");
    NicPort port;
    port.state = known(PortState::active, "test");
    port.link_layer = known(LinkLayer::infiniband, "test");
    port.rate_Gbps = known(400.0, "test");
    port.netdev = unknown<std::string>("test");
    nic.ports = {port};
    node.nics.push_back(nic);
  }
  return node;
}

/// A tree of counter files below a folder that is removed after the test.
class CounterTree {
public:
  explicit CounterTree(const std::string& uptime_s = "") {
    folder_.write("sys/class/infiniband/.keep", "");
    if (!uptime_s.empty())
      folder_.write("proc/uptime", uptime_s + " 1.0\n");
  }
  Sysroot sysroot() const { return Sysroot(folder_.path()); }
  const TemporaryFolder& folder() const { return folder_; }
  /// "mlx5_0", "counters/port_xmit_data" -> ports/1/counters/port_xmit_data
  void set(const std::string& device, const std::string& file, const std::string& text) const {
    folder_.write("sys/class/infiniband/" + device + "/ports/1/" + file, text + "\n");
  }
  /// 32-bit words and packets, in both directions.
  void traffic(const std::string& device, std::uint64_t sent_bytes, std::uint64_t received_bytes,
               std::uint64_t packet_bytes = 4096) const {
    set(device, "counters/port_xmit_data", std::to_string(sent_bytes / 4));
    set(device, "counters/port_rcv_data", std::to_string(received_bytes / 4));
    set(device, "counters/port_xmit_packets", std::to_string(sent_bytes / packet_bytes));
    set(device, "counters/port_rcv_packets", std::to_string(received_bytes / packet_bytes));
  }

private:
  TemporaryFolder folder_;
};

inline const CounterTotal& total_of(const NodeTotals& totals, const std::string& counter,
                                    std::size_t port = 0) {
  static const CounterTotal none;
  const CounterTotal* found = totals.ports().at(port).find(counter);
  return found ? *found : none;
}

} // namespace shmemctl
