// The report to the host of a wait that timed out, or of an operation that cannot be done.
#pragma once

#include "kernels/device/memory_order.cuh"
#include "kernels/device/scope.cuh"
#include "src/abi/device_job.h"

namespace shmemctl::device {

namespace detail {

/// Locates the awaited word in the heap or in the team flags, so that the host can name it.
__device__ inline void name_flag(const DeviceJob& job, const void* at, WaitKind kind,
                                 WaitReport& report) {
  const auto distance = [at](const void* from) {
    return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(at) -
                                      reinterpret_cast<std::uintptr_t>(from));
  };
  const std::uint64_t in_heap = distance(job.heap), in_cells = distance(job.cells);
  const bool is_cell = in_cells < sizeof(DeviceTeamFlags) * limits::max_teams;
  report.kind = kind == WaitKind::word && is_cell ? WaitKind::cell : kind;
  report.offset_bytes = is_cell ? in_cells : in_heap < job.heap_bytes ? in_heap : UINT64_MAX;
}

} // namespace detail

/// Fills the report; only the first failure of this PE is kept. Not inlined: part of every wait,
/// and rarely called.
/// @param peer PE that was waited for; -1 if unknown
/// @param at   the awaited word, in the heap or the team flags (then WaitKind::cell); the report
///             does not locate a nullptr or a word of other memory
inline __device__ __noinline__ void report_wait(const DeviceJob& job, int peer,
                                                std::uint64_t expected, std::uint64_t seen,
                                                const void* at, WaitKind kind = WaitKind::word) {
  WaitReport* const report = job.report;
  if (atomic_word_compare_swap(&report->state, WaitReport::none, WaitReport::being_written) !=
      WaitReport::none)
    return;
  report->peer = peer;
  report->block = Grid::rank();
  report->expected = expected;
  report->seen = seen;
  detail::name_flag(job, at, kind, *report);
  // The host reads the rest after it sees this.
  store_release(&report->state, WaitReport::written);
}

__device__ inline void report_unreachable(const DeviceJob& job, int pe) {
  report_wait(job, pe, 0, 0, nullptr, WaitKind::no_path);
}

} // namespace shmemctl::device
