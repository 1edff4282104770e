// The data that the PEs of a job exchange about their GPUs, and the decisions from it. Pure
// functions.
#pragma once

#include <string>
#include <vector>

#include "src/base/archive.h"
#include "src/runtime/identity.h"

namespace shmemctl {

/// The GPU of one PE.
struct GpuCapabilities {
  bool there = false;     ///< whether the PE has a GPU
  std::string reason;     ///< why it has none
  std::string uuid;       ///< UUID of the device
  bool shareable = false; ///< its memory can be exported as a descriptor (HEAP=vmm)
  /// The NVLink domain to whose other machines it can export memory (HEAP=fabric); "": none.
  std::string fabric;
  /// Why the driver cannot run kernels of this binary: one clause; "" if it can.
  std::string no_kernels;
};
void serialize(Archive& archive, GpuCapabilities& capabilities);

/// Why the job has no GPUs: "" if all PEs have one; else a clause that names the first PE without a
/// GPU, and its reason. If no PE has a GPU, this PE's reason.
std::string why_no_gpus(const std::vector<GpuCapabilities>& capabilities_by_pe,
                        const Placement& placement);

/// Why kernels cannot run on all PEs: "" if they can; else a clause that names the first PE whose
/// driver cannot run them, and the reason.
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

/// The number of PEs of this PE's machine that use the same device.
int pes_on_device(const std::vector<GpuCapabilities>& capabilities_by_pe,
                  const Placement& placement);

/// Divides the candidates into groups in which every PE can map every other PE: in order, each
/// candidate joins the first group where that holds. Returns the group of `pe`.
/// @param why_not by PE, by PE: why the first cannot map the second; "" if it can
std::vector<int> mapping_group(const std::vector<int>& candidates,
                               const std::vector<std::vector<std::string>>& why_not, int pe);

} // namespace shmemctl
