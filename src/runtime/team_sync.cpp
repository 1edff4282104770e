// Synchronisation of a team's members.
#include <algorithm>

#include "src/runtime/cells.h"
#include "src/runtime/teams.h"

namespace shmemctl {

/// In round r every member tells the one 2^r behind it that it has come, and waits for the one 2^r
/// before it; after round r it knows that 2^(r+1) members have come. Each sync gives exactly one
/// arrival in each round's counter, so it is over when the counter has reached the number of syncs
/// begun (the partner may be one ahead, never two: it needs this PE's next arrival, directly or
/// through others).
void Teams::sync(TeamId team) {
  const TeamMembers& members = members_of_team(team);
  TeamSync& own = sync_[team];
  const std::uint64_t epoch = ++own.epoch.value;
  const int n = members.n_pes, me = state_of(team).my_pe;
  for (int round = 0, distance = 1; distance < n; ++round, distance *= 2) {
    SyncCell& arrived = own.arrived[round];
    add_at(rma_, arrived, 1, members.world_pe((me + distance) % n));
    rma_.wait_until(&arrived.value, Compare::greater_equal, epoch, "team sync",
                    members.world_pe((me - distance + n) % n));
  }
}

bool Teams::everyone_direct(TeamId team) {
  const TeamMembers& members = members_of_team(team);
  std::optional<bool>& known = everyone_direct_[static_cast<std::size_t>(team)];
  if (known)
    return *known;
  bool all = true;
  for (int i = 0; i < members.n_pes; ++i)
    all = all && rma_.direct(&sync_[team], members.world_pe(i)) != nullptr;
  show(sync_[team].published[0], all ? 1 : 0);
  sync(team);
  for (int i = 0; i < members.n_pes; ++i)
    all = look_at(rma_, sync_[team].published[0], members.world_pe(i)) != 0 && all;
  sync(team);
  known = all;
  return all;
}

} // namespace shmemctl
