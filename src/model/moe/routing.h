// Which experts each token chooses: generated from a seed, with the same result on every machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/model/moe/shape.h"

namespace shmemctl::moe {

/// The routing of one rank: the choices of its tokens.
struct RankRouting {
  std::int32_t top_k = 1;
  /// The choices of token t begin at index t * top_k; a masked choice is no_expert.
  std::vector<std::int32_t> experts;
  std::int32_t tokens() const { return static_cast<std::int32_t>(experts.size()) / top_k; }
  const std::int32_t* choices(std::int32_t token) const {
    return experts.data() + static_cast<std::ptrdiff_t>(token) * top_k;
  }
};

/// The routing of all ranks, by rank.
using Routing = std::vector<RankRouting>;

enum class RoutingKind {
  uniform,     ///< all experts are equally likely
  zipf,        ///< weight 1/i for the i-th most popular expert; the seed decides which one that is
  one_rank,    ///< only experts of rank 0
  hot_expert,  ///< every token chooses expert 0, and further experts as in uniform
  empty_ranks, ///< only experts of ranks with even numbers: the other ranks receive no tokens
  grouped      ///< experts in groups; each token first chooses groups, then experts of these
};
const char* to_string(RoutingKind kind);
/// The names of the kinds as on the command line, in the order above.
std::vector<std::string> routing_names();
/// Throws Error (usage) with the nearest name.
RoutingKind parse_routing_kind(const std::string& name);

struct RoutingRequest {
  RoutingKind kind = RoutingKind::uniform;
  std::uint64_t seed = 1;
  std::int32_t tokens = 0; ///< tokens of each rank; shape.max_tokens is only the limit
  bool uneven = false;     ///< rank 0 has `tokens`, the last rank none, each other a random number
  bool fewer_by_rank = false;      ///< rank r has r tokens fewer, but at least one
  std::int32_t masked_percent = 0; ///< probability, in percent, that a choice becomes no_expert
  std::int32_t groups = 1, top_groups = 1; ///< groups of RoutingKind::grouped
  /// The number of this call among many calls of one model: each call has other choices, but the
  /// same number of tokens and the same popular experts. `moe` runs call 0.
  std::uint64_t step = 0;
};

/// The number of tokens of a rank: `request.tokens`, or fewer with `uneven` or `fewer_by_rank`.
std::int32_t tokens_of_rank(const Shape& shape, const RoutingRequest& request, std::int32_t rank);

/// One rank's part of make_routing(), for routings that are too large to be kept as a whole.
RankRouting make_rank_routing(const Shape& shape, const RoutingRequest& request, std::int32_t rank);

/// The choices of a token are distinct; if fewer than top_k experts are allowed, the remaining
/// choices are no_expert. Throws Error (usage) if the groups do not fit the shape, or the tokens
/// exceed the capacity.
Routing make_routing(const Shape& shape, const RoutingRequest& request);

/// FNV-1a of n_ranks, n_experts and top_k, and of the token counts and choices of all ranks: runs
/// with the same hash move the same rows.
std::uint64_t routing_hash(const Shape& shape, const Routing& routing);

/// Throws Error (usage) if a choice is not an expert of the shape, a token chooses an expert twice,
/// or a rank has more tokens than the capacity.
/// @param subject the source of the routing, for the message
void validate_routing(const Shape& shape, const Routing& routing, const std::string& subject);

} // namespace shmemctl::moe
