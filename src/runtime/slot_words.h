// What PEs tell each other when they agree on a slot for a new team.
#pragma once

#include <cstdint>

#include "src/runtime/teams.h"

namespace shmemctl::slot_words {

/// One bit for each slot. Predefined teams are never free, so their bits carry flags; all of them
/// are true for all if the AND of all words has them.
static_assert(limits::max_teams <= 64 && first_user_team >= 2);
inline constexpr std::uint64_t shown = 1; ///< the word is there
inline constexpr std::uint64_t held = 2;  ///< no other creation may take slots of this PE meanwhile
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

} // namespace shmemctl::slot_words
