// Routings of the tests: uneven, empty, masked, hot.
#pragma once

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "src/model/moe/routing.h"

namespace shmemctl::test {

/// Uniform choices of different experts, the same on every rank that asks.
inline moe::Routing uniform_routing(const moe::Shape& shape, std::int32_t tokens, unsigned seed) {
  moe::Routing routing(static_cast<std::size_t>(shape.n_ranks));
  std::mt19937 random(seed);
  for (moe::RankRouting& sent : routing) {
    sent.top_k = shape.top_k;
    std::vector<std::int32_t> experts(static_cast<std::size_t>(shape.n_experts));
    for (std::size_t i = 0; i < experts.size(); ++i)
      experts[i] = static_cast<std::int32_t>(i);
    for (std::int32_t token = 0; token < tokens; ++token)
      for (std::size_t k = 0; k < static_cast<std::size_t>(shape.top_k); ++k) {
        std::swap(experts[k], experts[k + random() % (experts.size() - k)]);
        sent.experts.push_back(experts[k]);
      }
  }
  return routing;
}

struct NamedRouting {
  std::string name;
  moe::Routing routing;
};

/// `choose(rank, token, k, random)` gives an expert, taken as it is if it is not already chosen;
/// no_expert masks.
using ChooseExpert =
    std::function<std::int32_t(std::int32_t, std::int32_t, std::int32_t, std::mt19937&)>;

inline moe::Routing make_routing(const moe::Shape& shape, const std::vector<std::int32_t>& tokens,
                                 unsigned seed, const ChooseExpert& choose) {
  moe::Routing routing(static_cast<std::size_t>(shape.n_ranks));
  std::mt19937 random(seed);
  for (std::int32_t rank = 0; rank < shape.n_ranks; ++rank) {
    moe::RankRouting& sent = routing[static_cast<std::size_t>(rank)];
    sent.top_k = shape.top_k;
    for (std::int32_t token = 0; token < tokens[static_cast<std::size_t>(rank)]; ++token) {
      std::vector<bool> taken(static_cast<std::size_t>(shape.n_experts));
      for (std::int32_t k = 0; k < shape.top_k; ++k) {
        std::int32_t expert = choose(rank, token, k, random);
        while (expert >= 0 && taken[static_cast<std::size_t>(expert)])
          expert = (expert + 1) % shape.n_experts;
        if (expert >= 0)
          taken[static_cast<std::size_t>(expert)] = true;
        sent.experts.push_back(expert);
      }
    }
  }
  return routing;
}

/// Each kind once, with at most shape.max_tokens tokens per rank.
inline std::vector<NamedRouting> all_routings(const moe::Shape& shape) {
  const auto n = static_cast<std::size_t>(shape.n_ranks);
  const std::int32_t most = shape.max_tokens, experts = shape.n_experts;
  const std::vector<std::int32_t> full(n, most), one(n, 1);
  std::vector<std::int32_t> uneven(n), only_last(n, 0);
  for (std::size_t rank = 0; rank < n; ++rank)
    uneven[rank] = most * static_cast<std::int32_t>(rank) / shape.n_ranks / 2 + 7 % (most + 1);
  only_last.back() = most;
  const auto uniform = [experts](auto, auto, auto, std::mt19937& random) {
    return static_cast<std::int32_t>(random() % static_cast<unsigned>(experts));
  };
  const auto last_rank = [&shape](auto, auto, auto, std::mt19937& random) {
    return shape.first_expert(shape.n_ranks - 1) +
           static_cast<std::int32_t>(random() % static_cast<unsigned>(shape.local_experts()));
  };
  const auto hot = [uniform](std::int32_t rank, std::int32_t token, std::int32_t k,
                             std::mt19937& random) {
    return k == 0 ? 1 : uniform(rank, token, k, random);
  };
  const auto masked = [uniform](std::int32_t rank, std::int32_t token, std::int32_t k,
                                std::mt19937& random) {
    return token % 5 == 0 || random() % 3 == 0 ? moe::no_expert : uniform(rank, token, k, random);
  };
  std::vector<NamedRouting> routings = {
      {"uniform", make_routing(shape, full, 1, uniform)},
      {"uneven tokens", make_routing(shape, uneven, 2, uniform)},
      {"tokens of one rank only", make_routing(shape, only_last, 3, uniform)},
      {"one token each", make_routing(shape, one, 4, uniform)},
      {"no tokens", make_routing(shape, std::vector<std::int32_t>(n, 0), 5, uniform)},
      {"all to one rank", make_routing(shape, full, 6, last_rank)},
      {"a hot expert", make_routing(shape, full, 7, hot)},
      {"masked choices", make_routing(shape, full, 8, masked)}};
  // As the tool makes them.
  for (const moe::RoutingKind kind :
       {moe::RoutingKind::zipf, moe::RoutingKind::empty_ranks, moe::RoutingKind::grouped}) {
    moe::RoutingRequest request;
    request.kind = kind;
    request.tokens = most;
    request.groups = shape.n_ranks;
    request.top_groups = (shape.n_ranks + 1) / 2;
    routings.push_back({to_string(kind), moe::make_routing(shape, request)});
  }
  return routings;
}

} // namespace shmemctl::test
