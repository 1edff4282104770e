#include "src/model/moe/routing.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>

#include <fmt/format.h>

#include "src/base/error.h"
#include "src/base/hash.h"
#include "src/base/text.h"

namespace shmemctl::moe {

namespace {

constexpr std::array<const char*, 6> kind_names{"uniform",    "zipf",        "one-rank",
                                                "hot-expert", "empty-ranks", "grouped"};

std::uint64_t scattered(std::uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
  x = (x ^ x >> 27) * 0x94d049bb133111ebU;
  return x ^ x >> 31;
}

/// SplitMix64: uses integers only, so that every machine draws the same numbers.
class Draws {
public:
  static constexpr std::uint64_t step = 0x9e3779b97f4a7c15U;
  explicit Draws(std::uint64_t seed) : state_(seed) {}

  /// A random number from 0 to limit - 1.
  std::uint64_t below(std::uint64_t limit) {
    state_ += step;
    return (scattered(state_) >> 32) * limit >> 32; // limits are far below 2^32
  }

private:
  std::uint64_t state_;
};

/// Moves `wanted` random entries of `from` to its front. Works with any order of `from`, so the
/// order is not restored.
void draw_to_front(std::vector<std::int32_t>& from, std::size_t wanted, Draws& draws) {
  for (std::size_t i = 0; i < wanted; ++i)
    std::swap(from[i], from[i + draws.below(from.size() - i)]);
}

/// Draws a rank's choices, token by token.
class Chooser {
public:
  Chooser(const Shape& shape, const RoutingRequest& request, std::uint64_t seed)
      : shape_(shape), request_(request), draws_(seed),
        all_(static_cast<std::size_t>(shape.n_experts)) {
    std::iota(all_.begin(), all_.end(), 0);
    if (request.kind == RoutingKind::one_rank)
      all_.resize(static_cast<std::size_t>(shape.local_experts()));
    if (request.kind == RoutingKind::hot_expert)
      all_.erase(all_.begin());
    if (request.kind == RoutingKind::empty_ranks)
      all_.erase(std::remove_if(all_.begin(), all_.end(),
                                [&](std::int32_t e) { return shape.rank_of_expert(e) % 2 == 1; }),
                 all_.end());
    if (request.kind == RoutingKind::zipf)
      make_popularity();
    groups_.resize(static_cast<std::size_t>(request.groups));
    std::iota(groups_.begin(), groups_.end(), 0);
  }

  void next(std::vector<std::int32_t>& out) {
    const std::size_t begin = out.size();
    switch (request_.kind) {
    case RoutingKind::zipf:
      by_popularity(out);
      break;
    case RoutingKind::hot_expert:
      out.push_back(0);
      take(all_, shape_.top_k - 1, out);
      break;
    case RoutingKind::grouped:
      by_group(out);
      break;
    default:
      take(all_, shape_.top_k, out);
    }
    out.resize(begin + static_cast<std::size_t>(shape_.top_k), no_expert);
    for (std::size_t i = begin; i < out.size(); ++i)
      if (request_.masked_percent > 0 &&
          draws_.below(100) < static_cast<std::uint64_t>(request_.masked_percent))
        out[i] = no_expert;
  }

private:
  void take(std::vector<std::int32_t>& from, std::int32_t wanted, std::vector<std::int32_t>& out) {
    const std::size_t n = std::min(from.size(), static_cast<std::size_t>(wanted));
    draw_to_front(from, n, draws_);
    out.insert(out.end(), from.begin(), from.begin() + static_cast<std::ptrdiff_t>(n));
  }

