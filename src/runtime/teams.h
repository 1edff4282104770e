// Teams: sets of PEs with their own numbering, in a fixed pool of slots.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "src/runtime/member_lists.h"
#include "src/runtime/rma.h"
#include "src/runtime/slot_claims.h"
#include "src/runtime/state_block.h"

namespace shmemctl {

/// Slot of a team in the pool; the same on all of its members. invalid_team for non-members.
using TeamId = int;
inline constexpr TeamId invalid_team = -1;
inline constexpr TeamId team_world = 0;
inline constexpr TeamId team_shared = 1;  ///< the PEs of this PE's node that share memory
inline constexpr TeamId team_node = 2;    ///< the PEs of this PE's node
inline constexpr TeamId team_leaders = 3; ///< local PE 0 of every node; invalid on other PEs
inline constexpr TeamId first_user_team = 4;

/// Members in team order.
struct TeamMembers {
  int start = 0, stride = 1; ///< stride 0: `list`
  int n_pes = 0;
  std::vector<int> list;
  int world_pe(int member) const {
    return stride != 0 ? start + member * stride : list[static_cast<std::size_t>(member)];
  }
  /// Number of a world PE in the team; -1 if it is not a member.
  int member(int world_pe) const;
};
/// As start and stride where the list is an arithmetic progression. Not empty.
TeamMembers team_members(std::vector<int> list);

/// The pool. Splits are collective over the parent team; a slot is agreed on by its members (the
/// lowest one that is free on all of them), so that teams may nest, overlap and be destroyed in
/// any order. Threads of a PE may use different teams at once (also create and destroy them).
class Teams {
public:
  /// Creating or destroying a team is a change of `state` (its TeamState, and members in the list
  /// area); `sync` is this PE's TeamSync[limits::max_teams] in the internal region. Slots 0-3 are
  /// created here (no communication): `node_pes` are this node's PEs, `shared_pes` those that share
  /// memory, `leader_pes` the leaders. Throws Error (unavailable) if the job has more than 2^16 PEs
  /// or the lists do not fit.
  Teams(Rma& rma, StateBlock& state, TeamSync* sync, const std::vector<int>& node_pes,
        const std::vector<int>& shared_pes, const std::vector<int>& leader_pes);

  bool valid(TeamId team) const;
  int my_pe(TeamId team) const;
  int n_pes(TeamId team) const;
  /// World PE of a member; -1 if there is none.
  int world_pe(TeamId team, int member) const;
  /// Number in `to` of the PE that is `member` of `from`; -1 if it is not a member of `to`.
  int translate(TeamId from, int member, TeamId to) const;

  /// Members start, start + stride, ... of the parent, in this order: with a negative stride they
  /// are numbered downwards; 0 only with n_pes = 1; no wrapping around. Collective over the parent
  /// (OpenSHMEM 1.5, shmem_team_split_strided). invalid_team on PEs that are not members; nothing
  /// if the arguments are wrong or no slot is free (same on all PEs). Throws Error (usage) if the
  /// PEs' arguments differ.
  std::optional<TeamId> split_strided(TeamId parent, int start, int stride, int n_pes);
  /// Rows and columns of the parent laid out row by row, `x_range` PEs to a row (at most the
  /// parent's size); the last row may be shorter.
  struct Grid {
    TeamId x = invalid_team, y = invalid_team;
  };
  std::optional<Grid> split_2d(TeamId parent, int x_range);
  /// An arbitrary list: every member calls with the same unique id (made by one of them and passed
  /// on by the program), its number and the same list of world PEs; no parent is needed, and PEs
  /// that are not members have no part in it. Members that create several teams must do so in the
  /// same order, as with all collectives. Nothing if the list is empty, names a PE twice or one
  /// that does not exist, does not hold this PE at `my_number`, or if no slot is free on all
  /// members. Throws Error (usage) if the members' lists differ, (deadline) if one does not arrive.
  std::optional<TeamId> from_unique_id(std::uint64_t id, int my_number,
                                       const std::vector<int>& members);
  /// The same where members know their own numbers, of 0 to n_members - 1, but not each other: each
  /// looks among all PEs for the others that have begun with this id. Nothing if there are no such
  /// numbers. Throws Error (usage) too if two members have one number, or count differently.
  std::optional<TeamId> from_numbers(std::uint64_t id, int my_number, int n_members);

  /// Collective over the team. Predefined teams stay.
  void destroy(TeamId team);

