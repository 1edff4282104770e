// The arithmetic of device collectives and barriers: which part (a block or another scope) sends
// which piece of the data to which member, and in which words. For host and device; stateless.
#pragma once

#include <cstdint>

#include "src/abi/device_job.h"
#include "src/base/host_device.h"

namespace shmemctl::plan {

/// A range, in arbitrary units.
struct Piece {
  std::uint64_t begin, size;
};

/// a / b. On GPUs, 32-bit division is several times as fast as 64-bit division.
SHMEMCTL_HOST_DEVICE constexpr std::uint64_t quotient(std::uint64_t a, std::uint64_t b) {
  return (a | b) >> 32 == 0 ? static_cast<std::uint32_t>(a) / static_cast<std::uint32_t>(b) : a / b;
}

/// Range `index` when `total` units are divided into `pieces` consecutive ranges of whole granules,
/// of which only the last granule may be incomplete. Some ranges may be empty.
SHMEMCTL_HOST_DEVICE constexpr Piece piece_of(std::uint64_t total, std::uint64_t pieces,
                                              std::uint64_t index, std::uint64_t granule) {
  const std::uint64_t granules = (total + granule - 1) / granule;
  const std::uint64_t each = quotient(granules + pieces - 1, pieces) * granule;
  const std::uint64_t begin = each * index < total ? each * index : total;
  return {begin, total - begin < each ? total - begin : each};
}

/// A task of a part: to send piece `piece` of the data to `member`. `parts` parts (usually blocks)
/// share the tasks for `members` members: with at most few_members members, each part sends one
/// piece to every member; otherwise each part sends some pieces to some members.
struct Task {
  int member;
  int piece;
};
inline constexpr int few_members = 8;
SHMEMCTL_HOST_DEVICE constexpr int pieces_for(int parts, int members) {
  return members <= few_members ? parts : parts > members ? parts / members : 1;
}
/// The task of `part` in iteration `turn`, while part + turn * parts is below pieces * members.
/// Parts start with different members, among them this PE, so that they do not all send to the same
/// member, and links are not idle while all parts copy locally.
SHMEMCTL_HOST_DEVICE constexpr Task task_of(int turn, int part, int parts, int members, int me) {
  if (pieces_for(parts, members) == parts)
    return {(me + turn + part) % members, part};
  const int task = part + turn * parts;
  return {(me + task % members) % members, task / members};
}

/// Whether a part sends its piece to all members together: if each part has one piece of
/// `piece_bytes` for every member, and the piece has at most together_words words of 16 bytes for
/// each of the part's `threads`, so that latency dominates. A longer piece is sent to one member
/// after the other, as one stream of stores each.
inline constexpr std::uint64_t together_words = 4;
SHMEMCTL_HOST_DEVICE constexpr bool is_sent_together(int parts, int members,
                                                     std::uint64_t piece_bytes, int threads) {
  return pieces_for(parts, members) == parts &&
         piece_bytes <= together_words * 16 * static_cast<std::uint64_t>(threads);
}

/// How the scratch of a team's flags is divided for reductions over the network: `parts` parts work
/// at a time, each with a slot of `slot_bytes` per network member. At least one part works, and at
/// most as many as leave slots that are large enough to be worth a transfer.
struct NetworkWindows {
  int parts;
  std::size_t slot_bytes; ///< a multiple of 16, at least 512
};
inline constexpr std::size_t network_scratch_bytes = 2 * DeviceTeamFlags::flag_bytes;
SHMEMCTL_HOST_DEVICE constexpr NetworkWindows network_windows(int n_internode, int parts) {
  constexpr std::size_t worth_bytes = std::size_t{16} << 10;
  const auto members = static_cast<std::size_t>(n_internode > 0 ? n_internode : 1);
  const std::size_t fit = network_scratch_bytes / (members * worth_bytes);
  const std::size_t wanted = static_cast<std::size_t>(parts);
  const std::size_t working = fit < 1 ? 1 : fit < wanted ? fit : wanted;
  return {static_cast<int>(working), network_scratch_bytes / (working * members) / 16 * 16};
}

/// The total that a member adds to its word of DeviceTeamFlags::done at every member in one large
/// collective. Each part adds its share, count_of(), after its stores.
inline constexpr std::uint64_t whole_count = std::uint64_t{1} << 31;
SHMEMCTL_HOST_DEVICE constexpr std::uint64_t count_of(int part, int parts) {
  const std::uint64_t each = quotient(whole_count, static_cast<std::uint64_t>(parts));
  return part > 0 ? each : whole_count - each * (static_cast<std::uint64_t>(parts) - 1);
}

// The word by which a member publishes its size in a collect. Its low bits hold the number of the
// call, which distinguishes the word from that of the previous call.

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

// A network barrier puts its number into a word of each unmapped member. Without a fence puts are
// unordered, so the number of this barrier may overtake that of the previous one; therefore two
// words are used alternately. Two suffice: a member that puts number b + 2 has left barrier b + 1,
// for which every member has entered b + 1, hence left b, hence seen number b in the word that is
// overwritten now.
SHMEMCTL_HOST_DEVICE constexpr std::uint64_t word_of_barrier(std::uint64_t number) {
  return number % 2;
}

/// Rounds of a dissemination barrier of `members`: in round r each signals the member 2^r after it.
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
// Why a double buffer (DeviceTeamFlags::messages) suffices: in epoch e all words go to buffer e %
// 2. A writer into member j's buffer in epoch e overwrites what was sent to j in epoch e - 2, so j
// must have finished reading that. j finishes e - 2 before it enters e - 1. So the writer must
// know, when it enters e, that every member has entered e - 1. It does if it received data from all
// of them in e - 1: a collective in which all send to all is complete only when data from all has
// arrived. In a small broadcast only the root sends; there each member also sets its entered flag
// at all others (DeviceTeamFlags::entered), without waiting. A member checks these flags when it
// enters the next collective (must_wait()); by then they have usually arrived. With a single
// buffer, a fast member's words of epoch e would overwrite words of e - 1 that a slow member still
// reads. tests/unit/kernels/device_plan explores all schedules of small cases, and finds that data
// is lost with a single buffer, or without must_wait().
//
// The epoch in a word has 32 bits: a word from 2^32 collectives ago would be taken for a new one if
// it had not been overwritten since.

inline constexpr std::uint64_t pairs_per_half = DeviceTeamFlags::flag_bytes / 16;
inline constexpr std::uint64_t bytes_per_pair = 8;

SHMEMCTL_HOST_DEVICE constexpr std::uint64_t half_of(std::uint64_t epoch) {
  return epoch % 2;
}
/// Whether a member that enters `epoch` must first wait until entered[i] >= epoch - 1 for every
/// other member i.
/// @param received last epoch in which this member received data from all
SHMEMCTL_HOST_DEVICE constexpr bool must_wait(std::uint64_t received, std::uint64_t epoch) {
  return received + 1 < epoch;
}
SHMEMCTL_HOST_DEVICE constexpr std::uint64_t pairs_of(std::uint64_t size_bytes) {
  return (size_bytes + bytes_per_pair - 1) / bytes_per_pair;
}
/// Capacity of one sender's slot, in pairs, if `senders` members share a buffer.
SHMEMCTL_HOST_DEVICE constexpr std::uint64_t slot_pairs(int senders) {
  return quotient(pairs_per_half, static_cast<std::uint64_t>(senders));
}
/// Whether `size_bytes` from each of `senders` fit into a buffer.
SHMEMCTL_HOST_DEVICE constexpr bool is_small(std::uint64_t size_bytes, int senders) {
  return pairs_of(size_bytes) <= slot_pairs(senders);
}
/// Most pairs that a thread sends, over all members, in a gather or broadcast by a single thread or
/// warp. Each takes half a microsecond; with more of them, stores of 16 bytes and flags are faster
/// (H200).
inline constexpr std::uint64_t few_pairs_per_thread = 8;
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