  /// The popularity of each expert is the same for all ranks.
  void make_popularity() {
    Draws order(request_.seed ^ 0x7a697066U);
    draw_to_front(all_, all_.size(), order);
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < all_.size(); ++i)
      bounds_.push_back(total += (1U << 20) / (i + 1) + 1);
  }
  void by_popularity(std::vector<std::int32_t>& out) {
    const auto begin = static_cast<std::ptrdiff_t>(out.size());
    const auto full = static_cast<std::size_t>(begin) + static_cast<std::size_t>(shape_.top_k);
    const auto take_new = [&](std::int32_t expert) {
      if (out.size() < full && std::find(out.begin() + begin, out.end(), expert) == out.end())
        out.push_back(expert);
    };
    // If nearly all experts must be chosen, it would take too many draws to find the last ones:
    // after a number of tries, take the most popular of the remaining experts.
    for (int tries = 0; out.size() < full && tries < 16 * shape_.top_k; ++tries) {
      const auto found =
          std::upper_bound(bounds_.begin(), bounds_.end(), draws_.below(bounds_.back()));
      take_new(all_[static_cast<std::size_t>(found - bounds_.begin())]);
    }
    for (const std::int32_t expert : all_)
      take_new(expert);
  }

  void by_group(std::vector<std::int32_t>& out) {
    const std::int32_t size = shape_.n_experts / request_.groups;
    draw_to_front(groups_, static_cast<std::size_t>(request_.top_groups), draws_);
    std::vector<std::int32_t> allowed;
    for (std::int32_t i = 0; i < request_.top_groups; ++i)
      for (std::int32_t e = 0; e < size; ++e)
        allowed.push_back(groups_[static_cast<std::size_t>(i)] * size + e);
    take(allowed, shape_.top_k, out);
  }

  const Shape& shape_;
  const RoutingRequest& request_;
  Draws draws_;
  std::vector<std::int32_t> all_, groups_;
  std::vector<std::uint64_t> bounds_;
};

Error unfit(const std::string& problem, const std::string& fix) {
  return Error(ExitCode::usage, "routing", "", problem, fix).on_all_pes();
}

/// The nearest number of groups that divides the number of experts; preferably one that also fits
/// the choices.
std::int32_t nearest_groups(const Shape& shape, const RoutingRequest& request) {
  std::int32_t nearest = 1;
  bool suits = false;
  for (std::int32_t groups = 1; groups <= shape.n_experts; ++groups) {
    if (shape.n_experts % groups != 0)
      continue;
    const bool this_suits = request.top_groups <= groups &&
                            shape.n_experts / groups * request.top_groups >= shape.top_k;
    const bool is_nearer = std::abs(groups - request.groups) < std::abs(nearest - request.groups);
    if ((this_suits && !suits) || (this_suits == suits && is_nearer)) {
      nearest = groups;
      suits = this_suits;
    }
  }
  return nearest;
}

void check_groups(const Shape& shape, const RoutingRequest& request) {
  if (request.groups < 1 || shape.n_experts % request.groups != 0)
    throw unfit(fmt::format("{} experts cannot be divided into {} equal groups", shape.n_experts,
                            request.groups),
                fmt::format("use the nearest legal value: --num-groups {}",
                            nearest_groups(shape, request)));
  if (request.top_groups < 1 || request.top_groups > request.groups)
    throw unfit(
        fmt::format("a token cannot choose {} of {} groups", request.top_groups, request.groups),
        fmt::format("use the nearest legal value: --num-topk-groups {}",
                    std::clamp(request.top_groups, 1, request.groups)));
  const std::int32_t within = shape.n_experts / request.groups * request.top_groups;
  if (shape.top_k > within)
    throw unfit(fmt::format("{} groups have {} experts in total, fewer than the {} per token",
                            request.top_groups, within, shape.top_k),
                fmt::format("use the nearest legal value: --num-topk {}", within));
}

void check(const Shape& shape, const RoutingRequest& request) {
  if (request.tokens < 0 || request.tokens > shape.max_tokens)
    throw unfit(
        fmt::format("{} tokens exceed the capacity of {}", request.tokens, shape.max_tokens),
        fmt::format("use the nearest legal value: {}",
                    std::clamp(request.tokens, 0, shape.max_tokens)));
  if (request.kind == RoutingKind::grouped)
    check_groups(shape, request);
}

} // namespace

const char* to_string(RoutingKind kind) {
  return kind_names.at(static_cast<std::size_t>(kind));
}

std::vector<std::string> routing_names() {
  return {kind_names.begin(), kind_names.end()};
}

