// Which experts each token chooses: made from a seed, the same on every machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/model/moe/shape.h"

namespace shmemctl::moe {

/// What one rank sends: its tokens' choices.
struct RankRouting {
  std::int32_t top_k = 1;
  /// Experts of token t from t * top_k on; no_expert where masked.
  std::vector<std::int32_t> experts;
  std::int32_t tokens() const { return static_cast<std::int32_t>(experts.size()) / top_k; }
  const std::int32_t* choices(std::int32_t token) const {
    return experts.data() + static_cast<std::ptrdiff_t>(token) * top_k;
  }
};

/// One rank's routing after the other's.
using Routing = std::vector<RankRouting>;

enum class RoutingKind {
  uniform,     ///< every expert alike
  zipf,        ///< the i-th most popular expert as 1/i; the seed decides which expert that is
  one_rank,    ///< only experts of rank 0
  hot_expert,  ///< every token chooses expert 0, and further experts as in uniform
  empty_ranks, ///< ranks with odd numbers get nothing
  grouped      ///< experts in groups; each token first chooses groups, then experts of these
};
const char* to_string(RoutingKind kind);
/// Their names as on the command line, in the order above.
std::vector<std::string> routing_names();
/// Throws Error (usage) with the nearest name.
RoutingKind parse_routing_kind(const std::string& name);

struct RoutingRequest {
  RoutingKind kind = RoutingKind::uniform;
  std::uint64_t seed = 1;
  std::int32_t tokens = 0; ///< tokens of each rank; shape.max_tokens is only the limit
  bool uneven = false; ///< rank 0 has all `tokens`, the last rank none, the others numbers between
  bool fewer_by_rank = false;              ///< rank r has r tokens fewer, but one at least
  std::int32_t masked_percent = 0;         ///< percentage of the choices that become no_expert
  std::int32_t groups = 1, top_groups = 1; ///< groups of RoutingKind::grouped
  /// Which of many calls of the same model: other choices, but as many tokens and the same experts
  /// popular. Call 0 is what `moe` runs.
  std::uint64_t step = 0;
};

/// Tokens of a rank: all of `request.tokens` but with `uneven` or `fewer_by_rank`.
std::int32_t tokens_of_rank(const Shape& shape, const RoutingRequest& request, std::int32_t rank);

/// One rank's part of make_routing(), for routings that are too large to be kept whole.
RankRouting make_rank_routing(const Shape& shape, const RoutingRequest& request, std::int32_t rank);

/// Every token's choices are distinct; where fewer experts are allowed than it should choose, the
/// rest are no_expert. Throws Error (usage) if groups do not fit the shape, or tokens the capacity.
Routing make_routing(const Shape& shape, const RoutingRequest& request);

/// FNV-1a of the shape's part of it and of all choices: runs with the same hash move the same rows.
std::uint64_t routing_hash(const Shape& shape, const Routing& routing);

/// Throws Error (usage) if a choice is no expert of the shape, a token chooses one twice, or a rank
/// has more tokens than the capacity.
/// @param subject whose routing it is, for the message
void validate_routing(const Shape& shape, const Routing& routing, const std::string& subject);

} // namespace shmemctl::moe
