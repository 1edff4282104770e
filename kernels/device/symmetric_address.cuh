// Translation of symmetric addresses, and flags of peers.
#pragma once

#include <type_traits>

#include "kernels/device/network.cuh"
#include "kernels/device/wait_report.cuh"
#include "src/abi/device_job.h"

namespace shmemctl::device {

namespace detail {

__device__ inline std::int64_t heap_delta_of(const DeviceJob& job, int pe) {
  return pe < job.n_param_pes
             ? job.param_heap_delta_bytes[pe]
             : __ldg(reinterpret_cast<const long long*>(job.heap_delta_bytes) + pe);
}
__device__ inline std::int64_t cells_delta_of(const DeviceJob& job, int pe) {
  return pe < job.n_param_pes
             ? job.param_flags_delta_bytes[pe]
             : __ldg(reinterpret_cast<const long long*>(job.team_flags_delta_bytes) + pe);
}

} // namespace detail

/// The mapped address of `local`, a symmetric address of this PE, on that PE; nullptr if it is not
/// mapped for kernels (OpenSHMEM's shmem_ptr).
template <class T>
__device__ inline T* pointer_to(const DeviceJob& job, T* local, int pe) {
  const std::int64_t delta = detail::heap_delta_of(job, pe);
  if (delta == DeviceJob::unreachable)
    return nullptr;
  return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(local) +
                              static_cast<std::uintptr_t>(delta));
}

/// Region and offset of a heap address, for the network functions.
__device__ inline NetworkAddress network_address_of(const DeviceJob& job, const void* local) {
  return {region::gpu_heap, static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(local) -
                                                       reinterpret_cast<std::uintptr_t>(job.heap))};
}

/// pointer_to() for words of DeviceTeamFlags.
__device__ inline std::uint64_t* peer_flag(const DeviceJob& job, std::uint64_t* own_flag, int pe) {
  const std::int64_t delta = detail::cells_delta_of(job, pe);
  if (delta == DeviceJob::unreachable)
    return nullptr;
  return reinterpret_cast<std::uint64_t*>(reinterpret_cast<std::uintptr_t>(own_flag) +
                                          static_cast<std::uintptr_t>(delta));
}

/// A separate release for each word. For scopes whose threads set one word each: this is one fence
/// per warp, and takes fewer registers than a SharedRelease.
class EachRelease {
public:
  __device__ void add(std::uint64_t* at, std::uint64_t value) { add_release(at, value); }
  __device__ void store(std::uint64_t* at, std::uint64_t value) { store_release(at, value); }
};

/// The fences that several flags share if one thread of the scope sets them one after the other: a
/// fence for mapped PEs, in a scope of one thread only, and a fence for PEs over the network.
template <class Scope>
struct FlagRelease {
  typename std::conditional<std::is_same<Scope, Thread>::value, SharedRelease, EachRelease>::type
      mapped;
  bool over_network = false; ///< whether the network release has been made
};

/// Sets a flag of that PE with release semantics: the flag comes after all that this thread has
/// done or seen before the first flag that it sets with `release`. Of its network puts, this covers
/// only those that a network_quiet() has completed. False if the network failed.
template <class Scope>
__device__ inline bool set_flag(const DeviceJob& job, std::uint64_t* cell, std::uint64_t value,
                                int pe, FlagRelease<Scope>& release) {
  if (std::uint64_t* const there = peer_flag(job, cell, pe)) {
    release.mapped.store(there, value);
    return true;
  }
  // The request itself is relaxed, and the PE that sees the flag may get, over the network, what
  // this thread has stored into its own memory.
  if (!release.over_network)
    network_release();
  release.over_network = true;
  const auto offset = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(cell) -
                                                 reinterpret_cast<std::uintptr_t>(job.cells));
  return network_put_value(job, {region::gpu_team_flags, offset}, value, 8, pe);
}
__device__ inline bool set_flag(const DeviceJob& job, std::uint64_t* cell, std::uint64_t value,
                                int pe) {
  FlagRelease<Warp> release; // a single flag
  return set_flag(job, cell, value, pe, release);
}

/// A team as device code uses it. A team's number is its slot in DeviceJob::teams; 0 is the world.
struct TeamView {
  DeviceTeamFlags* cells;
  const std::int32_t* list; ///< nullptr: start + i * stride
  std::int32_t me, n, start, stride;

  /// The PE of the job that is member `i`.
  __device__ int pe(int i) const { return list != nullptr ? list[i] : start + i * stride; }
};
inline constexpr int team_world = 0;

__device__ inline TeamView team_view(const DeviceJob& job, int team) {
  if (team == team_world) // no loads needed
    return {job.cells, nullptr, job.pe, job.n_pes, 0, 1};
  const TeamState& state = job.teams[team];
  return {job.cells + team, state.stride == 0 ? job.members + state.member_offset : nullptr,
          state.my_pe,      state.n_pes,
          state.start,      state.stride};
}
/// This PE's index in the team; -1 if it is not a member.
__device__ inline int team_my_pe(const DeviceJob& job, int team) {
  return job.teams[team].my_pe;
}
/// The number of the team's members.
__device__ inline int team_n_pes(const DeviceJob& job, int team) {
  return job.teams[team].n_pes;
}
/// The index in team `to` of the PE that is member `member` of team `from`
/// (shmem_team_translate_pe); -1 if it is not a member of `to`, or `member` is not one of `from`.
__device__ inline int team_translate(const DeviceJob& job, int from, int member, int to) {
  const TeamView source = team_view(job, from);
  if (member < 0 || member >= source.n)
    return -1;
  const int pe = source.pe(member);
  const TeamView target = team_view(job, to);
  if (target.list == nullptr) {
    const int away = pe - target.start;
    const int index = away / target.stride;
    return index * target.stride == away && index >= 0 && index < target.n ? index : -1;
  }
#pragma unroll 1
  for (int i = 0; i < target.n; ++i)
    if (target.list[i] == pe)
      return i;
  return -1;
}

} // namespace shmemctl::device