RoutingKind parse_routing_kind(const std::string& name) {
  for (std::size_t i = 0; i < kind_names.size(); ++i)
    if (name == kind_names[i])
      return static_cast<RoutingKind>(i);
  const auto near = nearest_spelling(name, routing_names());
  throw Error(ExitCode::usage, "--routing", "", "unknown value \"" + printable(name) + "\"",
              near ? "did you mean " + *near + "?"
                   : "choose one of " + join(routing_names(), ", ") +
                         ", or a file by a path that contains /, such as ./FILE")
      .on_all_pes();
}

std::int32_t tokens_of_rank(const Shape& shape, const RoutingRequest& request, std::int32_t rank) {
  if (request.fewer_by_rank)
    return std::min(request.tokens, std::max(1, request.tokens - rank));
  if (!request.uneven || rank == 0)
    return request.tokens;
  if (rank == shape.n_ranks - 1)
    return 0;
  Draws draws(request.seed + 0x756eU * static_cast<std::uint64_t>(rank));
  return static_cast<std::int32_t>(draws.below(static_cast<std::uint64_t>(request.tokens) + 1));
}

RankRouting make_rank_routing(const Shape& shape, const RoutingRequest& request,
                              std::int32_t rank) {
  check(shape, request);
  constexpr std::uint64_t apart = 0xd1342543de82ef95U; // odd: all 2^64 steps have different seeds
  RankRouting routing{shape.top_k, {}};
  const std::int32_t tokens = tokens_of_rank(shape, request, rank);
  routing.experts.reserve(static_cast<std::size_t>(tokens) * static_cast<std::size_t>(shape.top_k));
  // Seeds are mixed first: the sequences of adjacent seeds would otherwise be shifted by one draw.
  Chooser chooser(shape, request,
                  scattered(request.seed + Draws::step) + static_cast<std::uint64_t>(rank) +
                      request.step * apart);
  for (std::int32_t token = 0; token < tokens; ++token)
    chooser.next(routing.experts);
  return routing;
}

Routing make_routing(const Shape& shape, const RoutingRequest& request) {
  check(shape, request);
  Routing routing;
  for (std::int32_t rank = 0; rank < shape.n_ranks; ++rank)
    routing.push_back(make_rank_routing(shape, request, rank));
  return routing;
}

std::uint64_t routing_hash(const Shape& shape, const Routing& routing) {
  const auto bytes = [](const std::int32_t* values, std::size_t n) {
    return std::string_view(reinterpret_cast<const char*>(values), n * sizeof *values);
  };
  const std::array<std::int32_t, 3> head{shape.n_ranks, shape.n_experts, shape.top_k};
  std::uint64_t hash = fnv1a(bytes(head.data(), head.size()));
  for (const RankRouting& rank : routing) {
    const std::int32_t tokens = rank.tokens();
    hash = fnv1a(bytes(&tokens, 1), hash);
    hash = fnv1a(bytes(rank.experts.data(), rank.experts.size()), hash);
  }
  return hash;
}

void validate_routing(const Shape& shape, const Routing& routing, const std::string& subject) {
  for (std::size_t rank = 0; rank < routing.size(); ++rank) {
    const RankRouting& of_rank = routing[rank];
    if (of_rank.tokens() > shape.max_tokens)
      throw input_error(subject, "",
                        fmt::format("rank {} has {} tokens, more than the capacity of {}", rank,
                                    of_rank.tokens(), shape.max_tokens),
                        fmt::format("pass --num-tokens {} or more", of_rank.tokens()));
    for (std::int32_t token = 0; token < of_rank.tokens(); ++token)
      for (std::int32_t k = 0; k < shape.top_k; ++k) {
        const std::int32_t* const choices = of_rank.choices(token);
        if (choices[k] < no_expert || choices[k] >= shape.n_experts)
          throw input_error(
              subject, fmt::format("rank {}, token {}", rank, token),
              fmt::format("there is no expert {}", choices[k]),
              fmt::format("choose experts from 0 to {}, or -1 for none", shape.n_experts - 1));
        if (choices[k] != no_expert && std::find(choices, choices + k, choices[k]) != choices + k)
          throw input_error(subject, fmt::format("rank {}, token {}", rank, token),
                            fmt::format("expert {} is chosen twice", choices[k]),
                            "choose each expert once; -1 means none");
      }
  }
}

} // namespace shmemctl::moe
