// The check of every pair of PEs by kernels, and what the job's GPUs are, for bringup.
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

/// The name of kernels among the transports of a verdict.
inline constexpr const char* kernels_name = "gpu";

/// Which PEs this PE's kernels reach, as a message for merge_reach(). Atomics of GPUs on host
/// memory need atomics on PCIe, which nothing tells of: they are left out there.
std::string kernel_reach_message(const std::vector<KernelPath>& routes,
                                 const std::string& heap_kind);
/// "load/store", "proxy", "ibgda", "none".
const char* to_string(DevicePath path);

struct KernelFindings {
  std::vector<PairFailure> failures; ///< failures that this PE saw
  std::string problem; ///< why kernels cannot be launched, the same on all PEs; "" if they can
};

/// Collective: put, get, fetch-add, compare-and-swap and put with signal of every pair by kernels,
/// all at the same time; whoever received data verifies it. Throws Error: what a kernel's wait has
/// reported, a lost PE, the heap is too small.
/// @param reach     of kernels, the same on all PEs
/// @param transport its number in the verdict
/// @param gather    collective: one text of each PE at every PE
KernelFindings
check_pairs_by_kernels(PeGpu& gpu, const TransportReach& reach, int transport,
                       const std::function<std::vector<std::string>(const std::string&)>& gather);

/// @param results of PE `me`, by peer and operation
std::vector<PairFailure> kernel_failures(const std::vector<kernel_check::Result>& results, int me,
                                         int transport);

/// The row that says which GPUs PEs have, or that they have none (skipped).
inline constexpr const char* gpu_devices_row = "gpu-devices";

/// What a PE says of its GPU, as message for the others.
std::string gpu_info_message(const GpuInfo& info, const std::vector<KernelPath>& routes);

/// What all PEs said of their GPUs.
struct GpuSummary {
  std::vector<CheckRow> rows;             ///< gpu-devices, gpu-heap, gpu-paths: group "gpu"
  std::vector<ConnectionRow> connections; ///< by source and target
  Findings findings;                      ///< gpu-pair-unreachable, gpu-memory-staged (warnings)
};
/// @param messages gpu_info_message() of every PE, by PE
/// @param hosts where they run, by PE: two machines with the same name have different GPUs
/// Throws Error (unavailable) for a text that is none.
GpuSummary merge_gpu_infos(const std::vector<std::string>& messages,
                           const std::vector<PeHost>& hosts);
/// The rows for people, a line each.
std::string gpu_rows_text(const std::vector<CheckRow>& rows);

} // namespace shmemctl
