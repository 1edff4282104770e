// Teams: sets of PEs with a numbering of their own, in a fixed pool of slots.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/runtime/rma.h"
#include "src/runtime/state.h"

namespace shmemctl {

/// Slot of a team in the pool; the same on all of its members. invalid_team for non-members.
using TeamId = int;
inline constexpr TeamId invalid_team = -1;
inline constexpr TeamId team_world = 0;
inline constexpr TeamId team_shared = 1;  ///< the PEs of this PE's node that share memory
inline constexpr TeamId team_node = 2;    ///< the PEs of this PE's node
inline constexpr TeamId team_leaders = 3; ///< local PE 0 of every node; invalid elsewhere
inline constexpr TeamId first_user_team = 4;

/// Members in team order.
struct TeamMembers {
  int start = 0, stride = 1; ///< stride 0: `list`
  int n_pes = 0;
  std::vector<int> list;
  int world_pe(int member) const {
    return stride != 0 ? start + member * stride : list[static_cast<std::size_t>(member)];
  }
};

/// The pool. Splits are collective over the parent team; a slot is agreed on by its members (the
/// lowest one that is free on all of them), so that teams may nest, overlap and be destroyed in
/// any order.
class Teams {
public:
  /// Writes TeamState entries into `state` (and members into its list area); `sync` is this PE's
  /// TeamSync[limits::max_teams] in the internal region. Slots 0-3 are made here (no
  /// communication): `node_pes` are this node's PEs, `shared_pes` those that share memory,
  /// `leader_pes` the leaders.
  Teams(Rma& rma, State& state, TeamSync* sync, const std::vector<int>& node_pes,
        const std::vector<int>& shared_pes, const std::vector<int>& leader_pes,
        std::function<void()> publish);

  bool valid(TeamId team) const;
  int my_pe(TeamId team) const;
  int n_pes(TeamId team) const;
  /// World PE of a member; -1 if there is none.
  int world_pe(TeamId team, int member) const;
  /// Number in `to` of the PE that is `member` of `from`; -1 if it is not a member of `to`.
  int translate(TeamId from, int member, TeamId to) const;

  /// Members start, start + stride, ... of the parent (stride may be negative or 0 only with
  /// n = 1; wrapping around is not allowed). Collective over the parent. invalid_team on PEs that
  /// are not members; nothing if the arguments are wrong or no slot is free (same on all PEs).
  std::optional<TeamId> split_strided(TeamId parent, int start, int stride, int n_pes);
  /// Rows and columns of the parent laid out row by row, `x_range` PEs to a row.
  struct Grid {
    TeamId x = invalid_team, y = invalid_team;
  };
  std::optional<Grid> split_2d(TeamId parent, int x_range);
  /// An arbitrary list: every member calls with the same unique id (random, made by one of them
  /// and passed on by the program), its number and the number of members; no parent is needed.
  /// Members find each other through the internal region of the PE... (see team_unique.cpp).
  static std::uint64_t unique_id();
  std::optional<TeamId> from_unique_id(std::uint64_t id, int my_number,
                                       const std::vector<int>& members);

  /// Collective over the team. Predefined teams stay.
  void destroy(TeamId team);

  /// Dissemination barrier over the team: ceil(log2 n) rounds. Does not complete earlier puts.
  void sync(TeamId team);
  /// The sync area of a team's slot on this PE.
  TeamSync& area(TeamId team) const { return sync_[team]; }
  Rma& rma() const { return rma_; }

private:
  Rma& rma_;
  State& state_;
  TeamSync* sync_;
  std::function<void()> publish_;
  std::array<std::optional<TeamMembers>, limits::max_teams> members_;
};

} // namespace shmemctl
