// The rules for shapes that can be run, and the nearest legal value if a shape breaks one.
#pragma once

#include <optional>
#include <string>

#include "src/base/error.h"
#include "src/model/moe/shape.h"

namespace shmemctl::moe {

inline constexpr std::int32_t max_experts = 1 << 16;
inline constexpr std::int32_t max_hidden = 1 << 20;
inline constexpr std::int32_t hidden_step = 8; ///< with bf16: rows are moved in pieces of 16 bytes
inline constexpr std::int32_t tokens_limit = 1 << 20; ///< most tokens per rank
inline constexpr std::int32_t max_expert_alignment = 1 << 16;

/// A rule that a shape breaks.
struct BrokenRule {
  std::string what;    ///< "hidden", as the command line names it
  std::string rule;    ///< "must be a multiple of 128 with fp8: 128 channels share a scale"
  std::string found;   ///< "7100"
  std::string nearest; ///< the nearest legal value: "7040 or 7168"
};

/// The error (usage) to throw for a broken rule.
Error error_of(const BrokenRule& broken);

/// The expert groups of a grouped routing. The nearest legal values fit them, too; make_routing()
/// checks whether the groups fit the shape.
struct GroupRule {
  std::int32_t groups = 1, top_groups = 1;
};

/// The first rule that the shape breaks, with the nearest legal value: with that value, the shape
/// breaks no rule if all other values are legal.
/// @param ranks_limit the most ranks that the caller supports
/// @return empty if no rule is broken
std::optional<BrokenRule> broken_rule(const Shape& shape, Format format,
                                      int ranks_limit = max_ranks, const GroupRule& groups = {});
/// As broken_rule(), but only the rules of hidden, max_tokens and expert_alignment.
std::optional<BrokenRule> broken_without_ranks(const Shape& shape, Format format);
/// Throws Error (usage) if a rule is broken.
void validate(const Shape& shape, Format format, int ranks_limit = max_ranks,
              const GroupRule& groups = {});

} // namespace shmemctl::moe
