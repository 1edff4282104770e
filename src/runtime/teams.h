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

/// The members of a team in team order.
struct TeamMembers {
  int start = 0, stride = 1; ///< stride 0: the members are in `list`
  int n_pes = 0;
  std::vector<int> list;
  int world_pe(int member) const {
    return stride != 0 ? start + member * stride : list[static_cast<std::size_t>(member)];
  }
  /// The number in the team of a world PE; -1 if it is not a member.
  int member(int world_pe) const;
};
/// Stored as start and stride if the list is an arithmetic progression. The list must not be empty.
TeamMembers team_members(std::vector<int> list);

/// The pool of teams. Splits are collective over the parent team. The members of a new team agree
/// on its slot (the lowest one that is free on all of them), so that teams may nest, overlap and be
/// destroyed in any order. Threads of a PE may use, create and destroy different teams at the same
/// time.
class Teams {
public:
  /// Creates the teams in slots 0-3, without communication. Throws Error (unavailable) if the job
  /// has more than 2^16 PEs or the lists do not fit.
  /// @param state  changed whenever a team is created or destroyed (its TeamState, and its members
  ///               in the list area)
  /// @param sync   this PE's TeamSync[limits::max_teams] in the internal region
  /// @param node_pes   this node's PEs
  /// @param shared_pes the PEs of this node that share memory
  /// @param leader_pes the leaders of all nodes
  Teams(Rma& rma, StateBlock& state, TeamSync* sync, const std::vector<int>& node_pes,
        const std::vector<int>& shared_pes, const std::vector<int>& leader_pes);

  bool valid(TeamId team) const;
  int my_pe(TeamId team) const;
  int n_pes(TeamId team) const;
  /// World PE of a member; -1 if there is none.
  int world_pe(TeamId team, int member) const;
  /// The number in `to` of the PE that has number `member` in `from`; -1 if it is not in `to`.
  int translate(TeamId from, int member, TeamId to) const;

  /// A team of members start, start + stride, ... of the parent, in this order, without wrapping
  /// around; the stride may be negative, and 0 only if n_pes is 1. Collective over the parent
  /// (OpenSHMEM 1.5, shmem_team_split_strided). Returns invalid_team on PEs that are not members,
  /// and nothing (on all PEs) if the arguments are wrong or no slot is free. Throws Error (usage)
  /// if the PEs' arguments differ.
  std::optional<TeamId> split_strided(TeamId parent, int start, int stride, int n_pes);
  /// The teams of this PE's row (x) and column (y) when the parent's PEs are laid out row by row.
  /// A row has `x_range` PEs, at most the parent's size; the last row may be shorter.
  struct Grid {
    TeamId x = invalid_team, y = invalid_team;
  };
  std::optional<Grid> split_2d(TeamId parent, int x_range);
  /// A team of arbitrary world PEs. Only the members call this, each with the same unique id (made
  /// by one of them and passed on by the program), its number in the team and the same list of
  /// world PEs. There is no parent team. Members that create several teams must do so in the same
  /// order, as with all collectives. Returns nothing if the list is empty, contains a PE twice or
  /// one that does not exist, does not contain this PE at `my_number`, or if no slot is free on all
  /// members. Throws Error: usage if the members' lists differ; deadline if a member does not
  /// arrive.
  std::optional<TeamId> from_unique_id(std::uint64_t id, int my_number,
                                       const std::vector<int>& members);
  /// As from_unique_id(), for members that know only their own number, 0 to n_members - 1: each
  /// searches all PEs for the other members that have begun with this id. Returns nothing if
  /// `my_number` or `n_members` is out of range. Also throws Error (usage) if two members have the
  /// same number, or their `n_members` differ.
  std::optional<TeamId> from_numbers(std::uint64_t id, int my_number, int n_members);

  /// Collective over the team. Has no effect on predefined teams.
  void destroy(TeamId team);

  /// Dissemination barrier over the team: ceil(log2 n) rounds. Stores of a member before the sync
  /// are visible to all members after it. Does not complete earlier puts. Throws Error (usage) on
  /// PEs that are not members.
  void sync(TeamId team);
  /// True on all members if every member reaches every other member's memory by loads and stores.
  /// Collective over the team (communicates only the first time).
  bool all_load_store(TeamId team);
  /// The sync area of a team's slot on this PE.
  TeamSync& area(TeamId team) const { return sync_[team]; }
  Rma& rma() const { return rma_; }

private:
  /// The members of a new team, as numbers in the parent.
  struct Slice {
    int start, stride, n_pes;
    int member(int parent_member) const;
  };
  using Slots = std::vector<TeamId>; ///< by slice

  const TeamMembers& members_of_team(TeamId team) const;
  /// Collective over the parent: makes a team of each slice, or none at all. Returns, by slice, the
  /// team if this PE is a member of it, else invalid_team.
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

  /// The mask of this PE's free slots with the flags that an agreement needs; no slot is free if
  /// the list area has no room for lists of `list_members` members in total.
  std::uint64_t mask_to_publish(SlotClaims::Claim& claim, std::size_t list_members);
  /// Called within a change of the state.
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

/// Stores with release order: a reader of the value sees all earlier writes of this PE.
inline void store_flag(SyncCell& own, std::uint64_t value) {
  std::atomic_ref(own.value).store(value, std::memory_order_release);
}

/// Loads the same cell of another PE, with acquire order.
inline std::uint64_t load_flag(Rma& rma, const SyncCell& cell, int pe) {
  return rma.get_value<std::uint64_t>(&cell.value, pe);
}

/// Adds to the same cell of another PE, with release order.
inline void add_to_flag(Rma& rma, SyncCell& cell, std::uint64_t value, int pe) {
  rma.post_atomic(&cell.value, {AtomicOp::add, 8, value, 0}, pe);
}

/// Rounds of a dissemination barrier over this many members: ceil(log2(members)).
inline int rounds_of(int members) {
  int rounds = 0;
  while ((std::int64_t{1} << rounds) < members)
    ++rounds;
  return rounds;
}

} // namespace shmemctl

namespace shmemctl::slot_masks {

// Slot masks, which members exchange in order to agree on a slot for a new team.

/// One bit for each slot. Predefined teams are never free, so their bits carry flags; in the AND of
/// all masks a flag is set if all members have set it.
static_assert(limits::max_teams <= 64 && first_user_team >= 2);
inline constexpr std::uint64_t shown = 1; ///< the mask is published
inline constexpr std::uint64_t held = 2;  ///< the creation holds this PE's slots
inline constexpr std::uint64_t slots_mask = ~std::uint64_t{0}
                                            << static_cast<unsigned>(first_user_team);
inline constexpr std::uint64_t bit(TeamId slot) {
  return std::uint64_t{1} << static_cast<unsigned>(slot);
}
/// The lowest free slot of the mask; invalid_team if none is free.
inline TeamId lowest(std::uint64_t word) {
  word &= slots_mask;
  return word == 0 ? invalid_team : __builtin_ctzll(word);
}

/// A hash for values that must be equal on all PEs. Not secure against deliberate collisions.
inline std::uint64_t mixed(std::uint64_t seed, std::uint64_t value) {
  std::uint64_t x = seed * 0x100000001b3ULL + value + 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

} // namespace shmemctl::slot_masks
