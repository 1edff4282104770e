// Waits that end, and what the host hears of them.
#pragma once

#include "kernels/device/memory_order.cuh"
#include "kernels/device/scope.cuh"
#include "kernels/device_job.h"

namespace shmemctl::device {

namespace detail {

/// Where a word that was looked at is, as the host can name it.
__device__ inline void name_word(const DeviceJob& job, const void* at, WaitKind kind,
                                 WaitReport& report) {
  const auto distance = [at](const void* from) {
    return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(at) -
                                      reinterpret_cast<std::uintptr_t>(from));
  };
  const std::uint64_t in_heap = distance(job.heap), in_cells = distance(job.cells);
  const bool is_cell = in_cells < sizeof(DeviceTeamCells) * limits::max_teams;
  report.kind = kind == WaitKind::word && is_cell ? WaitKind::cell : kind;
  report.offset_bytes = is_cell ? in_cells : in_heap < job.heap_bytes ? in_heap : UINT64_MAX;
}

} // namespace detail

/// Fills the report, once for all threads of the job on this PE; later ones are dropped. Not
/// inlined: it is in every wait, and seldom called.
/// @param peer the PE that was waited for; -1 if it is not known
/// @param at   the word that was looked at, of the heap or of a team's cells (WaitKind::cell then);
///             nullptr, or a word of other memory: none to name
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
  detail::name_word(job, at, kind, *report);
  // The host reads the rest when it sees this.
  store_release(&report->state, WaitReport::written);
}

__device__ inline void report_unreachable(const DeviceJob& job, int pe) {
  report_wait(job, pe, 0, 0, nullptr, WaitKind::no_path);
}

/// How long a wait goes on: job.timeout_ns from its beginning, or until another wait of this PE has
/// given up. `times` that long where what is waited for is a wait itself, so that the other one,
/// which knows more, reports.
class Patience {
public:
  explicit __device__ Patience(unsigned times = 1) : begin_ns_(global_time_ns()), times_(times) {}
  /// Asked at each look; reads the clock at every 256th, because that takes longer than a look.
  __device__ bool over(const DeviceJob& job) {
    if (++looks_ % 256 != 0)
      return false;
    return global_time_ns() - begin_ns_ > times_ * job.timeout_ns ||
           load_relaxed(&job.report->state) != WaitReport::none;
  }

private:
  std::uint64_t begin_ns_;
  unsigned times_;
  unsigned looks_ = 0;
};

} // namespace shmemctl::device
