// The arithmetic of collectives in kernels: who sends what where. For host and device; no state.
#pragma once

#include <cstdint>

#include "kernels/device_job.h"
#include "src/base/host_device.h"

namespace shmemctl::plan {

/// A part of something, in its units.
struct Piece {
  std::uint64_t begin, size;
};

/// a / b. GPUs divide 32 bits several times as fast as 64.
SHMEMCTL_HOST_DEVICE constexpr std::uint64_t quotient(std::uint64_t a, std::uint64_t b) {
  return (a | b) >> 32 == 0 ? static_cast<std::uint32_t>(a) / static_cast<std::uint32_t>(b) : a / b;
}

/// Piece `index` of `pieces` of `total` units: whole granules but for the last one, in order,
/// without gaps. Some may be empty.
SHMEMCTL_HOST_DEVICE constexpr Piece piece_of(std::uint64_t total, std::uint64_t pieces,
                                              std::uint64_t index, std::uint64_t granule) {
  const std::uint64_t granules = (total + granule - 1) / granule;
  const std::uint64_t each = quotient(granules + pieces - 1, pieces) * granule;
  const std::uint64_t begin = each * index < total ? each * index : total;
  return {begin, total - begin < each ? total - begin : each};
}

/// How `parts` (blocks, mostly) share data to `members` members. In few members each part has a
/// piece of what goes to everybody, else some pieces for some members.
struct Task {
  int member;
  int piece;
};
inline constexpr int few_members = 8;
SHMEMCTL_HOST_DEVICE constexpr int pieces_for(int parts, int members) {
  return members <= few_members ? parts : parts > members ? parts / members : 1;
}
/// What `part` does in its turns, for as long as part + turn * parts is below pieces * members.
/// Each part begins with another member, its own PE among them, so that not all send to one, and
/// links are never idle while all copy at home.
SHMEMCTL_HOST_DEVICE constexpr Task task_of(int turn, int part, int parts, int members, int me) {
  if (pieces_for(parts, members) == parts)
    return {(me + turn + part) % members, part};
  const int task = part + turn * parts;
  return {(me + task % members) % members, task / members};
}

/// How the scratch of a team's cells serves reductions of members that are not mapped: this many
/// parts work at a time, each with a slot of `slot_bytes` for each such member. As many parts as
/// leave slots that are worth a transfer; one at least.
struct FarWindows {
  int parts;
  std::size_t slot_bytes; ///< a multiple of 16, at least 512
};
inline constexpr std::size_t far_scratch_bytes = 2 * DeviceTeamCells::flag_bytes;
SHMEMCTL_HOST_DEVICE constexpr FarWindows far_windows(int n_far, int parts) {
  constexpr std::size_t worth_bytes = std::size_t{16} << 10;
  const auto members = static_cast<std::size_t>(n_far > 0 ? n_far : 1);
  const std::size_t fit = far_scratch_bytes / (members * worth_bytes);
  const std::size_t wanted = static_cast<std::size_t>(parts);
  const std::size_t working = fit < 1 ? 1 : fit < wanted ? fit : wanted;
  return {static_cast<int>(working), far_scratch_bytes / (working * members) / 16 * 16};
}

/// What one member counts up in DeviceTeamCells::done of each other one in a large collective:
/// every part its share, behind what it has stored.
inline constexpr std::uint64_t whole_count = std::uint64_t{1} << 31;
SHMEMCTL_HOST_DEVICE constexpr std::uint64_t count_of(int part, int parts) {
  const std::uint64_t each = quotient(whole_count, static_cast<std::uint64_t>(parts));
  return part > 0 ? each : whole_count - each * (static_cast<std::uint64_t>(parts) - 1);
}

// What a member brings to a collect: its size, and, in the low bits, the number of the call, by
// which whoever waits for the word knows it from the one of the call before.

inline constexpr int collect_number_bits = 16;
SHMEMCTL_HOST_DEVICE constexpr std::uint64_t size_word(std::uint64_t size_bytes,
                                                       std::uint64_t number) {
  return size_bytes << collect_number_bits |
         (number & ((std::uint64_t{1} << collect_number_bits) - 1));
}
SHMEMCTL_HOST_DEVICE constexpr std::uint64_t number_in(std::uint64_t word) {
  return word & ((std::uint64_t{1} << collect_number_bits) - 1);
}
SHMEMCTL_HOST_DEVICE constexpr std::uint64_t size_in(std::uint64_t word) {
  return word >> collect_number_bits;
}

// A barrier's number is put into a word of another member, and networks keep no order among puts
// without a fence: the number of this barrier may overtake that of the one before. So two words
// take turns. Why two suffice: who puts number b + 2 has ended barrier b + 1, for which each member
// has come to b + 1, hence ended b, hence seen number b in the word that is overwritten now.
SHMEMCTL_HOST_DEVICE constexpr std::uint64_t word_of_barrier(std::uint64_t number) {
  return number % 2;
}

/// Rounds of dissemination among `members`: in round r each tells the one 2^r behind it.
SHMEMCTL_HOST_DEVICE constexpr int rounds_of(int members) {
  int rounds = 0;
  for (std::int64_t reached = 1; reached < members; reached *= 2)
    ++rounds;
  return rounds;
}
SHMEMCTL_HOST_DEVICE constexpr int round_target(int me, int round, int members) {
  return static_cast<int>((me + (std::int64_t{1} << round)) % members);
}
SHMEMCTL_HOST_DEVICE constexpr int round_source(int me, int round, int members) {
  return static_cast<int>((me + members - (std::int64_t{1} << round) % members) % members);
}

// Small collectives: words of 4 bytes of data (high half) and 4 of the collective's epoch, in pairs
// of 16 bytes, which carry 8 bytes of data.
//
// Why two halves of DeviceTeamCells::messages suffice. In epoch e all words go into half e % 2.
// Whoever writes into member j's half in epoch e overwrites what j was sent in epoch e - 2, so j
// must have finished reading that. j finishes e - 2 before it begins e - 1. Hence it suffices that
// the writer knows, when it begins e, that every member has begun e - 1. It knows that if in e - 1
// it heard from all of them: a collective in which everybody sends to everybody is complete only
// when all have been heard. In a small broadcast only the root sends; so there each member also
// tells all others that it has begun (DeviceTeamCells::entered), nobody waits for that, and whoever
// begins the next collective looks for it then (must_hear()), when it has mostly long arrived.
// With one half only, a fast member's words of e would land on words of e - 1 that a slow one still
// reads. tests/unit/device_plan runs this through all schedules of small cases, and finds that
// with one half, or without must_hear(), data are lost.
//
// The epoch in a word has 32 bits: a word of 2^32 collectives ago would be taken for a new one if
// nothing had been written over it since.

inline constexpr std::uint64_t pairs_per_half = DeviceTeamCells::flag_bytes / 16;
inline constexpr std::uint64_t bytes_per_pair = 8;

SHMEMCTL_HOST_DEVICE constexpr std::uint64_t half_of(std::uint64_t epoch) {
  return epoch % 2;
}
/// A collective that begins `epoch` must see entered[i] >= epoch - 1 of all members first.
/// @param heard the last epoch in which this member heard from all
SHMEMCTL_HOST_DEVICE constexpr bool must_hear(std::uint64_t heard, std::uint64_t epoch) {
  return heard + 1 < epoch;
}
SHMEMCTL_HOST_DEVICE constexpr std::uint64_t pairs_of(std::uint64_t size_bytes) {
  return (size_bytes + bytes_per_pair - 1) / bytes_per_pair;
}
/// Of a half, for each of `senders`.
SHMEMCTL_HOST_DEVICE constexpr std::uint64_t slot_pairs(int senders) {
  return quotient(pairs_per_half, static_cast<std::uint64_t>(senders));
}
/// Whether `size_bytes` from each of `senders` go in words.
SHMEMCTL_HOST_DEVICE constexpr bool is_small(std::uint64_t size_bytes, int senders) {
  return pairs_of(size_bytes) <= slot_pairs(senders);
}
SHMEMCTL_HOST_DEVICE constexpr std::uint64_t word_of(std::uint32_t data, std::uint64_t epoch) {
  return static_cast<std::uint64_t>(data) << 32 | static_cast<std::uint32_t>(epoch);
}
SHMEMCTL_HOST_DEVICE constexpr bool is_of(std::uint64_t word, std::uint64_t epoch) {
  return static_cast<std::uint32_t>(word) == static_cast<std::uint32_t>(epoch);
}
SHMEMCTL_HOST_DEVICE constexpr std::uint32_t data_of(std::uint64_t word) {
  return static_cast<std::uint32_t>(word >> 32);
}

} // namespace shmemctl::plan
