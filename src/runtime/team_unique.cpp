// Teams of arbitrary PEs that find each other by a unique id.
//
// Every member shows its free slots in a rendezvous record of its own, under a key made from the
// id, and reads those of others; nothing is written to a PE that has not begun this creation, so
// creations that share members cannot mix, and PEs that are not members have no part in it. The AND
// of all words is computed by dissemination: in round r a member shows the AND of 2^r members'
// words and reads that of the member 2^r before it, waiting until it is there. AND is idempotent,
// so any number of members will do. Each value has exactly one reader, which adds to `acks` when it
// has it; a member leaves when its values of all rounds have been read. All members then know the
// same word, hence the same slot: the lowest one that is free on all. No sync is needed after that:
// a member that is already in its first sync adds to counters that are at rest on all members.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "src/base/deadline.h"
#include "src/base/error.h"
#include "src/base/secret.h"
#include "src/runtime/cells.h"
#include "src/runtime/slot_words.h"
#include "src/runtime/teams.h"

namespace shmemctl {

namespace {

constexpr int n_records = limits::max_teams;
/// A creation's record is one of these many behind the one that its id names, so that a reader need
/// not search all; so many creations whose ids collide may run in threads of one PE at once.
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

/// Attempts of one creation are told apart by their keys.
std::uint64_t key_of(std::uint64_t id, std::uint64_t attempt) {
  const std::uint64_t key = slot_words::mixed(id, attempt);
  return key == 0 ? 1 : key;
}

std::uint64_t hash_of(const std::vector<int>& members) {
  std::uint64_t hash = members.size();
  for (const int pe : members)
    hash = slot_words::mixed(hash, static_cast<std::uint64_t>(pe));
  return hash;
}

} // namespace

std::uint64_t Teams::unique_id() {
  std::uint64_t id = 0;
  while (id == 0) {
    const Secret random = random_secret();
    std::memcpy(&id, random.data(), sizeof id);
  }
  return id;
}

std::optional<TeamId> Teams::from_unique_id(std::uint64_t id, int my_number,
                                            const std::vector<int>& members) {
  if (!usable(members, my_number, rma_.pe(), rma_.n_pes()))
    return std::nullopt;
  TeamMembers team = team_members(members);
  const int record = take_record(id);
  // Nothing is agreed on yet: afterwards all are here.
  agree_by_id(id, key_of(id, 0), record, slot_words::shown, my_number, members);
  SlotClaims::Claim claim(claims_, {1, id});
  const Deadline deadline = Deadline::after(std::chrono::duration<double>(rma_.timeout_s()));
  std::uint64_t agreed = 0;
  for (std::uint64_t attempt = 1; !(agreed & slot_words::held); ++attempt) {
    if (attempt > 1) {
      claim.let_go();
      if (deadline.passed())
        rma_.health().give_up(step, -1);
      std::this_thread::yield();
    }
    agreed = agree_by_id(id, key_of(id, attempt), record, offer(claim, team.list.size()), my_number,
                         members);
  }
  {
    const std::lock_guard lock(mutex_);
    free_records_ |= slot_words::bit(record);
  }
  const TeamId slot = slot_words::lowest(agreed);
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
          if (free_records_ & slot_words::bit(record))
            taken = record;
        }
        if (taken >= 0)
          free_records_ &= ~slot_words::bit(taken);
        return taken >= 0;
      },
      step);
  return taken;
}

const TeamRendezvous* Teams::find_record(std::uint64_t id, std::uint64_t key, int pe) const {
  for (int probe = 0; probe < record_window; ++probe) {
    const TeamRendezvous& record = sync_[record_at(id, probe)].rendezvous;
    if (look_at(rma_, record.key, pe) == key)
      return &record;
  }
  return nullptr;
}

/// One attempt: the AND of all members' words.
std::uint64_t Teams::agree_by_id(std::uint64_t id, std::uint64_t key, int record,
                                 std::uint64_t own_word, int my_number,
                                 const std::vector<int>& members) {
  const int n = static_cast<int>(members.size()), rounds = rounds_of(n);
  TeamRendezvous& own = sync_[record].rendezvous;
  const std::uint64_t list = hash_of(members);
  show(own.list, list);
  show(own.acks, 0);
  for (SyncCell& value : own.values)
    show(value, 0);
  show(own.key, key); // the record is complete: readers may come

  std::uint64_t common = own_word;
  for (int round = 0; round < rounds; ++round) {
    show(own.values[round], common);
    const int peer = members[static_cast<std::size_t>((my_number - (1 << round) + n) % n)];
    const TeamRendezvous* theirs = nullptr;
    rma_.wait([&] { return (theirs = find_record(id, key, peer)) != nullptr; }, step, peer);
    if (look_at(rma_, theirs->list, peer) != list)
      throw Error(ExitCode::usage, "PE " + std::to_string(peer), step,
                  "its list of members differs from that of PE " + std::to_string(rma_.pe()),
                  "pass the same list on all members");
    std::uint64_t word = 0;
    rma_.wait([&] { return (word = look_at(rma_, theirs->values[round], peer)) != 0; }, step, peer);
    common &= word;
    add_at(rma_, const_cast<TeamRendezvous*>(theirs)->acks, 1, peer);
  }
  const int last_reader = members[static_cast<std::size_t>((my_number + (1 << rounds) / 2) % n)];
  rma_.wait_until(&own.acks.value, Compare::equal, static_cast<std::uint64_t>(rounds), step,
                  last_reader);
  show(own.key, 0);
  return common;
}

} // namespace shmemctl
