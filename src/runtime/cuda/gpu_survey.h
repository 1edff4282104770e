// Results of gpu_probe.h. No CUDA header: builds without CUDA have this too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shmemctl::cuda {

/// One GPU. Members that were not determined, because an earlier step failed, are empty.
struct DeviceSample {
  std::string pci_address, name;
  std::string problem; ///< the error that ended the probe, at any step; "" if there was none
  /// Why its memory cannot be shared with other processes by file descriptors, and why not by CUDA
  /// IPC handles; "" if it can.
  std::string no_descriptors, no_ipc_handles;
  bool cooperative_launch = false; ///< cooperative launch (grid-wide synchronisation)
  bool stream_operations = false;  ///< 64-bit wait and write operations in streams
  bool fabric_handles = false;
  bool unified_addressing = false; ///< registered host memory has one address everywhere
  bool host_atomics = false;       ///< native atomics of its kernels on host memory
  std::vector<double> to_device_us, to_host_us; ///< time of one copy, by round
  std::string wrong; ///< the first byte that differs after the round trip; "" if none does
};

struct DeviceSurvey {
  std::string problem; ///< why no GPU was probed: one clause; "" if they were
  std::uint64_t copy_bytes = 0;
  std::vector<DeviceSample> devices; ///< by CUDA's ordinal
};

/// One ordered pair of GPUs: the source writes into the target's memory.
struct LinkSample {
  int source = 0, target = 0;  ///< CUDA's ordinals
  std::string problem;         ///< why the pair could not be examined; "" if it could
  std::string refused;         ///< why the source cannot access the target's memory; "" if it can
  std::vector<double> copy_us; ///< mean time of a copy, by round; empty if none was made
  std::string wrong;           ///< the first byte that did not arrive; "" if all did
};

struct LinkSurvey {
  std::string problem;           ///< why no pair was measured: one clause; "" if they were
  std::vector<std::string> gpus; ///< PCI addresses by ordinal: "0000:1b:00.0"
  std::uint64_t copy_bytes = 0;
  std::vector<LinkSample> samples;
};

} // namespace shmemctl::cuda
