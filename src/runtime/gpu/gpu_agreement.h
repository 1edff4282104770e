// What the PEs of a job exchange about their GPUs, and what they decide from it. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "src/base/archive.h"
#include "src/runtime/identity.h"

namespace shmemctl {

/// What one PE has.
struct GpuCapabilities {
  bool there = false;
  std::string reason;     ///< why not
  std::string uuid;       ///< UUID of the device
  bool shareable = false; ///< the memory can be passed on as a descriptor (HEAP=vmm)
  /// The NVLink domain of several machines in which it can hand memory on (HEAP=fabric); "": none.
  std::string fabric;
  /// Why the driver runs no kernel of this binary: one clause; "" if it does.
  std::string no_kernels;
};
void serialize(Archive& archive, GpuCapabilities& capabilities);

/// Why the job has no GPUs: "" if all PEs have one; else a clause that names the first PE that has
/// none, and its reason. If no PE has one, the reason of PE `pe` itself.
std::string why_no_gpus(const std::vector<GpuCapabilities>& capabilities_by_pe,
                        const Placement& placement);

/// Why kernels cannot run on all PEs: "" if they can; else a clause that names the first PE whose
/// driver runs none, and the reason.
std::string why_no_kernels_of_job(const std::vector<GpuCapabilities>& capabilities_by_pe,
                                  const Placement& placement);

/// "vmm", "fabric", "ipc" or "host", the same on all PEs, and why.
struct HeapKind {
  std::string kind, reason;
};
/// @param wanted the option HEAP
HeapKind choose_gpu_heap(const std::string& wanted,
                         const std::vector<GpuCapabilities>& capabilities_by_pe,
                         const Placement& placement);

/// How many PEs of that PE's machine have its device.
int pes_on_device(const std::vector<GpuCapabilities>& capabilities_by_pe,
                  const Placement& placement);

/// Groups in which every PE can map every other one: PEs in order, each in the first group that
/// admits it. Returns the group of `pe`.
/// @param why_not by PE, by PE: why the first cannot map the second; "" if it can
std::vector<int> mapping_group(const std::vector<int>& candidates,
                               const std::vector<std::vector<std::string>>& why_not, int pe);

} // namespace shmemctl
