// The job as kernels see it: plain structs for host and device. Kernels receive the job by value.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/abi/device_network.h"
#include "src/abi/device_state.h"
#include "src/base/host_device.h"

namespace shmemctl {

/// What a kernel waited for, or what failed. `expected`, `seen` and `offset_bytes` are members of
/// WaitReport; "that PE" is its `peer`.
enum class WaitKind : std::uint64_t {
  word,      ///< this PE's word: `expected`, `seen`; `offset_bytes` in heap, UINT64_MAX: elsewhere
  cell,      ///< a team flag (barriers, collectives): as for `word`, in the region of team flags
  blocks,    ///< grid barrier: `seen` of `expected` blocks have arrived
  team_size, ///< collective of team `expected`: `seen` members are too many
  no_member, ///< collective of team `expected`: this PE is not a member
  no_reduction,    ///< reduction in team `expected`: bitwise operation on floating-point type
  fifo_room,       ///< free slot of the proxy FIFO for request `expected`; `seen` are completed
  fifo_result,     ///< free result slot of the proxy: all `expected` are in use
  fifo_reply,      ///< proxy's reply in result slot `expected`
  fifo_closed,     ///< the proxy is closed
  fifo_failed,     ///< the proxy replied that a request failed; the proxy keeps the error
  qp_publish_turn, ///< WQE `expected` of the QP to that PE could not be published
  qp_room,         ///< room in that QP for WQE `expected`; those before `seen` are complete
  qp_result,       ///< free result slot of the QP: all `expected` are in use
  qp_completion,   ///< completion of WQE `expected`; those before `seen` are complete
  qp_failed,       ///< error CQE of the QP to that PE: `seen` is an mlx5::Failure
  not_registered,  ///< memory of that PE, at `offset_bytes` in region `expected`, is not registered
  no_path,         ///< kernels have no path to that PE
  call_failed, ///< MoE: PE `seen` aborted call `expected` because it timed out waiting for that PE
  // Calls that are refused, in jobs whose calls are checked (DeviceJob::checked), and exit_asked.
  // WaitReport says which thread, call and argument.
  no_such_pe,    ///< `seen` is not a PE of the job, which has `expected`; or not one of the team
  outside_heap,  ///< `expected` bytes at address `seen` are not in the symmetric heap
  misaligned,    ///< address `seen` is not a multiple of `expected` bytes
  no_such_team,  ///< `seen` is not the number of a team; the largest is `expected`
  no_such_value, ///< `seen` is none of the call's comparisons or operations
  calls_differ,  ///< this PE's CollectiveCall is `expected`, that of PE `peer` is `seen`
  not_complete,  ///< DeviceCall `expected` of this thread may still use the memory at `seen`
  exit_asked ///< not an error of the library: the kernel asked the job to end with exit code `seen`
};

/// A call of NVSHMEM's interface, in a report of wrong arguments.
enum class DeviceCall : std::uint32_t {
  none,
  put,
  put_nbi,
  get,
  get_nbi,
  p,
  g,
  iput,
  iget,
  put_signal,
  put_signal_nbi,
  signal_op,
  signal_fetch,
  signal_wait_until,
  wait_until,
  test,
  atomic,
  barrier,
  sync,
  broadcast,
  fcollect,
  alltoall,
  alltoalls,
  reduce,
  reducescatter,
  maxloc_reduce,
  count
};
enum class DeviceArgument : std::uint32_t {
  none,
  dest,
  source,
  signal_address,
  word,
  pe,
  team,
  root,
  comparison,
  operation,
  count
};

/// The first wait that timed out, or other problem (see WaitKind), in a kernel of this PE. Located
/// in memory that the host can read while the kernel runs.
struct WaitReport {
  static constexpr std::uint64_t none = 0, being_written = 1, written = 2;
  std::uint64_t state; ///< the thread that swaps `none` for `being_written` writes the rest
  std::int32_t peer;   ///< PE that was waited for or addressed; -1 if unknown or none
  std::int32_t block;
  std::uint64_t expected, seen;
  std::uint64_t offset_bytes; ///< offset of the word, or of the memory that is not registered
  WaitKind kind;              ///< what happened, and so the meaning of the above
  // Only for the kinds from no_such_pe on.
  std::int32_t thread; ///< number in its block
  DeviceCall call;
  DeviceArgument argument;
};

/// What the members of a team compare before a collective, in jobs whose calls are checked: the
/// call, its root and its size in one word.
struct CollectiveCall {
  static constexpr int size_bits = 40, root_bits = 16;
  DeviceCall call;
  std::uint32_t root; ///< 0 where the call has none
  std::uint64_t size_bytes;

