// Order and completion of what kernels have done, and barriers of teams.
#pragma once

#include "kernels/device/wait.cuh"
#include "kernels/device_plan.h"

namespace shmemctl::device {

/// Of the calling thread, towards PEs that are mapped: all that it has done before comes before all
/// that it does later.
__device__ inline void fence() {
#ifndef SHMEMCTL_MUTATE_FENCE
  fence_system();
#endif
}
/// All that it has done before is complete at its target. Stores over NVLink and PCIe are performed
/// in the sense of the memory model when a fence of the system's scope has returned.
__device__ inline void quiet() {
#ifndef SHMEMCTL_MUTATE_QUIET
  fence_system();
#endif
}

namespace detail {
__device__ inline bool has_network(const DeviceJob& job) {
  return job.network.path_of_pe != nullptr;
}
} // namespace detail

/// Of the whole scope, towards each PE: what any of its threads has done before comes before what
/// any of them does later. False if the network failed.
template <class Scope>
__device__ inline bool fence(const DeviceJob& job) {
  // A thread's fence covers what it has done and seen: with a sync before, all of the scope's. Each
  // thread has one, because a fence orders only what its own thread does later.
#ifndef SHMEMCTL_MUTATE_FENCE_SYNC
  Scope::sync();
#endif
  fence();
  if (!detail::has_network(job))
    return true;
  return Scope::all(Scope::rank() != 0 || network_fence(job));
}

/// All that the scope's threads have done before is complete at its targets, and gets have brought
/// their bytes. False if the network failed.
template <class Scope>
__device__ inline bool quiet(const DeviceJob& job) {
#ifndef SHMEMCTL_MUTATE_QUIET_SYNC
  Scope::sync();
#endif
  quiet();
  if (!detail::has_network(job))
    return true;
  return Scope::all(Scope::rank() != 0 || network_quiet(job));
}

namespace detail {

/// If not, the report says so.
__device__ inline bool is_member(const DeviceJob& job, int team_number, const TeamView& team) {
  if (team_number == team_world || team.me >= 0)
    return true;
  report_wait(job, -1, static_cast<std::uint64_t>(team_number), static_cast<std::uint64_t>(team.n),
              nullptr, WaitKind::no_member);
  return false;
}

/// Which of two words has that barrier's number, where it may have come by a network.
__device__ inline std::uint64_t turn_of(std::uint64_t number) {
#ifdef SHMEMCTL_MUTATE_SYNC_TURNS
  return 0;
#else
  return plan::word_of_barrier(number);
#endif
}

/// Small teams: each member counts up its own word on every other one, and waits for theirs. One
/// hop, no master. How many to wait for is loaded meanwhile; each thread has counts of its own, so
/// that there is nothing to agree on.
template <class Scope>
__device__ inline bool meet_all(const DeviceJob& job, const TeamView& team) {
  std::uint64_t* const mine = &team.cells->arrived[team.me];
  for (int i = Scope::rank(); i < team.n; i += Scope::size())
    if (std::uint64_t* const there = cell_of(job, mine, team.pe(i)); i != team.me && there)
#ifdef SHMEMCTL_MUTATE_BARRIER_RELEASE
      add_relaxed(there, 1);
#else
      // A release each: it covers what the scope's threads did before the sync behind us.
      add_release(there, 1);
#endif
  bool ok = true, released = false;
  const bool may_be_far = has_network(job);
  if (may_be_far)
    for (int i = Scope::rank(); i < team.n; i += Scope::size())
      if (i != team.me && cell_of(job, mine, team.pe(i)) == nullptr) {
        const std::uint64_t number = team.cells->expected[i] + 1;
        ok = tell(job, &team.cells->arrived_far[turn_of(number)][team.me], number, team.pe(i),
                  released) &&
             ok;
      }
  for (int i = Scope::rank(); i < team.n; i += Scope::size())
    if (i != team.me) {
      const std::uint64_t number = ++team.cells->expected[i];
      const std::uint64_t* word = &team.cells->arrived[i];
      if (may_be_far && cell_of(job, mine, team.pe(i)) == nullptr)
        word = &team.cells->arrived_far[turn_of(number)][i];
      bool in_time = true;
      wait_at_least(job, word, number, team.pe(i), in_time);
      ok = ok && in_time;
    }
  return ok;
}

/// Large teams: in round r each member tells the one 2^r behind it. By one thread, because what a
/// round has brought must be seen before the next one tells of it. Not inlined: long, and seldom.
inline __device__ __noinline__ bool meet_in_rounds(const DeviceJob& job, const TeamView& team) {
  const std::uint64_t epoch = ++team.cells->epoch;
  for (int round = 0; round < plan::rounds_of(team.n); ++round) {
    const int to = plan::round_target(team.me, round, team.n);
    const int from = plan::round_source(team.me, round, team.n);
    std::uint64_t* const word = &team.cells->rounds[turn_of(epoch)][round];
    bool in_time = tell(job, word, epoch, team.pe(to));
    // The one who writes this word may be a barrier ahead, never two: it needs my next arrival,
    // directly or through others.
    if (in_time)
      wait_at_least(job, word, epoch, team.pe(from), in_time);
    if (!in_time)
      return false;
  }
  return true;
}

/// `completes`: a barrier whose puts all went by stores.
template <class Scope, bool completes>
__device__ inline bool meet(const DeviceJob& job, int team_number) {
  // What other threads of the scope did is covered by the release of each signalling thread.
#ifndef SHMEMCTL_MUTATE_BARRIER_SYNC
  Scope::sync();
#endif
  const TeamView team = team_view(job, team_number);
  if (!detail::is_member(job, team_number, team))
    return false;
#ifndef SHMEMCTL_MUTATE_BARRIER_ALONE
  // Nobody is told, so no release completes what this scope put to PEs that are no members.
  if (completes && team.n == 1)
    quiet();
#endif
  bool ok = true;
  if (team.n <= DeviceTeamCells::most_members)
    ok = detail::meet_all<Scope>(job, team);
  else if (Scope::rank() == 0)
    ok = detail::meet_in_rounds(job, team);
  return Scope::all(ok);
}

} // namespace detail

/// All members have come here, and what any of their threads of this scope stored before is visible
/// to every thread behind. Of what went by the network only a barrier says something. Called by one
/// scope of each member at a time. False if a member did not come in time, or if this PE is none.
/// Inlined, so that what it needs of the job is the kernel's parameters: in a function of its own
/// they would have to be loaded, one behind the other (0.6 us, H200).
template <class Scope>
__device__ inline bool sync(const DeviceJob& job, int team_number = team_world) {
  return detail::meet<Scope, false>(job, team_number);
}

/// The same, and all that the scope's threads put is complete, by the network and to PEs that are
/// no members, too.
template <class Scope>
__device__ inline bool barrier(const DeviceJob& job, int team_number = team_world) {
  if (!detail::has_network(job)) // a release completes what was stored
    return detail::meet<Scope, true>(job, team_number);
  const bool ok = quiet<Scope>(job);
  return sync<Scope>(job, team_number) && ok;
}

/// Of all PEs of the job.
template <class Scope>
__device__ inline bool barrier_all(const DeviceJob& job) {
  return barrier<Scope>(job, team_world);
}
template <class Scope>
__device__ inline bool sync_all(const DeviceJob& job) {
  return sync<Scope>(job, team_world);
}

namespace detail {

/// Of a meeting of blocks. The upper half of `arrived` counts those to whom something went wrong;
/// the generation's lowest bit says of the last meeting whether there was one.
inline constexpr std::uint64_t one_arrival = 1, one_failure = std::uint64_t{1} << 32;
inline constexpr std::uint64_t had_failure = 1, one_generation = 2;

/// `ok`, the same in all threads of a block: nothing went wrong in it before. False in all blocks
/// if something did. `times`: how patient the wait is.
inline __device__ __noinline__ bool grid_meet(const DeviceJob& job, int team_number, bool ok,
                                              unsigned times) {
#ifndef SHMEMCTL_MUTATE_GRID_SYNC
  Block::sync();
#endif
  if (Block::rank() == 0) {
    std::uint64_t* const counters = job.cells[team_number].block_counters;
    std::uint64_t* const arrived = counters + 0;
    std::uint64_t* const generation = counters + 1;
    // All of one GPU: orders of its scope take a fifth of the time of the system's, and what they
    // order is passed on by whoever releases to another GPU behind them.
    // Read before this block arrives: the meeting cannot end, hence the generation not move, until
    // it has.
    const std::uint64_t before = load_acquire(generation);
    const std::uint64_t arrival = one_arrival + (ok ? 0 : one_failure);
#ifdef SHMEMCTL_MUTATE_GRID_ARRIVE
    const std::uint64_t earlier = atomic_word_add(arrived, arrival);
#else
    // What this block did (behind its sync) comes before its arrival; the last one to arrive has
    // seen what all others did. Not seen to be needed on GPUs, where stores arrive sooner than the
    // meeting ends; PTX demands it, and so does the test on host threads.
    const std::uint64_t earlier = atomic_word_add_ordered(arrived, arrival);
#endif
    const std::uint64_t arrivals = earlier + arrival;
    if (static_cast<std::uint32_t>(arrivals) == static_cast<std::uint32_t>(Grid::size())) {
      ok = arrivals < one_failure;
      const std::uint64_t behind =
          (before & ~had_failure) + one_generation + (ok ? 0 : had_failure);
      store_relaxed(arrived, 0); // nobody arrives for the next meeting before this one is over
#ifdef SHMEMCTL_MUTATE_GRID_RELEASE
      store_relaxed(generation, behind);
#else
      // As above: both words lie in one line.
      store_release_device(generation, behind);
#endif
    } else {
      std::uint64_t seen = 0;
      ok = watch_word(job, generation, Compare::not_equal, before, seen, times);
      if (!ok)
        report_wait(job, job.pe, static_cast<std::uint64_t>(Grid::size()),
                    static_cast<std::uint32_t>(load_relaxed(arrived)), nullptr, WaitKind::blocks);
      ok = ok && (seen & had_failure) == 0;
    }
  }
  return Block::all(ok);
}

} // namespace detail

/// All blocks of this launch, a grid of up to three dimensions, have come here, and see what the
/// others did before. All of them must be resident: a cooperative launch, or a grid that fits the
/// device. One meeting at a time on a team's cells. False if a block did not come in time.
__device__ inline bool grid_meet(const DeviceJob& job, int team_number = team_world) {
  return detail::grid_meet(job, team_number, true, 1);
}

/// barrier() of the team by a whole grid: what any of its blocks did before is complete and visible
/// to every block behind. False, in all blocks, if a member did not come in time, or this PE is
/// none. As grid_meet() with regard to residency.
__device__ inline bool grid_barrier(const DeviceJob& job, int team_number = team_world) {
  bool ok = grid_meet(job, team_number);
  if (Grid::rank() == 0)
    ok = barrier<Block>(job, team_number) && ok;
  // The others wait here while block 0 waits for the members: it names who does not come.
  return detail::grid_meet(job, team_number, ok, 2);
}

} // namespace shmemctl::device
