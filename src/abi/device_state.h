// The job's state as the host and kernels read it: plain structs, mirrored to each device.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shmemctl {

/// Limits that determine the size of the internal region (32 MiB of addresses).
namespace limits {
inline constexpr std::size_t internal_bytes = std::size_t{32} << 20;
inline constexpr int max_teams = 64;
inline constexpr int max_regions = 6;  ///< as in namespace region
inline constexpr int sync_rounds = 16; ///< dissemination over up to 2^16 members
inline constexpr int max_contexts = 64;
inline constexpr std::size_t team_scratch_bytes = std::size_t{256} << 10;
} // namespace limits

/// Layout of the internal region. The state comes last: only as much of it is committed as the job
/// needs.
namespace internal_layout {
inline constexpr std::size_t team_sync_offset_bytes = 0;                 ///< TeamSync[max_teams]
inline constexpr std::size_t state_offset_bytes = std::size_t{17} << 20; ///< the state's mirror
inline constexpr std::size_t state_bytes = std::size_t{8} << 20;
} // namespace internal_layout

namespace region {
inline constexpr int internal = 0;
inline constexpr int heap = 1;
inline constexpr int static_data = 2;
inline constexpr int gpu_heap = 3;
inline constexpr int gpu_team_flags = 4;
inline constexpr int staging = 5; ///< host memory used by staged transports
} // namespace region

/// A 64-bit flag on its own cache line.
struct alignas(64) SyncCell {
  std::uint64_t value;
  std::uint64_t padding[7];
};

/// A PE's record while a team is created from a unique id (protocol: from_unique_id() in
/// src/runtime/teams.cpp). Each TeamSync holds one record. All records together are one table,
/// which has nothing to do with the teams in those slots.
struct TeamRendezvous {
  SyncCell key;                         ///< of the creation that uses the record; 0: none
  SyncCell list;                        ///< hash of the member list, or this PE's number in it
  SyncCell acks;                        ///< how often other members have read the record
  SyncCell values[limits::sync_rounds]; ///< by round: mask of free slots; 0: not written yet
};

/// Flags that members of a team write into each other, in the internal region: one struct per team
/// slot, at the same offset on every PE. `arrived[round]` counts arrivals of the dissemination
/// barrier (each adds 1). `published[0]` and `[1]` hold what this PE publishes in a collective or a
/// split (a size, free slots); `[2]` signals that a broadcast's data have arrived here.
struct TeamSync {
  SyncCell arrived[limits::sync_rounds];
  SyncCell published[4];
  SyncCell epoch; ///< barriers this PE has entered on this slot, over all its uses; never reset
  TeamRendezvous rendezvous;
  std::byte scratch[limits::team_scratch_bytes];
};

/// A team as kernels see it. Members are start + i * stride, or, if stride is 0, the list at
/// members[member_offset + i] of the state.
struct TeamState {
  std::int32_t in_use;
  std::int32_t my_pe; ///< rank of this PE in the team; -1 if not a member
  std::int32_t n_pes;
  std::int32_t start;
  std::int32_t stride;
  std::int32_t member_offset;
  std::uint64_t epoch; ///< TeamSync::epoch when this use of the slot began; it continues counting
};

/// A free slot: this PE is not a member of any team in it.
inline constexpr TeamState free_team(std::uint64_t epoch) {
  return {0, -1, 0, 0, 1, 0, epoch};
}

/// How a PE is reached. In a region whose delta is `unreachable`, only through a transport.
struct PeerState {
  static constexpr std::int64_t unreachable = INT64_MIN;
  /// Remote address = local address + delta, for each region.
  std::int64_t delta_bytes[limits::max_regions];
  std::int32_t transport; ///< index of the transport for everything but loads and stores; -1: none
  std::int32_t node;
};

struct RegionState {
  std::uint64_t base; ///< address of this PE's own part
  std::uint64_t size_bytes;
};

/// The state's header. Arrays follow it in one block of memory, so that a single copy mirrors
/// everything.
struct State {
  static constexpr std::uint32_t magic_value = 0x53484d43; // "SHMC"
  static constexpr std::uint32_t layout_version = 1;
  std::uint32_t magic, version;
  std::uint64_t size_bytes; ///< size of the block, arrays included
  std::uint64_t generation; ///< counts publications
  std::int32_t pe, n_pes, node, n_nodes, local_pe, local_n_pes;
  RegionState regions[limits::max_regions];
  std::uint64_t team_sync_offset_bytes; ///< offset of TeamSync[max_teams] in the internal region
  TeamState teams[limits::max_teams];
  std::uint64_t peers_offset_bytes;   ///< offset of PeerState[n_pes] from the state's start
  std::uint64_t members_offset_bytes; ///< offset of the int32 member lists
  std::uint64_t members_capacity;     ///< in int32
};
static_assert(sizeof(TeamSync) * limits::max_teams <= internal_layout::state_offset_bytes);
static_assert(internal_layout::state_offset_bytes + internal_layout::state_bytes <=
              limits::internal_bytes);

inline const PeerState* peers_of(const State* state) {
  return reinterpret_cast<const PeerState*>(reinterpret_cast<const std::byte*>(state) +
                                            state->peers_offset_bytes);
}
inline const std::int32_t* members_of(const State* state) {
  return reinterpret_cast<const std::int32_t*>(reinterpret_cast<const std::byte*>(state) +
                                               state->members_offset_bytes);
}

} // namespace shmemctl
