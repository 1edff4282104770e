// Fence, quiet and barriers of device code.
#pragma once

#include "kernels/device/wait.cuh"
#include "kernels/device_plan.h"

namespace shmemctl::device {

/// Fence of the calling thread for mapped PEs: its earlier operations come before its later ones.
__device__ inline void fence() {
  fence_system();
}
/// Quiet of the calling thread for mapped PEs: its earlier operations are complete at their
/// targets. Stores over NVLink and PCIe are performed, in the sense of the memory model, when a
/// fence of system scope has returned.
__device__ inline void quiet() {
  fence_system();
}

namespace detail {
__device__ inline bool has_network(const DeviceJob& job) {
  return job.network.path_of_pe != nullptr;
}
} // namespace detail

/// Fence of the whole scope, for each PE: earlier operations of any of its threads come before
/// later ones of any of them. False if the network failed.
template <class Scope>
__device__ inline bool fence(const DeviceJob& job) {
  // A thread's fence covers what it has done and seen: after a sync, the operations of the whole
  // scope. Each thread fences, because a fence orders only its own thread's later operations.
  Scope::sync();
  fence();
  if (!detail::has_network(job))
    return true;
  return Scope::all(Scope::rank() != 0 || network_fence(job));
}

/// Quiet of the whole scope: all earlier operations of its threads are complete, and gets have
/// delivered their data. False if the network failed.
template <class Scope>
__device__ inline bool quiet(const DeviceJob& job) {
  Scope::sync();
  quiet();
  if (!detail::has_network(job))
    return true;
  return Scope::all(Scope::rank() != 0 || network_quiet(job));
}

namespace detail {

/// Whether this PE is a member of the team. If not, the report says so.
__device__ inline bool is_member(const DeviceJob& job, int team_number, const TeamView& team) {
  if (team_number == team_world || team.me >= 0)
    return true;
  report_wait(job, -1, static_cast<std::uint64_t>(team_number), static_cast<std::uint64_t>(team.n),
              nullptr, WaitKind::no_member);
  return false;
}

/// All-to-all barrier for small teams: each member increments its own flag at every other member,
/// and waits for their flags. One hop, no coordinator. The expected counts are loaded meanwhile;
/// each thread handles its own counts, so that the threads need not agree on anything. In a scope
/// of one thread, that thread sets all flags after one fence and loads several counts together, so
/// that it takes little longer than a block.
template <class Scope>
__device__ inline bool sync_all_to_all(const DeviceJob& job, const TeamView& team) {
  std::uint64_t* const own_flag = &team.cells->arrived[team.me];
  FlagRelease<Scope> release;
  for (int i = Scope::rank(); i < team.n; i += Scope::size())
    if (std::uint64_t* const there = peer_flag(job, own_flag, team.pe(i)); i != team.me && there)
      // A release that covers what the scope's threads did before their preceding sync.
      release.mapped.add(there, 1);
  bool ok = true;
  const bool may_use_network = has_network(job);
  if (may_use_network)
    for (int i = Scope::rank(); i < team.n; i += Scope::size())
      if (i != team.me && peer_flag(job, own_flag, team.pe(i)) == nullptr) {
        const std::uint64_t number = team.cells->expected[i] + 1;
        ok = set_flag(job, &team.cells->arrived_network[plan::word_of_barrier(number)][team.me],
                      number, team.pe(i), release) &&
             ok;
      }
  // Number of counts that a thread loads at once. A scope of one thread loads two, because loads
  // after a wait miss the L1 cache; with more than two, programs would need more than the 64
  // registers that a thread has in a block of 1024. In a wider scope each thread has its own count.
  constexpr int at_once = std::is_same<Scope, Thread>::value ? 2 : 1;
  for (int first = Scope::rank(); first < team.n; first += at_once * Scope::size()) {
    std::uint64_t numbers[at_once] = {};
#pragma unroll
    for (int k = 0; k < at_once; ++k)
      if (const int i = first + k * Scope::size(); i < team.n)
        numbers[k] = team.cells->expected[i] + 1;
#pragma unroll
    for (int k = 0; k < at_once; ++k) {
      const int i = first + k * Scope::size();
      if (i >= team.n || i == team.me)
        continue;
      const std::uint64_t number = numbers[k];
      team.cells->expected[i] = number;
      const std::uint64_t* word = &team.cells->arrived[i];
      if (may_use_network && peer_flag(job, own_flag, team.pe(i)) == nullptr)
        word = &team.cells->arrived_network[plan::word_of_barrier(number)][i];
      bool in_time = true;
      wait_at_least(job, word, number, team.pe(i), in_time);
      ok = ok && in_time;
    }
  }
  return ok;
}

/// Dissemination barrier for large teams: in round r each member sets a flag at the member 2^r
/// after it. Made by one thread, because the flag of a round must come after all that the previous
/// rounds have made visible. Not inlined: long and rare.
inline __device__ __noinline__ bool sync_dissemination(const DeviceJob& job, const TeamView& team) {
  const std::uint64_t epoch = ++team.cells->epoch;
  for (int round = 0; round < plan::rounds_of(team.n); ++round) {
    const int to = plan::round_target(team.me, round, team.n);
    const int from = plan::round_source(team.me, round, team.n);
    std::uint64_t* const word = &team.cells->rounds[plan::word_of_barrier(epoch)][round];
    bool in_time = set_flag(job, word, epoch, team.pe(to));
    // The PE that writes this word may be one barrier ahead, but not two: for that it needs this
    // PE's arrival at the next barrier, directly or through other PEs.
    if (in_time)
      wait_at_least(job, word, epoch, team.pe(from), in_time);
    if (!in_time)
      return false;
  }
  return true;
}

/// @tparam completes whether it also completes this scope's earlier puts, which were all stores
template <class Scope, bool completes>
__device__ inline bool sync_members(const DeviceJob& job, int team_number) {
  // What other threads of the scope did is covered by the release of each signalling thread.
  Scope::sync();
  const TeamView team = team_view(job, team_number);
  if (!detail::is_member(job, team_number, team))
    return false;
  // A team of one sets no flag, so no release completes this scope's puts to PEs outside of it.
  if (completes && team.n == 1)
    quiet();
  bool ok = true;
  if (team.n <= DeviceTeamFlags::max_members)
    ok = detail::sync_all_to_all<Scope>(job, team);
  else if (Scope::rank() == 0)
    ok = detail::sync_dissemination(job, team);
  return Scope::all(ok);
}

} // namespace detail

/// Sync of the team (shmem_team_sync): all members have arrived, and earlier stores of all threads
/// of their scopes are visible to every thread after it. Says nothing about network operations: use
/// barrier(). Called by one scope of each member at a time. False after a timeout, if the network
/// failed, or if this PE is not a member. Inlined, so that what it needs of the job comes from
/// kernel parameters: a separate function would load it, by dependent loads (0.6 us, H200).
template <class Scope>
__device__ inline bool sync(const DeviceJob& job, int team_number = team_world) {
  return detail::sync_members<Scope, false>(job, team_number);
}

/// Barrier: a sync that also completes the operations of the scope's threads, over the network and
/// to non-members, too.
template <class Scope>
__device__ inline bool barrier(const DeviceJob& job, int team_number = team_world) {
  if (!detail::has_network(job)) // a release completes earlier stores
    return detail::sync_members<Scope, true>(job, team_number);
  const bool ok = quiet<Scope>(job);
  return sync<Scope>(job, team_number) && ok;
}

/// A barrier of all PEs of the job.
template <class Scope>
__device__ inline bool barrier_all(const DeviceJob& job) {
  return barrier<Scope>(job, team_world);
}
template <class Scope>
__device__ inline bool sync_all(const DeviceJob& job) {
  return sync<Scope>(job, team_world);
}

namespace detail {

/// State of the grid barrier. The upper half of `arrived` counts the blocks that failed; the lowest
/// bit of the generation says whether one failed in the last barrier.
inline constexpr std::uint64_t one_arrival = 1, one_failure = std::uint64_t{1} << 32;
inline constexpr std::uint64_t had_failure = 1, one_generation = 2;

/// @param ok    whether nothing has failed in this block; the same in all its threads. The result
///              is false in all blocks if any block passed false.
/// @param times waits this multiple of the timeout
inline __device__ __noinline__ bool grid_sync(const DeviceJob& job, int team_number, bool ok,
                                              unsigned times) {
  Block::sync();
  if (Block::rank() == 0) {
    std::uint64_t* const counters = job.cells[team_number].grid_barrier_counters;
    std::uint64_t* const arrived = counters + 0;
    std::uint64_t* const generation = counters + 1;
    // Read before this block arrives: until then the barrier cannot complete, so the generation
    // cannot change.
    const std::uint64_t before = load_acquire(generation);
    const std::uint64_t arrival = one_arrival + (ok ? 0 : one_failure);
    // Acquire-release: this block's operations come before its arrival, and the last block to
    // arrive has seen those of all others. Not observed to be needed on GPUs, where stores arrive
    // sooner than the barrier ends; required by PTX, and by the test on host threads. GPU scope
    // suffices, since all blocks are on one GPU, and takes a fifth of the time of system scope;
    // later releases to other GPUs are cumulative.
    const std::uint64_t earlier = atomic_word_add_ordered(arrived, arrival);
    const std::uint64_t arrivals = earlier + arrival;
    if (static_cast<std::uint32_t>(arrivals) == static_cast<std::uint32_t>(Grid::size())) {
      ok = arrivals < one_failure;
      const std::uint64_t after = (before & ~had_failure) + one_generation + (ok ? 0 : had_failure);
      store_relaxed(arrived, 0); // no block arrives for the next barrier before this one is over
      // Ordered with the store above: both words are in one cache line.
      store_release_device(generation, after);
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

/// Barrier of all blocks of this launch, a grid of up to three dimensions; each sees what the
/// others did before. All blocks must be resident: a cooperative launch, or a grid that fits the
/// device. One at a time per team slot. False if a block did not arrive before the timeout.
__device__ inline bool grid_sync(const DeviceJob& job, int team_number = team_world) {
  return detail::grid_sync(job, team_number, true, 1);
}

/// barrier() of the team by a whole grid: operations of all its blocks are complete, and visible to
/// every block after it. False, in all blocks, after a timeout, if the network failed, or if this
/// PE is not a member. Residency as for grid_sync().
__device__ inline bool grid_barrier(const DeviceJob& job, int team_number = team_world) {
  bool ok = grid_sync(job, team_number);
  if (Grid::rank() == 0)
    ok = barrier<Block>(job, team_number) && ok;
  // The other blocks wait here while block 0 waits for the members; twice the timeout, so that the
  // report names the member that is missing.
  return detail::grid_sync(job, team_number, ok, 2);
}

} // namespace shmemctl::device
