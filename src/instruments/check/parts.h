// The parts of `check`, and which of them run.
#pragma once

#include <string>
#include <vector>

namespace shmemctl {

inline constexpr int default_level = 2;
inline constexpr int soak_level = 3;

/// A part of `check`, which has one line of the verdict.
struct CheckPart {
  const char* id;
  const char* title;
  int level; ///< the lowest --level at which it runs
};
/// All parts in the order in which they run, without the part of --expect, which parts_of() adds.
const std::vector<CheckPart>& check_parts();
/// The part that compares the node with the file of --expect; it runs before all others.
inline constexpr const char* expect_part = "expect";
/// What the part with this id verifies; "" if there is none.
std::string part_title(const std::string& id);

/// The selection of parts on the command line.
struct PartChoice {
  int level = default_level;
  std::vector<std::string> only, skip; ///< ids
  bool fail_early = false;
  bool expects = false; ///< --expect is given
};

/// All parts, with `expect` first if --expect is given, whether or not `choice` skips them.
std::vector<CheckPart> parts_of(const PartChoice& choice);

/// Throws Error (usage), with the nearest spelling, for an unknown id, for a choice that leaves no
/// part, and for expect in `only` without --expect.
void require_parts(const PartChoice& choice);

/// Why the part does not run; "" if it does. `only` also runs parts of levels above choice.level.
/// @param failed the first part that failed; "" if none has
std::string why_skipped(const PartChoice& choice, const CheckPart& part, const std::string& failed);

/// Seconds that a check of this level may take if --timeout is not given: its parts have limits of
/// their own, so this one only ends what hangs.
double time_limit_s(int level);

} // namespace shmemctl
