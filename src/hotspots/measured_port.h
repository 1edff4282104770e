// The links whose counters `hotspots` reads, and which counters each has.
#pragma once

#include <string>
#include <vector>

#include "src/base/sysroot.h"
#include "src/topo/node.h"

namespace shmemctl {

/// Where one counter's number comes from.
struct CounterSource {
  std::string counter; ///< "port_xmit_data_bytes", "out_of_sequence", "netdev_tx_bytes"
  std::string path;    ///< its file; "" for a line of `ethtool -S`
  std::string key;     ///< the name in that text
  unsigned scale = 1;  ///< what one step is in the counter's unit
};

/// One link: a port of an RDMA device with the counters of its interface, or the interface of a NIC
/// that is none.
struct MeasuredPort {
  std::string device;
  int port = 1;
  std::string netdev; ///< "" if it has none
  bool rdma = false;
  bool software = false; ///< Soft-RoCE or siw: the interface carries it, and its rate is made up
  bool fabric = false;   ///< one of the ports that compute traffic is for (fabric_ports())
  int rail = -1;         ///< position among these on its node
  Fact<double> link_Gbps;
  Fact<int> numa;
  double lifespan_s = 0; ///< how old values may be that the driver hands out
  std::vector<CounterSource> counters;
  std::vector<std::string> missing; ///< folders of counters that this port should have and has not
};

/// Every port of every RDMA device, then every other NIC of the node. What `ethtool -S` tells is
/// not among the counters: that needs the interface to be asked (CounterSampler).
std::vector<MeasuredPort> measured_ports(const Sysroot& sysroot, const Node& node);

} // namespace shmemctl
