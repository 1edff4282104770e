#include "src/runtime/teams.h"

#include <algorithm>

#include "src/base/error.h"
#include "src/runtime/cells.h"
#include "src/runtime/slot_words.h"

namespace shmemctl {

namespace {

constexpr int most_members = 1 << limits::sync_rounds;

bool in_pool(TeamId team) {
  return team >= 0 && team < limits::max_teams;
}

std::size_t index_of(TeamId team) {
  return static_cast<std::size_t>(team);
}

} // namespace

int TeamMembers::member(int world_pe) const {
  if (stride == 0) {
    const auto at = std::find(list.begin(), list.end(), world_pe);
    return at == list.end() ? -1 : static_cast<int>(at - list.begin());
  }
  const int distance = world_pe - start;
  if (distance % stride != 0)
    return -1;
  const int number = distance / stride;
  return number >= 0 && number < n_pes ? number : -1;
}

TeamMembers team_members(std::vector<int> list) {
  TeamMembers members;
  members.n_pes = static_cast<int>(list.size());
  members.start = list.front();
  members.stride = list.size() > 1 ? list[1] - list[0] : 1;
  for (std::size_t i = 1; i < list.size(); ++i)
    if (list[i] - list[i - 1] != members.stride)
      members.stride = 0;
  if (members.stride == 0)
    members.list = std::move(list);
  return members;
}

Teams::Teams(Rma& rma, StateBlock& state, TeamSync* sync, const std::vector<int>& node_pes,
             const std::vector<int>& shared_pes, const std::vector<int>& leader_pes)
    : rma_(rma), state_(state), sync_(sync), lists_(state.master().members_capacity),
      free_slots_(slot_words::slots_mask) {
  if (rma.n_pes() > most_members)
    throw Error(
        ExitCode::unavailable, "teams", "create for " + std::to_string(rma.n_pes()) + " PEs",
        "a team has at most " + std::to_string(most_members) + " members", "start fewer PEs");
  const auto predefined = [&](State& master, TeamId team, TeamMembers members) {
    if (members.member(rma.pe()) < 0)
      return;
    if (members.list.size() > lists_.room())
      throw Error(ExitCode::unavailable, "team state", "create the predefined teams",
                  "its member list is too small for " + std::to_string(members.n_pes) + " PEs",
                  "report this as a bug in shmemctl, with the command line");
    create(master, team, std::move(members));
  };
  const auto listed = [&](State& master, TeamId team, const std::vector<int>& pes) {
    if (!pes.empty())
      predefined(master, team, team_members(pes));
  };
  state_.change([&](State& master) {
    predefined(master, team_world, {0, 1, rma.n_pes(), {}});
    listed(master, team_shared, shared_pes);
    listed(master, team_node, node_pes);
    listed(master, team_leaders, leader_pes);
  });
}

bool Teams::valid(TeamId team) const {
  return in_pool(team) && members_[index_of(team)].has_value();
}

int Teams::my_pe(TeamId team) const {
  return valid(team) ? state_of(team).my_pe : -1;
}

int Teams::n_pes(TeamId team) const {
  return valid(team) ? state_of(team).n_pes : -1;
}

int Teams::world_pe(TeamId team, int member) const {
  if (!valid(team) || member < 0 || member >= state_of(team).n_pes)
    return -1;
  return members_[index_of(team)]->world_pe(member);
}

int Teams::translate(TeamId from, int member, TeamId to) const {
  const int pe = world_pe(from, member);
  return pe < 0 || !valid(to) ? -1 : members_[index_of(to)]->member(pe);
}

const TeamMembers& Teams::members_of_team(TeamId team) const {
  if (!valid(team))
    throw Error(ExitCode::usage, "team " + std::to_string(team), "use in a collective operation",
                "this PE is not a member, or the team has been destroyed",
                "call it on members only, before the team is destroyed");
  return *members_[index_of(team)];
}

std::uint64_t Teams::offer(SlotClaims::Claim& claim, std::size_t list_members) {
  if (!claim.try_hold())
    return slot_words::shown;
  const std::lock_guard lock(mutex_);
  const std::uint64_t slots = list_members <= lists_.room() ? free_slots_ : 0;
  return slots | slot_words::shown | slot_words::held;
}

/// The slot is free here, hence quiescent (see destroy()), so its counters need no care.
void Teams::create(State& state, TeamId slot, TeamMembers members) {
  const std::lock_guard lock(mutex_);
  TeamState& team = state.teams[slot];
  team.my_pe = members.member(rma_.pe());
  team.n_pes = members.n_pes;
  team.start = members.start;
  team.stride = members.stride;
  team.member_offset = 0;
  team.epoch = sync_[slot].epoch.value;
  if (members.stride == 0)
    lists_.place(state, slot, members.list);
  team.in_use = 1;
  free_slots_ &= ~slot_words::bit(slot);
  everyone_direct_[index_of(slot)].reset();
  members_[index_of(slot)] = std::move(members);
}

/// The sync is the last use of the slot: whoever has left it has seen all arrivals that were ever
/// sent to it on this slot, since each arrival is waited for by the sync that it belongs to. So
/// this PE's counters are at rest until it agrees to a new use. Teams of other sizes use other
/// numbers of rounds; bringing all rounds' counters up to the epoch makes one number enough for
/// all later uses.
void Teams::destroy(TeamId team) {
  if (team < first_user_team || !valid(team))
    return;
  sync(team);
  TeamSync& own = sync_[team];
  for (SyncCell& cell : own.arrived)
    show(cell, own.epoch.value);
  state_.change([&](State& state) {
    const std::lock_guard lock(mutex_);
    members_[index_of(team)].reset();
    lists_.release(team);
    state.teams[team] = free_team(own.epoch.value);
    free_slots_ |= slot_words::bit(team);
  });
}

} // namespace shmemctl
