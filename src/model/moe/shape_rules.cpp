#include "src/model/moe/shape_rules.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "src/base/error.h"

namespace shmemctl::moe {

namespace {

/// "7040 or 7168": the multiples of `of` from `least` to `most` that are nearest to a value that is
/// not one.
/// @param least, most must be multiples of `of`
std::string multiples_around(std::int32_t value, std::int32_t of, std::int32_t least,
                             std::int32_t most) {
  if (value <= least || value >= most)
    return fmt::format("{}", value <= least ? least : most);
  const std::int32_t below = value / of * of;
  return fmt::format("{} or {}", below, below + of);
}

std::optional<BrokenRule> outside(const std::string& what, std::int32_t value, std::int32_t least,
                                  std::int32_t most, const std::string& why) {
  if (value >= least && value <= most)
    return std::nullopt;
  return BrokenRule{what, fmt::format("must be from {} to {}{}", least, most, why),
                    fmt::format("{}", value), fmt::format("{}", value < least ? least : most)};
}

std::optional<BrokenRule> broken_hidden(const Shape& shape, Format format) {
  const std::int32_t step = format == Format::fp8 ? channels_per_scale : hidden_step;
  const bool in_range = shape.hidden >= step && shape.hidden <= max_hidden;
  if (in_range && shape.hidden % step == 0)
    return std::nullopt;
  std::string rule = format == Format::fp8
                         ? "must be a multiple of 128 with fp8: 128 channels share a scale"
                         : "must be a multiple of 8: rows are moved in pieces of 16 bytes";
  if (!in_range)
    rule += fmt::format("; from {} to {}", step, max_hidden);
  return BrokenRule{"hidden", rule, fmt::format("{}", shape.hidden),
                    multiples_around(shape.hidden, step, step, max_hidden)};
}

/// Checks the range of the number of experts, and that it is a multiple of the ranks. The nearest
/// value is also a multiple of the groups, and enough for a token's distinct choices.
std::optional<BrokenRule> broken_experts(const Shape& shape, const GroupRule& groups) {
  const auto round_up = [](std::int64_t value, std::int64_t of) {
    return (value + of - 1) / of * of;
  };
  // Invalid values of other flags are reported elsewhere.
  const std::int64_t of_groups =
      groups.groups >= 1 && groups.groups <= max_experts ? groups.groups : 1;
  const bool top_k_is_legal = shape.top_k >= 1 && shape.top_k <= max_top_k;
  std::int64_t step = std::lcm<std::int64_t>(shape.n_ranks, of_groups);
  if (step > max_experts)
    step = shape.n_ranks;
  std::int64_t least = top_k_is_legal ? shape.top_k : 1;
  if (top_k_is_legal && groups.top_groups >= 1 && groups.top_groups <= of_groups)
    least = round_up(shape.top_k, groups.top_groups) / groups.top_groups * of_groups;
  least = round_up(least, step);
  const std::int64_t most = max_experts / step * step;
  const auto nearest = [&] {
    return multiples_around(shape.n_experts, static_cast<std::int32_t>(step),
                            static_cast<std::int32_t>(std::min(least, most)),
                            static_cast<std::int32_t>(most));
  };
  if (shape.n_experts < 1 || shape.n_experts > max_experts)
    return BrokenRule{"num-experts", fmt::format("must be from 1 to {}", max_experts),
                      fmt::format("{}", shape.n_experts), nearest()};
  if (shape.n_experts % shape.n_ranks != 0)
    return BrokenRule{"num-experts",
                      fmt::format("must be a multiple of the {} ranks", shape.n_ranks),
                      fmt::format("{}", shape.n_experts), nearest()};
  return std::nullopt;
}

std::optional<BrokenRule> broken_top_k(const Shape& shape, const GroupRule& groups) {
  std::int32_t most = std::min(shape.n_experts, max_top_k);
  const bool grouped = groups.groups >= 1 && shape.n_experts % groups.groups == 0 &&
                       groups.top_groups >= 1 && groups.top_groups <= groups.groups;
  std::string why =
      fmt::format(" with {} experts: a token chooses each at most once", shape.n_experts);
  if (const std::int32_t within =
          grouped ? shape.n_experts / groups.groups * groups.top_groups : most;
      within < most && (shape.top_k > max_top_k || shape.top_k > shape.n_experts)) {
    most = within;
    why = fmt::format(" with {} of {} groups, which hold {} experts", groups.top_groups,
                      groups.groups, within);
  }
  return outside("num-topk", shape.top_k, 1, most, why);
}

} // namespace

std::optional<BrokenRule> broken_rule(const Shape& shape, Format format, int ranks_limit,
                                      const GroupRule& groups) {
  if (auto broken = outside("ranks", shape.n_ranks, 1, ranks_limit, ""))
    return broken;
  if (auto broken = broken_experts(shape, groups))
    return broken;
  if (auto broken = broken_top_k(shape, groups))
    return broken;
  return broken_without_ranks(shape, format);
}

std::optional<BrokenRule> broken_without_ranks(const Shape& shape, Format format) {
  if (auto broken = broken_hidden(shape, format))
    return broken;
  if (auto broken = outside("num-tokens", shape.max_tokens, 0, tokens_limit, ""))
    return broken;
  return outside("expert-alignment", shape.expert_alignment, 1, max_expert_alignment, "");
}

Error error_of(const BrokenRule& broken) {
  return Error(ExitCode::usage, broken.what, "",
               fmt::format("{} (it is {})", broken.rule, broken.found),
               fmt::format("use the nearest legal value: {}", broken.nearest))
      .on_all_pes();
}

void validate(const Shape& shape, Format format, int ranks_limit, const GroupRule& groups) {
  if (const auto broken = broken_rule(shape, format, ranks_limit, groups))
    throw error_of(*broken);
}

} // namespace shmemctl::moe
