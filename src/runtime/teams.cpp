#include "src/runtime/teams.h"

#include <algorithm>
#include <chrono>

#include "src/base/deadline.h"
#include "src/base/error.h"
#include "src/base/wait.h"

namespace shmemctl {

namespace {
/// For the pause between two attempts to agree on a slot: yields, and never sleeps, because each
/// attempt communicates.
constexpr BackoffPolicy retry_backoff{.spins = 0, .yields = ~0u, .yields_per_check = 1};
} // namespace

namespace {

constexpr int max_members = 1 << limits::sync_rounds;

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
      free_slots_(slot_masks::slots_mask) {
  if (rma.n_pes() > max_members)
    throw Error(
        ExitCode::unavailable, "teams", "create for " + std::to_string(rma.n_pes()) + " PEs",
        "a team has at most " + std::to_string(max_members) + " members", "start fewer PEs");
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

std::uint64_t Teams::mask_to_publish(SlotClaims::Claim& claim, std::size_t list_members) {
  if (!claim.try_hold())
    return slot_masks::shown;
  const std::lock_guard lock(mutex_);
  const std::uint64_t slots = list_members <= lists_.room() ? free_slots_ : 0;
  return slots | slot_masks::shown | slot_masks::held;
}

/// The slot is free here, hence quiescent (see destroy()), so its counters need no reset.
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
  free_slots_ &= ~slot_masks::bit(slot);
  all_load_store_[index_of(slot)].reset();
  members_[index_of(slot)] = std::move(members);
}

/// The sync is the last use of the slot: a member that has left it has received all arrivals that
/// were ever sent to it on this slot, since each sync waits for its own arrivals. So this PE's
/// counters do not change until it agrees to a new use of the slot. Teams of other sizes use other
/// numbers of rounds; the counters of all rounds are set to the epoch, so that the epoch alone
/// describes the slot for the next team.
void Teams::destroy(TeamId team) {
  if (team < first_user_team || !valid(team))
    return;
  sync(team);
  TeamSync& own = sync_[team];
  for (SyncCell& cell : own.arrived)
    store_flag(cell, own.epoch.value);
  state_.change([&](State& state) {
    const std::lock_guard lock(mutex_);
    members_[index_of(team)].reset();
    lists_.release(team);
    state.teams[team] = free_team(own.epoch.value);
    free_slots_ |= slot_masks::bit(team);
  });
}

// Synchronisation of a team's members.

/// Dissemination barrier: in round r every member signals the member at distance +2^r and waits for
/// the member at -2^r; after round r it knows that 2^(r+1) members have arrived. Each sync adds
/// exactly one arrival to each round's counter, so a round is complete when its counter has reached
/// the number of syncs begun. (The partner may be one sync ahead, never two, because for that it
/// would need this PE's next arrival, directly or indirectly.)
void Teams::sync(TeamId team) {
  const TeamMembers& members = members_of_team(team);
  TeamSync& own = sync_[team];
  const std::uint64_t epoch = ++own.epoch.value;
  const int n = members.n_pes, me = state_of(team).my_pe;
  for (int round = 0, distance = 1; distance < n; ++round, distance *= 2) {
    SyncCell& arrived = own.arrived[round];
    add_to_flag(rma_, arrived, 1, members.world_pe((me + distance) % n));
    rma_.wait_until(&arrived.value, Compare::greater_equal, epoch, "team sync",
                    members.world_pe((me - distance + n) % n));
  }
}

bool Teams::all_load_store(TeamId team) {
  const TeamMembers& members = members_of_team(team);
  std::optional<bool>& known = all_load_store_[static_cast<std::size_t>(team)];
  if (known)
    return *known;
  bool all = true;
  for (int i = 0; i < members.n_pes; ++i)
    all = all && rma_.direct(&sync_[team], members.world_pe(i)) != nullptr;
  store_flag(sync_[team].published[0], all ? 1 : 0);
  sync(team);
  for (int i = 0; i < members.n_pes; ++i)
    all = load_flag(rma_, sync_[team].published[0], members.world_pe(i)) != 0 && all;
  sync(team);
  known = all;
  return all;
}

// New teams from a parent.

int Teams::Slice::member(int parent_member) const {
  return TeamMembers{start, stride, n_pes, {}}.member(parent_member);
}

std::optional<TeamId> Teams::split_strided(TeamId parent, int start, int stride, int n) {
  if (!valid(parent) || n < 1 || (stride == 0 && n != 1))
    return std::nullopt;
  const std::int64_t last = start + std::int64_t{stride} * (n - 1);
  if (start < 0 || start >= n_pes(parent) || last < 0 || last >= n_pes(parent))
    return std::nullopt;
  std::uint64_t arguments = slot_masks::mixed(1, static_cast<std::uint64_t>(start));
  arguments = slot_masks::mixed(arguments, static_cast<std::uint64_t>(stride));
  arguments = slot_masks::mixed(arguments, static_cast<std::uint64_t>(n));
  const auto slots = split(parent, {{start, stride == 0 ? 1 : stride, n}}, arguments);
  if (!slots)
    return std::nullopt;
  return slots->front();
}

std::optional<Teams::Grid> Teams::split_2d(TeamId parent, int x_range) {
  if (!valid(parent) || x_range < 1)
    return std::nullopt;
  const int n = n_pes(parent);
  const int columns = std::min(x_range, n);
  std::vector<Slice> slices;
  for (int first = 0; first < n; first += columns)
    slices.push_back({first, 1, std::min(columns, n - first)});
  const int rows = static_cast<int>(slices.size());
  for (int x = 0; x < columns; ++x)
    slices.push_back({x, columns, (n - x + columns - 1) / columns});
  const auto slots =
      split(parent, slices, slot_masks::mixed(2, static_cast<std::uint64_t>(columns)));
  if (!slots)
    return std::nullopt;
  const int row = my_pe(parent) / columns, column_slice = rows + my_pe(parent) % columns;
  return Grid{(*slots)[static_cast<std::size_t>(row)],
              (*slots)[static_cast<std::size_t>(column_slice)]};
}

TeamMembers Teams::slice_of(TeamId parent, const Slice& slice) const {
  std::vector<int> list(static_cast<std::size_t>(slice.n_pes));
  for (int i = 0; i < slice.n_pes; ++i)
    list[static_cast<std::size_t>(i)] = world_pe(parent, slice.start + i * slice.stride);
  return team_members(std::move(list));
}

std::optional<Teams::Slots> Teams::split(TeamId parent, const std::vector<Slice>& slices,
                                         std::uint64_t arguments) {
  const int me = my_pe(parent);
  std::vector<std::optional<TeamMembers>> members_by_slice(slices.size());
  std::size_t list_members = 0;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    if (slices[i].member(me) < 0)
      continue;
    members_by_slice[i] = slice_of(parent, slices[i]);
    list_members += members_by_slice[i]->list.size();
  }
  sync(parent); // all members have arrived: from here on no member waits for a PE that is busy with
                // something else
  SlotClaims::Claim claim(claims_, {0, static_cast<std::uint64_t>(parent)});
  Wait retry(rma_.health(), rma_.timeout_s(), {"team split"}, retry_backoff);
  auto words = gather_free(parent, mask_to_publish(claim, list_members), arguments);
  while (!words) {
    claim.let_go();
    retry.pause();
    words = gather_free(parent, mask_to_publish(claim, list_members), arguments);
  }
  auto slots = choose_slots(std::move(*words), slices);
  if (!slots)
    return std::nullopt;
  state_.change([&](State& state) {
    for (std::size_t i = 0; i < slices.size(); ++i) {
      if (members_by_slice[i])
        create(state, (*slots)[i], std::move(*members_by_slice[i]));
      else
        (*slots)[i] = invalid_team;
    }
  });
  return slots;
}

/// The slot masks of all members of the parent, in team order; nothing if a member was busy. The
/// second sync ensures that no mask is overwritten before all members have read it.
std::optional<std::vector<std::uint64_t>> Teams::gather_free(TeamId parent, std::uint64_t own_mask,
                                                             std::uint64_t arguments) {
  TeamSync& own = sync_[parent];
  const int n = n_pes(parent);
  store_flag(own.published[0], own_mask);
  store_flag(own.published[1], arguments);
  sync(parent);
  std::vector<std::uint64_t> words(static_cast<std::size_t>(n));
  std::uint64_t all = ~std::uint64_t{0};
  for (int i = 0; i < n; ++i) {
    const int pe = world_pe(parent, i);
    if (load_flag(rma_, own.published[1], pe) != arguments)
      throw Error(ExitCode::usage, "team " + std::to_string(parent), "split",
                  "PE " + std::to_string(pe) + " passed different arguments than PE " +
                      std::to_string(rma_.pe()),
                  "pass the same arguments on all members of the parent team");
    all &= words[static_cast<std::size_t>(i)] = load_flag(rma_, own.published[0], pe);
  }
  sync(parent);
  if (!(all & slot_masks::held))
    return std::nullopt;
  return words;
}

/// All members of the parent compute the slots of all slices, so that all of them know if no slot
/// is free for a slice.
std::optional<Teams::Slots> Teams::choose_slots(std::vector<std::uint64_t> free_by_member,
                                                const std::vector<Slice>& slices) {
  Slots slots;
  for (const Slice& slice : slices) {
    const auto free_of = [&](int i) -> std::uint64_t& {
      const int member = slice.start + i * slice.stride;
      return free_by_member[static_cast<std::size_t>(member)];
    };
    std::uint64_t common = slot_masks::slots_mask;
    for (int i = 0; i < slice.n_pes; ++i)
      common &= free_of(i);
    const TeamId slot = slot_masks::lowest(common);
    if (slot == invalid_team)
      return std::nullopt;
    for (int i = 0; i < slice.n_pes; ++i)
      free_of(i) &= ~slot_masks::bit(slot);
    slots.push_back(slot);
  }
  return slots;
}

// Teams of arbitrary PEs by a unique id. Every member publishes its free slots in its own
// rendezvous record, under a key derived from the id, and reads the records of others. Nothing is
// written to a PE that has not begun this creation, so creations that share members cannot mix, and
// PEs that are not members are not involved. The AND of all masks is computed by dissemination: in
// round r a member publishes the AND of 2^r members' masks, and reads that of the member at -2^r
// once it is published. AND is idempotent, so the number of members need not be a power of two.
// Each value has exactly one reader, which increments `acks` after reading it; a member leaves when
// its values of all rounds have been read. All members then have the same mask, hence the same
// slot: the lowest one that is free on all. No sync is needed afterwards: a member that is already
// in its first sync adds to counters that no other member is changing.

namespace {

constexpr int n_records = limits::max_teams;
/// A creation takes one of this many consecutive records, from the index id % n_records on, so that
/// a reader need not search all records. This is also how many creations with colliding ids can run
/// in threads of one PE at once.
constexpr int record_window = 4;
constexpr const char* step = "team from a unique id";

int record_at(std::uint64_t id, int probe) {
  return static_cast<int>((id + static_cast<std::uint64_t>(probe)) % n_records);
}

bool usable(const std::vector<int>& members, int my_number, int pe, int n_pes) {
  const auto n = static_cast<int>(members.size());
  if (my_number < 0 || my_number >= n || members[static_cast<std::size_t>(my_number)] != pe)
    return false;
  std::vector<int> sorted = members;
  std::sort(sorted.begin(), sorted.end());
  return sorted.front() >= 0 && sorted.back() < n_pes &&
         std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
}

/// Each attempt of a creation has its own key, and so does the search for its members.
constexpr std::uint64_t attempt_with_numbers = ~std::uint64_t{0};
std::uint64_t key_of(std::uint64_t id, std::uint64_t attempt) {
  const std::uint64_t key = slot_masks::mixed(id, attempt);
  return key == 0 ? 1 : key;
}

std::uint64_t hash_of(const std::vector<int>& members) {
  std::uint64_t hash = members.size();
  for (const int pe : members)
    hash = slot_masks::mixed(hash, static_cast<std::uint64_t>(pe));
  return hash;
}

} // namespace

std::optional<TeamId> Teams::from_unique_id(std::uint64_t id, int my_number,
                                            const std::vector<int>& members) {
  if (!usable(members, my_number, rma_.pe(), rma_.n_pes()))
    return std::nullopt;
  TeamMembers team = team_members(members);
  const int record = take_record(id);
  // This round agrees on nothing; it only ensures that all members have arrived.
  agree_by_id(id, key_of(id, 0), record, slot_masks::shown, my_number, members);
  SlotClaims::Claim claim(claims_, {1, id});
  Wait retry(rma_.health(), rma_.timeout_s(), {step}, retry_backoff);
  std::uint64_t agreed = 0;
  for (std::uint64_t attempt = 1; !(agreed & slot_masks::held); ++attempt) {
    if (attempt > 1) {
      claim.let_go();
      retry.pause();
    }
    agreed = agree_by_id(id, key_of(id, attempt), record, mask_to_publish(claim, team.list.size()),
                         my_number, members);
  }
  give_back_record(record);
  const TeamId slot = slot_masks::lowest(agreed);
  if (slot == invalid_team)
    return std::nullopt;
  state_.change([&](State& state) { create(state, slot, std::move(team)); });
  return slot;
}

int Teams::take_record(std::uint64_t id) {
  int taken = -1;
  rma_.wait(
      [&] {
        const std::lock_guard lock(mutex_);
        for (int probe = 0; probe < record_window && taken < 0; ++probe) {
          const int record = record_at(id, probe);
          if (free_records_ & slot_masks::bit(record))
            taken = record;
        }
        if (taken >= 0)
          free_records_ &= ~slot_masks::bit(taken);
        return taken >= 0;
      },
      step);
  return taken;
}

void Teams::give_back_record(int record) {
  const std::lock_guard lock(mutex_);
  free_records_ |= slot_masks::bit(record);
}

/// A record with its own key (attempt_with_numbers) publishes this PE's number until all other
/// members have acknowledged that they have read it. The agreement that follows ends only after all
/// members have begun it, so a later use of the same id finds none of these records.
std::optional<TeamId> Teams::from_numbers(std::uint64_t id, int my_number, int n_members) {
  if (n_members < 1 || n_members > rma_.n_pes() || my_number < 0 || my_number >= n_members)
    return std::nullopt;
  const auto count = static_cast<std::uint64_t>(static_cast<std::uint32_t>(n_members));
  std::vector<int> members(index_of(n_members), -1);
  std::vector<bool> found(index_of(rma_.n_pes()), false);
  members[index_of(my_number)] = rma_.pe();
  found[index_of(rma_.pe())] = true;
  int missing = n_members - 1;

  const std::uint64_t key = key_of(id, attempt_with_numbers);
  const int record = take_record(id);
  TeamRendezvous& own = sync_[record].rendezvous;
  store_flag(own.list, count << 32 | static_cast<std::uint64_t>(my_number));
  store_flag(own.acks, 0);
  store_flag(own.key, key);
  const auto look_at = [&](int pe) {
    const TeamRendezvous* const theirs = find_record(id, key, pe);
    if (!theirs)
      return;
    const std::uint64_t shown = load_flag(rma_, theirs->list, pe);
    const auto number = static_cast<std::size_t>(shown & 0xffff'ffff);
    if (shown >> 32 != count)
      throw Error(ExitCode::usage, "PE " + std::to_string(pe), "make a team by unique id",
                  "it expects " + std::to_string(shown >> 32) + " members, PE " +
                      std::to_string(rma_.pe()) + " expects " + std::to_string(count),
                  "pass the same number of members on all of them");
    if (members[number] >= 0)
      throw Error(ExitCode::usage, "PE " + std::to_string(pe), "make a team by unique id",
                  "it has number " + std::to_string(number) + " in the team, as PE " +
                      std::to_string(members[number]) + " has",
                  "pass each number from 0 to " + std::to_string(count - 1) + " on one member");
    members[number] = pe;
    found[index_of(pe)] = true;
    --missing;
    add_to_flag(rma_, const_cast<TeamRendezvous*>(theirs)->acks, 1, pe);
  };
  rma_.wait(
      [&] {
        for (int pe = 0; pe < rma_.n_pes() && missing > 0; ++pe)
          if (!found[index_of(pe)])
            look_at(pe);
        return missing == 0;
      },
      step);
  rma_.wait_until(&own.acks.value, Compare::greater_equal, count - 1, step);
  store_flag(own.key, 0);
  give_back_record(record);
  return from_unique_id(id, my_number, members);
}

const TeamRendezvous* Teams::find_record(std::uint64_t id, std::uint64_t key, int pe) const {
  for (int probe = 0; probe < record_window; ++probe) {
    const TeamRendezvous& record = sync_[record_at(id, probe)].rendezvous;
    if (load_flag(rma_, record.key, pe) == key)
      return &record;
  }
  return nullptr;
}

/// One attempt to agree; returns the AND of all members' masks.
std::uint64_t Teams::agree_by_id(std::uint64_t id, std::uint64_t key, int record,
                                 std::uint64_t own_mask, int my_number,
                                 const std::vector<int>& members) {
  const int n = static_cast<int>(members.size()), rounds = rounds_of(n);
  TeamRendezvous& own = sync_[record].rendezvous;
  const std::uint64_t list = hash_of(members);
  store_flag(own.list, list);
  store_flag(own.acks, 0);
  for (SyncCell& value : own.values)
    store_flag(value, 0);
  store_flag(own.key, key); // the record is complete: readers may use it

  std::uint64_t common = own_mask;
  for (int round = 0; round < rounds; ++round) {
    store_flag(own.values[round], common);
    const int peer = members[static_cast<std::size_t>((my_number - (1 << round) + n) % n)];
    const TeamRendezvous* theirs = nullptr;
    rma_.wait([&] { return (theirs = find_record(id, key, peer)) != nullptr; }, step, peer);
    if (load_flag(rma_, theirs->list, peer) != list)
      throw Error(ExitCode::usage, "PE " + std::to_string(peer), "make a team by unique id",
                  "its list of members differs from that of PE " + std::to_string(rma_.pe()),
                  "pass the same list on all members");
    std::uint64_t word = 0;
    rma_.wait([&] { return (word = load_flag(rma_, theirs->values[round], peer)) != 0; }, step,
              peer);
    common &= word;
    add_to_flag(rma_, const_cast<TeamRendezvous*>(theirs)->acks, 1, peer);
  }
  const int last_reader = members[static_cast<std::size_t>((my_number + (1 << rounds) / 2) % n)];
  rma_.wait_until(&own.acks.value, Compare::equal, static_cast<std::uint64_t>(rounds), step,
                  last_reader);
  store_flag(own.key, 0);
  return common;
}

} // namespace shmemctl
