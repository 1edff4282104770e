// Where a symmetric address is on another PE.
#pragma once

#include "kernels/device/network.cuh"
#include "kernels/device/report.cuh"
#include "kernels/device_job.h"

namespace shmemctl::device {

namespace detail {

__device__ inline std::int64_t heap_delta_of(const DeviceJob& job, int pe) {
  return pe < job.n_near ? job.near_heap_delta_bytes[pe]
                         : __ldg(reinterpret_cast<const long long*>(job.heap_delta_bytes) + pe);
}
__device__ inline std::int64_t cells_delta_of(const DeviceJob& job, int pe) {
  return pe < job.n_near ? job.near_cells_delta_bytes[pe]
                         : __ldg(reinterpret_cast<const long long*>(job.cells_delta_bytes) + pe);
}

} // namespace detail

/// Where `local`, a symmetric address of mine, is on that PE; nullptr if kernels cannot reach it by
/// loads and stores (OpenSHMEM's shmem_ptr).
template <class T>
__device__ inline T* pointer_to(const DeviceJob& job, T* local, int pe) {
  const std::int64_t delta = detail::heap_delta_of(job, pe);
  if (delta == DeviceJob::unreachable)
    return nullptr;
  return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(local) +
                              static_cast<std::uintptr_t>(delta));
}

/// The same as the network's functions have it.
__device__ inline NetworkPlace place_of(const DeviceJob& job, const void* local) {
  return {region::gpu_heap, static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(local) -
                                                       reinterpret_cast<std::uintptr_t>(job.heap))};
}

/// The same for words of DeviceTeamCells.
__device__ inline std::uint64_t* cell_of(const DeviceJob& job, std::uint64_t* mine, int pe) {
  const std::int64_t delta = detail::cells_delta_of(job, pe);
  if (delta == DeviceJob::unreachable)
    return nullptr;
  return reinterpret_cast<std::uint64_t*>(reinterpret_cast<std::uintptr_t>(mine) +
                                          static_cast<std::uintptr_t>(delta));
}

/// Writes a cell of that PE, behind all that this thread has done or seen before (release). Of what
/// it put by the network: behind all that came before a network_quiet().
/// @param released of several in a row, with nothing between them: whether one has gone by the
///                 network; false at first
__device__ inline bool tell(const DeviceJob& job, std::uint64_t* cell, std::uint64_t value, int pe,
                            bool& released) {
  if (std::uint64_t* const there = cell_of(job, cell, pe)) {
#ifdef SHMEMCTL_MUTATE_TELL_RELEASE
    store_relaxed(there, value);
#else
    store_release(there, value);
#endif
    return true;
  }
#ifndef SHMEMCTL_MUTATE_TELL_FAR
  // The request itself is relaxed, and who hears of it may get by the network what this thread
  // stored into its own memory.
  if (!released)
    network_release();
#endif
  released = true;
  const auto offset = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(cell) -
                                                 reinterpret_cast<std::uintptr_t>(job.cells));
  return network_put_value(job, {region::gpu_cells, offset}, value, 8, pe);
}
__device__ inline bool tell(const DeviceJob& job, std::uint64_t* cell, std::uint64_t value,
                            int pe) {
  bool released = false;
  return tell(job, cell, value, pe, released);
}

/// A team as the calls below use it. A team's number is its slot in DeviceJob::teams; 0 is the
/// world.
struct TeamView {
  DeviceTeamCells* cells;
  const std::int32_t* list; ///< nullptr: start + i * stride
  std::int32_t me, n, start, stride;

  /// The PE of the job that is member `i`.
  __device__ int pe(int i) const { return list != nullptr ? list[i] : start + i * stride; }
};
inline constexpr int team_world = 0;

__device__ inline TeamView team_view(const DeviceJob& job, int team) {
  if (team == team_world) // nothing of it has to be loaded
    return {job.cells, nullptr, job.pe, job.n_pes, 0, 1};
  const TeamState& state = job.teams[team];
  return {job.cells + team, state.stride == 0 ? job.members + state.member_offset : nullptr,
          state.my_pe,      state.n_pes,
          state.start,      state.stride};
}
/// This PE's number in the team, -1 if it is no member; how many members; a member's PE in the job.
__device__ inline int team_my_pe(const DeviceJob& job, int team) {
  return job.teams[team].my_pe;
}
__device__ inline int team_n_pes(const DeviceJob& job, int team) {
  return job.teams[team].n_pes;
}
__device__ inline int team_pe_in_world(const DeviceJob& job, int team, int member) {
  return team_view(job, team).pe(member);
}

} // namespace shmemctl::device
