// The classes between a node's GPUs and NICs as NVSHMEM sees them.
#pragma once

#include <string>
#include <vector>

#include "src/topo/mapping/mapping.h"

namespace shmemctl {

/// A sysfs path with what the numa_node file in it reads: -1 if unknown or not there.
struct SysfsLocation {
  std::string path; ///< "" if the device has none, or the source gives no PCI address
  int numa = -1;
  std::string doubt; ///< why the path may not be the one that NVSHMEM reads; else ""
};
SysfsLocation gpu_location(const Node& node, int gpu);
/// @param data_direct  of the NIC's data-direct function, if it has one
SysfsLocation nic_location(const Node& node, int nic, bool data_direct);

/// NVSHMEM's classes from one GPU to some NICs, and in words what had to be assumed ("" if
/// nothing).
struct GpuClasses {
  std::vector<PathClass> to_nic;
  std::string doubt;
};

/// The classes to a fixed set of NICs. A recorded matrix decides where there is one, and an unknown
/// cell of it counts as SYS.
class NvshmemDistances {
public:
  /// @param nics         indices in Node::nics
  /// @param data_direct  use the path of a NIC's data-direct function, if it has one
  NvshmemDistances(const Node& node, std::vector<int> nics, bool data_direct);

  GpuClasses of_gpu(int gpu) const;

private:
  GpuClasses recorded(int gpu) const;

  const Node& node_;
  std::vector<int> nics_;
  std::vector<SysfsLocation> locations_; ///< of nics_; empty if a recorded matrix decides
};

} // namespace shmemctl
