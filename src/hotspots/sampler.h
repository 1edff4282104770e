// Reads every counter of a machine's NICs again and again, at little cost.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "src/base/file_descriptor.h"
#include "src/base/sysroot.h"
#include "src/hotspots/counter_text.h"
#include "src/hotspots/measured_port.h"

namespace shmemctl {

/// One reading of a port: `values` are in the order of MeasuredPort::counters.
struct PortSample {
  double at_s = 0; ///< on the clock of the caller
  std::vector<CounterText> values;
  std::vector<bool> skipped; ///< not asked for this time
};
using NodeSample = std::vector<PortSample>; ///< in the order of CounterSampler::ports()

/// What a sample reads.
enum class SampleDepth {
  load, ///< what tells how much a port carries (tells_load()), of files
  all   ///< every file, and `ethtool -S`, for which some drivers ask the firmware
};
/// Whether files stay open between samples: many samples cost less, a few need no limit of open
/// files that one for each counter fits in.
enum class KeepFiles { open, closed };

/// Keeps the counters' files open and reads them in place, or opens them each time. A file that
/// cannot be read loses only itself, and is tried again the next time: a device may go and come
/// back.
///
/// The numbers of `ethtool -S` come from the kernel on a live machine, and from the file
/// `ethtool-S/<interface>` under the root of a recorded one, if there is one.
class CounterSampler {
public:
  CounterSampler(const Sysroot& sysroot, const Node& node, KeepFiles keep = KeepFiles::open);

  const std::vector<MeasuredPort>& ports() const { return ports_; }
  /// Counters of all ports together.
  std::size_t counters() const;
  /// Reads into `sample`, which may be an earlier one: its memory is used again.
  /// @param now_s what the time is, asked before each port
  void read(NodeSample& sample, SampleDepth depth, double (*now_s)());

private:
  std::vector<NamedCounter> ask_interface(const MeasuredPort& port) const;
  void read_file(std::size_t port, std::size_t counter, CounterText& value);
  void read_interface(std::size_t port, PortSample& sample);

  const Sysroot sysroot_;
  const KeepFiles keep_;
  std::vector<MeasuredPort> ports_;
  std::vector<std::vector<FileDescriptor>> files_; ///< by port and counter
  std::vector<std::size_t> first_of_interface_;    ///< by port: where `ethtool -S` begins
  std::vector<std::vector<std::size_t>> of_load_;  ///< by port: files of SampleDepth::load
};

/// Seconds of the monotonic clock.
double monotonic_s();

} // namespace shmemctl