  SHMEMCTL_HOST_DEVICE constexpr std::uint64_t word() const {
    return static_cast<std::uint64_t>(call) << (size_bits + root_bits) |
           (static_cast<std::uint64_t>(root) & ((std::uint64_t{1} << root_bits) - 1)) << size_bits |
           (size_bytes & ((std::uint64_t{1} << size_bits) - 1));
  }
  static SHMEMCTL_HOST_DEVICE constexpr CollectiveCall of(std::uint64_t word) {
    return {static_cast<DeviceCall>(word >> (size_bits + root_bits)),
            static_cast<std::uint32_t>(word >> size_bits & ((std::uint64_t{1} << root_bits) - 1)),
            word & ((std::uint64_t{1} << size_bits) - 1)};
  }
};

/// The transfers that threads have started with `_nbi` calls, in jobs whose calls are checked
/// (kernels/device/pending_transfers.cuh). Located in device memory.
struct PendingTransfers {
  static constexpr int of_thread = 4;     ///< number of last transfers kept per thread
  static constexpr int threads_bits = 14; ///< log2 of the number of entries
  struct Transfer {
    std::uint64_t begin, size_bytes; ///< extent of this PE's side
    std::uint64_t call;              ///< a DeviceCall
    std::uint64_t completions;       ///< PendingTransfers::completions when it began
  };
  /// An entry. Threads with the same hash share it, and the one that used it last owns it.
  struct OfThread {
    std::uint64_t users;          ///< 0: no thread uses this entry
    std::uint64_t launch, thread; ///< launch and thread that use the entry
    std::uint64_t turn; ///< number of the next transfer: index in `last`, modulo of_thread
    Transfer last[of_thread];
  };
  std::uint64_t completions; ///< number of calls so far that may have completed transfers
  OfThread threads[1 << threads_bits];
};

namespace device {

/// Why a network operation of a kernel failed: the values for WaitReport, by kind.
struct NetworkProblem {
  WaitKind kind;
  std::uint64_t expected, seen, offset_bytes;
};

} // namespace device

/// Flags by which members of a team synchronize in kernels: one struct per team slot, at the same
/// offset on every PE. Written by peers, except for members marked "own".
///
/// Must be all zero on every member before a kernel of any member uses a new team, because members
/// count epochs from 0. The caller that creates a team (or destroys one, after all members have
/// left their kernels) clears its struct.
struct DeviceTeamFlags {
  static constexpr int max_members = 256;              ///< larger teams: dissemination barrier
  static constexpr std::size_t flag_bytes = 64u << 10; ///< see `messages`
  std::uint64_t arrived[max_members]; ///< barrier: by member, number of barriers entered
  /// The same for members that are not mapped: the number of the last barrier, in one of two words
  /// used alternately (plan::word_of_barrier()).
  std::uint64_t arrived_network[2][max_members];
  std::uint64_t expected[max_members]; ///< own: by member, barriers waited for
  /// Dissemination barrier of larger teams: number of the last barrier per round, in two words used
  /// alternately.
  std::uint64_t rounds[2][limits::sync_rounds];
  std::uint64_t entered[max_members]; ///< collectives: by member, epoch that it has entered
  std::uint64_t
      done[max_members]; ///< by member: grows by plan::whole_count in each large collective
  std::uint64_t sizes[max_members]; ///< collect: by member, its size (plan::size_word())
  std::uint64_t epoch;              ///< own: number of dissemination barriers so far
  std::uint64_t collective_epoch;   ///< own: number of collectives so far
  std::uint64_t
      entered_epoch; ///< own: last collective in which all members were known to have entered
  std::uint64_t large_collectives;        ///< own: how many of the collectives were large
  std::uint64_t collects;                 ///< own: number of calls of collect so far
  std::uint64_t grid_barrier_counters[8]; ///< own: counters of the grid barrier
  std::uint64_t padding[3];
  /// Double buffer, selected by the collective's epoch: 8-byte words that carry 4 bytes of data and
  /// 4 of the epoch (as NCCL's LL protocol), so that small collectives need no barrier.
  alignas(128) std::uint64_t messages[2][flag_bytes / sizeof(std::uint64_t)];
};

/// All pointers are to device memory: kernels cannot access the runtime's host structures.
struct DeviceJob {
  static constexpr std::int64_t unreachable = INT64_MIN;

  std::int32_t pe, n_pes;
  std::byte* heap;
  std::uint64_t heap_bytes;
  /// By PE: the address at which that PE's heap is mapped minus the address of this PE's own heap;
  /// `unreachable` if kernels do not load and store there.
  const std::int64_t* heap_delta_bytes;
  /// The region of team flags: DeviceTeamFlags[limits::max_teams].
  DeviceTeamFlags* cells;
  const std::int64_t* team_flags_delta_bytes; ///< by PE
  /// The same for the first `n_param_pes` PEs, by value: kernel parameters are constants, whereas a
  /// load from the tables misses L1 after every acquire and fence.
  static constexpr int max_param_pes = 8;
  std::int32_t n_param_pes;
  bool all_mapped; ///< true: no delta is `unreachable`, also beyond these arrays; false: unknown
  std::int64_t param_heap_delta_bytes[max_param_pes], param_flags_delta_bytes[max_param_pes];
  const TeamState* teams;      ///< [limits::max_teams]; 0 is SHMEM_TEAM_WORLD
  const std::int32_t* members; ///< array of member lists (TeamState::member_offset)
  WaitReport* report;
  std::uint64_t timeout_ns;  ///< limit of each wait
  DeviceNetwork network;     ///< for PEs that are `unreachable`
  PendingTransfers* pending; ///< nullptr unless `checked`
  std::uint32_t checked;     ///< 1: calls by NVSHMEM's names check their arguments (CHECK)
};

/// Sets the by-value deltas and `all_mapped` from the host's tables, which are indexed by PE.
inline void set_param_deltas(DeviceJob& job, const std::int64_t* heap, const std::int64_t* cells) {
  job.n_param_pes = job.n_pes < DeviceJob::max_param_pes ? job.n_pes : DeviceJob::max_param_pes;
  for (int pe = 0; pe < job.n_param_pes; ++pe) {
    job.param_heap_delta_bytes[pe] = heap[pe];
    job.param_flags_delta_bytes[pe] = cells[pe];
  }
  job.all_mapped = true;
  for (int pe = 0; pe < job.n_pes; ++pe)
    if (heap[pe] == DeviceJob::unreachable || cells[pe] == DeviceJob::unreachable)
      job.all_mapped = false;
}

} // namespace shmemctl
