// Checks every pair of PEs by kernels, and summarises the job's GPUs, for bringup.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels/pair_check.h"
#include "reports/report.h"
#include "src/instruments/bringup/pair_check.h"
#include "src/instruments/bringup/reach_map.h"
#include "src/runtime/gpu/gpu.h"
#include "src/runtime/identity.h"

namespace shmemctl {

/// The name under which kernels appear among the transports of a verdict.
inline constexpr const char* kernels_name = "gpu";

/// Which PEs this PE's kernels reach, as a message for merge_reach(). Atomics are left out where
/// kernels reach host memory by loads and stores, because they need PCIe atomics, whose support
/// cannot be queried.
std::string kernel_reach_message(const std::vector<KernelPath>& routes,
                                 const std::string& heap_kind);
/// "load/store", "proxy", "ibgda", "none".
const char* to_string(DevicePath path);

struct KernelFindings {
  std::vector<PairFailure> failures; ///< failures that this PE saw
  std::string problem; ///< why kernels cannot be launched, the same on all PEs; "" if they can
};

/// Collective: checks put, get, fetch-add, compare-and-swap and put with signal of every pair by
/// kernels, all at the same time. The PE that receives data verifies it. Throws Error: what a
/// kernel's wait reported, a lost PE, or a heap that is too small.
/// @param reach what kernels reach, the same on all PEs
/// @param transport the kernels' number among the verdict's transports
/// @param gather collective: returns the texts of all PEs on every PE
KernelFindings
check_pairs_by_kernels(PeGpu& gpu, const TransportReach& reach, int transport,
                       const std::function<std::vector<std::string>(const std::string&)>& gather);

/// @param results of PE `me`, by peer and operation
std::vector<PairFailure> kernel_failures(const std::vector<kernel_check::Result>& results, int me,
                                         int transport);

/// The row that says which GPUs the PEs have; skipped if the job uses none.
inline constexpr const char* gpu_devices_row = "gpu-devices";

/// This PE's GPU, as a message for the others.
std::string gpu_info_message(const GpuInfo& info, const std::vector<KernelPath>& routes);

/// A summary of the GPUs of all PEs.
struct GpuSummary {
  std::vector<CheckRow> rows;             ///< gpu-devices, gpu-heap, gpu-paths: group "gpu"
  std::vector<ConnectionRow> connections; ///< by source and target
  Findings findings;                      ///< gpu-pair-unreachable, gpu-memory-staged (warnings)
};
/// @param messages gpu_info_message() of every PE, by PE
/// @param hosts hosts of the PEs, by PE: machines with the same name may have different GPUs
/// Throws Error (unavailable) for a malformed message.
GpuSummary merge_gpu_infos(const std::vector<std::string>& messages,
                           const std::vector<PeHost>& hosts);
/// The rows as text for people, one line each.
std::string gpu_rows_text(const std::vector<CheckRow>& rows);

} // namespace shmemctl
