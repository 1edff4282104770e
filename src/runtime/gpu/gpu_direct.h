// GPUDirect RDMA: whether each PE's NICs can access GPU memory, and what all PEs agree to use.
#pragma once

#include <string>
#include <vector>

#include "src/base/archive.h"
#include "transports/device_memory_user.h"
#include "transports/transport.h"

namespace shmemctl {

/// Whether and how NICs can access one PE's GPU memory over one transport of the job.
struct GpuDirectCapability {
  std::string transport;
  std::string method;      ///< "dma-buf", "peer memory"; "" if the NICs cannot access GPU memory
  std::string reason;      ///< why not: one clause
  bool reaches_all = true; ///< whether the transport reaches all `needed` PEs
};
/// The capabilities of a PE: one for each transport of the job, in order of preference.
using GpuDirectCapabilities = std::vector<GpuDirectCapability>;
void serialize(Archive& archive, GpuDirectCapability& capability);

/// A transport, and the PEs that it reaches.
struct GpuDirectCandidate {
  Transport* transport = nullptr;
  std::vector<bool> reaches; ///< by PE
};
/// Tries each candidate on this PE's own memory.
/// @param needed by PE: whether its GPU memory must be accessed through a network
/// @param sample a region of this PE's GPU memory
GpuDirectCapabilities try_gpu_direct(const std::vector<GpuDirectCandidate>& candidates,
                                     const std::vector<bool>& needed,
                                     const std::shared_ptr<const DeviceMemory>& memory,
                                     const RegionView& sample);

struct GpuDirectChoice {
  /// The transport whose NICs access GPU memory, on all PEs; -1: transfers are staged.
  int transport = -1;
  std::string text; ///< "GPUDirect RDMA by dma-buf over ibrc", "staged: ...", with the reason
};
/// Chooses the first transport whose NICs can access GPU memory on all PEs; none if GPUDIRECT is
/// off. Throws Error (unavailable) if GPUDIRECT requires one and there is no such transport.
/// @param wanted the option GPUDIRECT
/// @param by_pe  the capabilities of each PE
GpuDirectChoice choose_gpu_direct(const std::string& wanted,
                                  const std::vector<GpuDirectCapabilities>& by_pe);

} // namespace shmemctl
