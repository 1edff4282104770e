// The parts of `check`, and which of them run.
#pragma once

#include <string>
#include <vector>

namespace shmemctl {

inline constexpr int default_level = 2;
inline constexpr int soak_level = 3;

/// A part of `check`: it has one line of the verdict.
struct CheckPart {
  const char* id;
  const char* title;
  int level; ///< the lowest --level at which it runs
};
/// In the order in which they run. --expect adds another one: parts_of().
const std::vector<CheckPart>& check_parts();
/// The part that compares the node with the file of --expect, before all others.
inline constexpr const char* expect_part = "expect";
/// What the part of this id verifies; "" for none.
std::string part_title(const std::string& id);

/// What the command line chose.
struct PartChoice {
  int level = default_level;
  std::vector<std::string> only, skip; ///< ids
  bool fail_early = false;
  bool expects = false; ///< --expect is given
};

/// The parts that this choice is made from, in the order in which they run.
std::vector<CheckPart> parts_of(const PartChoice& choice);

/// Throws Error (usage), with the nearest spelling, for an id that no part has, for a choice that
/// leaves none, and for expect in `only` without --expect.
void require_parts(const PartChoice& choice);

/// Why the part does not run; empty if it does. `only` runs parts of higher levels, too.
/// @param failed the first part that failed; "" if none has
std::string why_skipped(const PartChoice& choice, const CheckPart& part, const std::string& failed);

/// Seconds that a check of this level may take if --timeout is not given: its parts have limits of
/// their own, so this one only ends what hangs.
double time_limit_s(int level);

} // namespace shmemctl
