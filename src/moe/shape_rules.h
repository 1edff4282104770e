// Which shapes can be run, and what to ask for instead of those that cannot.
#pragma once

#include <optional>
#include <string>

#include "src/base/error.h"
#include "src/moe/shape.h"

namespace shmemctl::moe {

/// A rule that a shape breaks.
struct BrokenRule {
  std::string what;    ///< "hidden", in the words of the command line
  std::string rule;    ///< "must be a multiple of 128 with FP8, for one scale per 128 channels"
  std::string found;   ///< "7100"
  std::string nearest; ///< the nearest legal value: "7040 or 7168"
};

/// What to throw of a rule that is broken (usage).
Error error_of(const BrokenRule& broken);

/// @param ranks_limit most ranks that whoever runs it knows
/// @return nothing if all is well
std::optional<BrokenRule> broken_rule(const Shape& shape, Format format,
                                      int ranks_limit = max_ranks);
/// Throws Error (usage) if a rule is broken.
void validate(const Shape& shape, Format format, int ranks_limit = max_ranks);

} // namespace shmemctl::moe
