// Checks of a call's arguments, for jobs with DeviceJob::checked. A check that fails fills the
// report, which names the call, the argument and the thread, and returns false; the caller then
// skips the operation. The checks are not inlined: a job without checks pays for one load from the
// constant bank.
#pragma once

#include "kernels/device/collectives_large.cuh"

namespace shmemctl::device {

namespace detail {

/// Fills the report; only the first failure of this PE is kept. Returns false.
inline __device__ __noinline__ bool report_call(const DeviceJob& job, WaitKind kind,
                                                DeviceCall call, DeviceArgument argument, int peer,
                                                std::uint64_t expected, std::uint64_t seen) {
  WaitReport* const report = job.report;
  if (atomic_word_compare_swap(&report->state, WaitReport::none, WaitReport::being_written) !=
      WaitReport::none)
    return false;
  report->peer = peer;
  report->block = Grid::rank();
  report->thread = Block::rank();
  report->expected = expected;
  report->seen = seen;
  report->offset_bytes = UINT64_MAX;
  report->kind = kind;
  report->call = call;
  report->argument = argument;
  store_release(&report->state, WaitReport::written);
  return false;
}

__device__ inline std::uint64_t address_of(const void* at) {
  return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(at));
}

__device__ inline bool check_pe(const DeviceJob& job, DeviceCall call, int pe) {
  return (pe >= 0 && pe < job.n_pes) ||
         report_call(job, WaitKind::no_such_pe, call, DeviceArgument::pe, -1,
                     static_cast<std::uint64_t>(job.n_pes), static_cast<std::uint32_t>(pe));
}
__device__ inline bool check_in_heap(const DeviceJob& job, DeviceCall call, DeviceArgument argument,
                                     const void* at, std::uint64_t size_bytes) {
  // the difference is huge if `at` is below the heap
  const std::uint64_t into = address_of(at) - address_of(job.heap);
  return size_bytes == 0 || (into < job.heap_bytes && size_bytes <= job.heap_bytes - into) ||
         report_call(job, WaitKind::outside_heap, call, argument, -1, size_bytes, address_of(at));
}
__device__ inline bool check_aligned(const DeviceJob& job, DeviceCall call, DeviceArgument argument,
                                     const void* at, std::uint64_t size_bytes) {
  return address_of(at) % size_bytes == 0 ||
         report_call(job, WaitKind::misaligned, call, argument, -1, size_bytes, address_of(at));
}

} // namespace detail

/// Reports that the program asks to exit with `status`. The host ends the job when it sees the
/// report; the calling thread goes on.
inline __device__ __noinline__ void ask_for_exit(const DeviceJob& job, int status) {
  detail::report_call(job, WaitKind::exit_asked, DeviceCall::none, DeviceArgument::none, -1, 0,
                      static_cast<std::uint32_t>(status));
}

/// Checks a put or get of `size_bytes` at the symmetric address `there` of that PE.
inline __device__ __noinline__ bool check_transfer(const DeviceJob& job, DeviceCall call,
                                                   DeviceArgument argument, const void* there,
                                                   std::size_t size_bytes, int pe) {
  return detail::check_pe(job, call, pe) &&
         detail::check_in_heap(job, call, argument, there, size_bytes);
}

/// Checks the symmetric side of an iput or iget: `count` elements, one every `stride` elements.
inline __device__ __noinline__ bool check_strided(const DeviceJob& job, DeviceCall call,
                                                  DeviceArgument argument, const void* there,
                                                  std::size_t element_bytes, std::ptrdiff_t stride,
                                                  std::size_t count, int pe) {
  if (!detail::check_pe(job, call, pe))
    return false;
  if (count == 0)
    return true;
  const auto apart = static_cast<std::size_t>(stride < 0 ? -stride : stride) * element_bytes;
  const std::size_t span = (count - 1) * apart;
  const auto* const first = static_cast<const std::byte*>(there) - (stride < 0 ? span : 0);
  return detail::check_in_heap(job, call, argument, first, span + element_bytes);
}