  /// Dissemination barrier over the team: ceil(log2 n) rounds. What a member stored before it is
  /// visible to all after it. Does not complete earlier puts. Throws Error (usage) on PEs that are
  /// not members.
  void sync(TeamId team);
  /// True if every member reaches every other one's memory by loads and stores; the same on all.
  /// Collective over the team (communicates only the first time).
  bool all_load_store(TeamId team);
  /// The sync area of a team's slot on this PE.
  TeamSync& area(TeamId team) const { return sync_[team]; }
  Rma& rma() const { return rma_; }

private:
  /// Members of a new team by their numbers in the parent.
  struct Slice {
    int start, stride, n_pes;
    int member(int parent_member) const;
  };
  using Slots = std::vector<TeamId>; ///< by slice

  const TeamMembers& members_of_team(TeamId team) const;
  /// Collective over the parent: makes a team of each slice, or none at all. By slice: the team of
  /// those that this PE is in, else invalid_team.
  std::optional<Slots> split(TeamId parent, const std::vector<Slice>& slices,
                             std::uint64_t arguments);
  std::optional<std::vector<std::uint64_t>> gather_free(TeamId parent, std::uint64_t own_mask,
                                                        std::uint64_t arguments);
  static std::optional<Slots> choose_slots(std::vector<std::uint64_t> free_by_member,
                                           const std::vector<Slice>& slices);
  TeamMembers slice_of(TeamId parent, const Slice& slice) const;

  std::uint64_t agree_by_id(std::uint64_t id, std::uint64_t key, int record, std::uint64_t own_mask,
                            int my_number, const std::vector<int>& members);
  const TeamRendezvous* find_record(std::uint64_t id, std::uint64_t key, int pe) const;
  int take_record(std::uint64_t id);
  void give_back_record(int record);

  /// Mask of free slots that a team could have if all its lists (this many members in total) are
  /// stored here, with the flags that an agreement needs.
  std::uint64_t mask_to_publish(SlotClaims::Claim& claim, std::size_t list_members);
  /// As a part of a change of the state.
  void create(State& state, TeamId slot, TeamMembers members);
  const TeamState& state_of(TeamId team) const { return state_.master().teams[team]; }

  Rma& rma_;
  StateBlock& state_;
  TeamSync* sync_;
  std::array<std::optional<TeamMembers>, limits::max_teams> members_;
  std::array<std::optional<bool>, limits::max_teams> all_load_store_;
  SlotClaims claims_;
  std::mutex mutex_; ///< guards the members below; taken inside a change of the state, never the
                     ///< other way round
  MemberLists lists_;
  std::uint64_t free_slots_;
  std::uint64_t free_records_ = ~std::uint64_t{0};
};

// Flags: single words that PEs publish to each other.

/// Release: a reader of the value sees what was written before it.
inline void store_flag(SyncCell& own, std::uint64_t value) {
  std::atomic_ref(own.value).store(value, std::memory_order_release);
}

/// The same cell of another PE. Acquire.
inline std::uint64_t load_flag(Rma& rma, const SyncCell& cell, int pe) {
  return rma.get_value<std::uint64_t>(&cell.value, pe);
}

/// Adds to the same cell of another PE; release.
inline void add_to_flag(Rma& rma, SyncCell& cell, std::uint64_t value, int pe) {
  rma.post_atomic(&cell.value, {AtomicOp::add, 8, value, 0}, pe);
}

/// Rounds of a dissemination over this many members: ceil(log2).
inline int rounds_of(int members) {
  int rounds = 0;
  while ((std::int64_t{1} << rounds) < members)
    ++rounds;
  return rounds;
}

} // namespace shmemctl

namespace shmemctl::slot_masks {

// Slot masks: what members exchange when they agree on a slot for a new team.

/// One bit for each slot. Predefined teams are never free, so their bits carry flags; the AND of
/// all masks has a flag if all members have set it.
static_assert(limits::max_teams <= 64 && first_user_team >= 2);
inline constexpr std::uint64_t shown = 1; ///< the mask is published
inline constexpr std::uint64_t held = 2; ///< no other creation may take slots of this PE until then
inline constexpr std::uint64_t slots_mask = ~std::uint64_t{0}
                                            << static_cast<unsigned>(first_user_team);
inline constexpr std::uint64_t bit(TeamId slot) {
  return std::uint64_t{1} << static_cast<unsigned>(slot);
}
/// 0-63; invalid_team if none is free.
inline TeamId lowest(std::uint64_t word) {
  word &= slots_mask;
  return word == 0 ? invalid_team : __builtin_ctzll(word);
}

/// A hash for values that must be equal on all PEs; not against intent.
inline std::uint64_t mixed(std::uint64_t seed, std::uint64_t value) {
  std::uint64_t x = seed * 0x100000001b3ULL + value + 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

} // namespace shmemctl::slot_masks
