#include "src/moe/shape_rules.h"

#include <limits>

#include <fmt/format.h>

#include "src/base/error.h"

namespace shmemctl::moe {

namespace {

constexpr std::int32_t most_tokens = 1 << 20;
constexpr std::int32_t most_hidden = 1 << 20;
constexpr std::int32_t most_experts = 1 << 16;

/// "7040 or 7168": the multiples of `of` around a value that is none.
std::string multiples_around(std::int32_t value, std::int32_t of) {
  const std::int32_t below = value / of * of;
  return below < of ? fmt::format("{}", of) : fmt::format("{} or {}", below, below + of);
}

std::optional<BrokenRule> outside(const std::string& what, std::int32_t value, std::int32_t least,
                                  std::int32_t most, const std::string& why) {
  if (value >= least && value <= most)
    return std::nullopt;
  return BrokenRule{what, fmt::format("must be from {} to {}{}", least, most, why),
                    fmt::format("{}", value), fmt::format("{}", value < least ? least : most)};
}

std::optional<BrokenRule> broken_hidden(const Shape& shape, Format format) {
  if (auto broken = outside("hidden", shape.hidden, 8, most_hidden, ""))
    return broken;
  if (format == Format::fp8 && shape.hidden % channels_per_scale != 0)
    return BrokenRule{"hidden", "must be a multiple of 128 with fp8: 128 channels share a scale",
                      fmt::format("{}", shape.hidden),
                      multiples_around(shape.hidden, channels_per_scale)};
  if (shape.hidden % 8 != 0)
    return BrokenRule{"hidden", "must be a multiple of 8: rows are moved in pieces of 16 bytes",
                      fmt::format("{}", shape.hidden), multiples_around(shape.hidden, 8)};
  return std::nullopt;
}

std::optional<BrokenRule> broken_experts(const Shape& shape) {
  if (auto broken = outside("num-experts", shape.n_experts, 1, most_experts, ""))
    return broken;
  if (shape.n_experts % shape.n_ranks != 0)
    return BrokenRule{
        "num-experts",
        fmt::format("must be a multiple of the {} ranks, which hold equally many", shape.n_ranks),
        fmt::format("{}", shape.n_experts), multiples_around(shape.n_experts, shape.n_ranks)};
  return outside(
      "num-topk", shape.top_k, 1, shape.n_experts < max_top_k ? shape.n_experts : max_top_k,
      fmt::format(" with {} experts: a token chooses each at most once", shape.n_experts));
}

} // namespace

std::optional<BrokenRule> broken_rule(const Shape& shape, Format format, int ranks_limit) {
  if (auto broken = outside("ranks", shape.n_ranks, 1, ranks_limit, ""))
    return broken;
  if (auto broken = broken_experts(shape))
    return broken;
  if (auto broken = broken_hidden(shape, format))
    return broken;
  if (auto broken = outside("num-tokens", shape.max_tokens, 0, most_tokens, ""))
    return broken;
  return outside("expert-alignment", shape.expert_alignment, 1, 1 << 16, "");
}

Error error_of(const BrokenRule& broken) {
  return {ExitCode::usage, broken.what, "check the shape of the dispatch",
          fmt::format("{} {} (it is {})", broken.what, broken.rule, broken.found),
          fmt::format("nearest legal value: {}", broken.nearest)};
}

void validate(const Shape& shape, Format format, int ranks_limit) {
  if (const auto broken = broken_rule(shape, format, ranks_limit))
    throw error_of(*broken);
}

} // namespace shmemctl::moe
