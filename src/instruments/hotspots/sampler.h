// The ports whose counters are read, and a sampler that reads all of them repeatedly at little
// cost.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "src/base/file_descriptor.h"
#include "src/base/sysroot.h"
#include "src/instruments/hotspots/counters.h"
#include "src/model/topo/node.h"

namespace shmemctl {

/// Where one counter is read.
struct CounterSource {
  std::string counter; ///< "port_xmit_data_bytes", "out_of_sequence", "netdev_tx_bytes"
  std::string path;    ///< file of the counter; "" for a line of `ethtool -S`
  std::string key;     ///< the counter's name in that text
  unsigned scale = 1;  ///< value of one count in the counter's unit
};

/// One link: a port of an RDMA device with the counters of its interface, or the interface of a NIC
/// without RDMA.
struct MeasuredPort {
  std::string device;
  int port = 1;
  std::string netdev; ///< "" if the port has none
  bool rdma = false;
  bool software = false; ///< Soft-RoCE or siw: carried by the network interface; its reported rate
                         ///< is meaningless
  bool fabric = false;   ///< one of the ports for compute traffic (fabric_ports())
  int rail = -1;         ///< index among the fabric ports of its node
  Fact<double> link_Gbps;
  Fact<int> numa;
  double lifespan_s = 0; ///< how old the values that the driver returns may be
  std::vector<CounterSource> counters;
  std::vector<std::string> missing; ///< folders of counters that this port should have but does not
};

/// Every port of every RDMA device, then every other NIC of the node. Excludes the statistics of
/// `ethtool -S`, which require a query of the interface (CounterSampler).
std::vector<MeasuredPort> measured_ports(const Sysroot& sysroot, const Node& node);

/// One reading of a port: `values` are in the order of MeasuredPort::counters.
struct PortSample {
  double at_s = 0; ///< on the caller's clock
  std::vector<CounterText> values;
  std::vector<bool> skipped; ///< not read this time
};
using NodeSample = std::vector<PortSample>; ///< in the order of CounterSampler::ports()

/// What a sample reads.
enum class SampleDepth {
  load, ///< the load counters (is_load_counter()) that are read from files
  all   ///< every file, and `ethtool -S`, for which some drivers query the firmware
};
/// Whether files stay open between samples: that makes many samples cheaper; reopening needs fewer
/// descriptors.
enum class KeepFiles { open, closed };

/// Keeps the counters' files open and rereads them, or opens them each time. A file that cannot be
/// read gives no value and is retried the next time: a device may disappear and come back.
///
/// The numbers of `ethtool -S` come from the kernel on a live machine, and from the file
/// `ethtool-S/<interface>` below the root of a recorded one, if it exists.
class CounterSampler {
public:
  CounterSampler(const Sysroot& sysroot, const Node& node, KeepFiles keep = KeepFiles::open);

  const std::vector<MeasuredPort>& ports() const { return ports_; }
  /// Number of counters of all ports together.
  std::size_t counters() const;
  /// Reads into `sample`, reusing its memory.
  /// @param now_s the current time, called before each port
  void read(NodeSample& sample, SampleDepth depth, double (*now_s)());

private:
  std::vector<NamedCounter> ask_interface(const MeasuredPort& port) const;
  void read_file(std::size_t port, std::size_t counter, CounterText& value);
  void read_interface(std::size_t port, PortSample& sample);

  const Sysroot sysroot_;
  const KeepFiles keep_;
  std::vector<MeasuredPort> ports_;
  std::vector<std::vector<FileDescriptor>> files_; ///< by port and counter
  std::vector<std::size_t> first_of_interface_; ///< by port: where the values of `ethtool -S` begin
  std::vector<std::vector<std::size_t>> of_load_; ///< by port: files of SampleDepth::load
};

/// Seconds of the monotonic clock.
double monotonic_s();

} // namespace shmemctl