/// Checks a word of that PE, of 1 to 8 bytes: of an atomic, a signal or a single value.
inline __device__ __noinline__ bool check_word(const DeviceJob& job, DeviceCall call,
                                               DeviceArgument argument, const void* there,
                                               unsigned size_bytes, int pe) {
  return detail::check_pe(job, call, pe) &&
         detail::check_in_heap(job, call, argument, there, size_bytes) &&
         detail::check_aligned(job, call, argument, there, size_bytes);
}

/// Checks `count` words of this PE that a call waits for or tests.
inline __device__ __noinline__ bool check_words(const DeviceJob& job, DeviceCall call,
                                                DeviceArgument argument, const void* words,
                                                unsigned size_bytes, std::size_t count) {
  return detail::check_in_heap(job, call, argument, words, size_bytes * count) &&
         detail::check_aligned(job, call, argument, words, size_bytes);
}

/// Reports that the call does not know the value of an argument that should be one of NVSHMEM's
/// constants. Returns false.
inline __device__ __noinline__ bool report_no_such_value(const DeviceJob& job, DeviceCall call,
                                                         DeviceArgument argument, int value) {
  return detail::report_call(job, WaitKind::no_such_value, call, argument, -1, 0,
                             static_cast<std::uint32_t>(value));
}

/// Checks that the team exists. The call itself reports if this PE is not a member.
inline __device__ __noinline__ bool check_team(const DeviceJob& job, DeviceCall call, int team) {
  return (team >= 0 && team < limits::max_teams && job.teams[team].in_use != 0) ||
         detail::report_call(job, WaitKind::no_such_team, call, DeviceArgument::team, -1,
                             limits::max_teams - 1, static_cast<std::uint32_t>(team));
}

/// Checks the memory of a collective.
inline __device__ __noinline__ bool check_data(const DeviceJob& job, DeviceCall call,
                                               const void* dest, std::size_t dest_bytes,
                                               const void* source, std::size_t source_bytes) {
  return detail::check_in_heap(job, call, DeviceArgument::dest, dest, dest_bytes) &&
         detail::check_in_heap(job, call, DeviceArgument::source, source, source_bytes);
}

/// Checks team and root of a broadcast.
inline __device__ __noinline__ bool check_root(const DeviceJob& job, DeviceCall call, int team,
                                               int root) {
  if (!check_team(job, call, team))
    return false;
  const int n = team_n_pes(job, team);
  return (root >= 0 && root < n) ||
         detail::report_call(job, WaitKind::no_such_pe, call, DeviceArgument::root, -1,
                             static_cast<std::uint64_t>(n), static_cast<std::uint32_t>(root));
}

/// Compares this member's call with that of every other member, by an additional small collective.
/// Does nothing where such a collective cannot be made: not all members are mapped, or too many.
template <class Scope>
__device__ inline bool check_same_call(const DeviceJob& job, int team_number, CollectiveCall call) {
  const TeamView team = team_view(job, team_number);
  if (team.me < 0 || team.n < 2 || team.n > DeviceTeamFlags::max_members ||
      detail::unmapped_member(job, team) >= 0)
    return true; // no call to compare with, no small collective, or the call reports the error
  const std::uint64_t mine = call.word();
  detail::SmallCollective<Scope> comparison(job, team, team.n);
  if (!comparison.begin_and_send(&mine, sizeof mine, 0, team.me))
    return false;
  bool ok = true, same = true;
  for (int i = Scope::rank(); i < team.n; i += Scope::size())
    if (i != team.me) {
      const std::uint64_t theirs = comparison.receive(i, 0, i, ok);
      if (ok && theirs != mine)
        same = detail::report_call(job, WaitKind::calls_differ, call.call, DeviceArgument::none,
                                   team.pe(i), mine, theirs);
    }
  ok = comparison.end(ok, true);
  return Scope::all(same) && ok;
}

} // namespace shmemctl::device
