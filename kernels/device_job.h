// What kernels know of the job: plain structs for host and device, handed to a kernel by value.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/device_network.h"
#include "src/runtime/state.h"

namespace shmemctl {

/// What a kernel waited for, or what failed under it.
enum class WaitKind : std::uint64_t {
  word,      ///< in this PE's memory: `expected`, `seen`; `offset_bytes` in the heap, or UINT64_MAX
  cell,      ///< in a team's cells (barriers, collectives): the same, in the region of cells
  blocks,    ///< of this launch: `seen` of `expected` have come to where all meet
  team_size, ///< a collective of team `expected`, whose `seen` members are too many
  no_member, ///< a collective of team `expected`, of which this PE is no member
  no_reduction,   ///< of numbers of that type in team `expected`: bits of floating-point numbers
  ring_room,      ///< a place in the proxy's ring: request `expected`, `seen` are completed
  ring_result,    ///< a place for an answer of the proxy: all of `expected` are in use
  ring_answer,    ///< of the proxy, to result `expected`
  ring_closed,    ///< the proxy has been stopped
  ring_failed,    ///< the proxy has answered that a request failed; it keeps the error
  queue_turn,     ///< entry `expected` of the queue to that PE could not be published
  queue_room,     ///< in that queue, for entry `expected`; those before `seen` are complete
  queue_result,   ///< a place for an old value: all of `expected` are in use
  queue_answer,   ///< completion of entry `expected`; those before `seen` are complete
  queue_failed,   ///< the queue to that PE: `seen` is its mlx5::Failure
  not_registered, ///< memory of that PE: `offset_bytes` in region `expected`
  no_path,        ///< kernels have no path to that PE
  call_failed     ///< MoE: PE `seen` gave up call `expected`, in which it had waited for that PE
};

/// The first wait of a kernel that took too long. In memory that the host reads while the kernel
/// runs.
struct WaitReport {
  static constexpr std::uint64_t none = 0, being_written = 1, written = 2;
  std::uint64_t state; ///< who makes `being_written` of `none` writes the rest
  std::int32_t peer;   ///< the PE that was waited for; -1 if it is not known
  std::int32_t block;
  std::uint64_t expected, seen;
  std::uint64_t offset_bytes; ///< of the word
  WaitKind kind;              ///< what those mean
};

namespace device {

/// Why a network operation of a kernel failed: what WaitReport says, by its kind.
struct NetworkProblem {
  WaitKind kind;
  std::uint64_t expected, seen, offset_bytes;
};

} // namespace device

/// What members of a team tell each other inside of kernels: one for each slot of the pool of
/// teams, at the same offset on every PE. Written by peers, but for the words marked "own".
///
/// All zeros, on every member, before a kernel of any of them uses a new team: whoever makes a team
/// (or frees one: nobody writes into its cells any more once all members have left their kernels)
/// sees to that, because members count epochs together from 0.
struct DeviceTeamCells {
  static constexpr int most_members = 256;             ///< beyond: by dissemination rounds
  static constexpr std::size_t flag_bytes = 64u << 10; ///< see `messages`
  std::uint64_t arrived[most_members]; ///< barrier: by member, how many it has come to
  /// The same of members who are not mapped: the number of the last one, in the word whose turn it
  /// is (plan::word_of_barrier()).
  std::uint64_t arrived_far[2][most_members];
  std::uint64_t expected[most_members]; ///< own: of those, how many have been waited for
  /// Of a dissemination barrier, for larger teams: its number, by turns as above.
  std::uint64_t rounds[2][limits::sync_rounds];
  std::uint64_t entered[most_members]; ///< collectives: by member, the epoch that it has begun
  std::uint64_t done[most_members];    ///< large collectives: by member, plan::whole_count for each
  std::uint64_t sizes[most_members];   ///< collect: by member, what it brings (plan::size_word())
  std::uint64_t epoch;                 ///< own: barriers by rounds so far
  std::uint64_t collective_epoch;      ///< own: collectives so far
  std::uint64_t heard_epoch;           ///< own: the last collective in which all members were heard
  std::uint64_t large_collectives;     ///< own: how many of the collectives were large
  std::uint64_t collects;              ///< own: calls of collect so far
  std::uint64_t block_counters[8];     ///< own: how the blocks of a launch meet
  std::uint64_t padding[3];
  /// Two halves, used in turn by the collective's epoch: words of 8 bytes that carry 4 bytes of
  /// data and 4 of the epoch, so that small collectives need no barrier.
  alignas(128) std::uint64_t messages[2][flag_bytes / sizeof(std::uint64_t)];
};

/// Device memory only: kernels cannot reach the host's structures of the runtime.
struct DeviceJob {
  static constexpr std::int64_t unreachable = INT64_MIN;

  std::int32_t pe, n_pes;
  std::byte* heap;
  std::uint64_t heap_bytes;
  /// By PE: that PE's heap here is my own address plus this; `unreachable` if kernels cannot load
  /// and store there.
  const std::int64_t* heap_delta_bytes;
  /// The region of cells: DeviceTeamCells[limits::max_teams].
  DeviceTeamCells* cells;
  const std::int64_t* cells_delta_bytes; ///< by PE
  /// The same of the first `n_near` PEs, by value: a kernel's parameters are constants, where a
  /// load of the tables goes to the GPU's second cache again behind each acquire and fence.
  static constexpr int most_near = 8;
  std::int32_t n_near;
  bool all_mapped; ///< kernels can load and store everywhere; false: they may be able to
  std::int64_t near_heap_delta_bytes[most_near], near_cells_delta_bytes[most_near];
  const TeamState* teams;      ///< [limits::max_teams]; 0 is the world
  const std::int32_t* members; ///< what TeamState::member_offset indexes
  WaitReport* report;
  std::uint64_t timeout_ns; ///< of every wait
  DeviceNetwork network;    ///< to PEs that are `unreachable`
};

/// Fills `near_*` and `all_mapped` from the tables as the host has them, by PE.
inline void set_near(DeviceJob& job, const std::int64_t* heap, const std::int64_t* cells) {
  job.n_near = job.n_pes < DeviceJob::most_near ? job.n_pes : DeviceJob::most_near;
  for (int pe = 0; pe < job.n_near; ++pe) {
    job.near_heap_delta_bytes[pe] = heap[pe];
    job.near_cells_delta_bytes[pe] = cells[pe];
  }
  job.all_mapped = true;
  for (int pe = 0; pe < job.n_pes; ++pe)
    if (heap[pe] == DeviceJob::unreachable || cells[pe] == DeviceJob::unreachable)
      job.all_mapped = false;
}

} // namespace shmemctl
