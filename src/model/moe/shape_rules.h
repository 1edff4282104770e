// Which shapes can be run, and what to ask for instead of those that cannot.
#pragma once

#include <optional>
#include <string>

#include "src/base/error.h"
#include "src/model/moe/shape.h"

namespace shmemctl::moe {

inline constexpr std::int32_t max_experts = 1 << 16;

/// A rule that a shape breaks.
struct BrokenRule {
  std::string what;    ///< "hidden", as the command line names it
  std::string rule;    ///< "must be a multiple of 128 with FP8, for one scale per 128 channels"
  std::string found;   ///< "7100"
  std::string nearest; ///< the nearest legal value: "7040 or 7168"
};

/// What to throw of a rule that is broken (usage).
Error error_of(const BrokenRule& broken);

/// Groups that experts are put into, where the routing has some: then num-experts has to suit them,
/// too. Whether the groups themselves are legal is the routing's to say.
struct GroupRule {
  std::int32_t groups = 1, top_groups = 1;
};

/// The value that it names is one that this function accepts, if all other values are legal.
/// @param ranks_limit the most ranks that the caller supports
/// @return nothing if all is well
std::optional<BrokenRule> broken_rule(const Shape& shape, Format format,
                                      int ranks_limit = max_ranks, const GroupRule& groups = {});
/// Only what does not depend on the number of ranks.
std::optional<BrokenRule> broken_without_ranks(const Shape& shape, Format format);
/// Throws Error (usage) if a rule is broken.
void validate(const Shape& shape, Format format, int ranks_limit = max_ranks,
              const GroupRule& groups = {});

} // namespace shmemctl::moe
