// The data of dispatch and combine: the values of each token, what an expert computes from them,
// and the bit-exact result that the token's source rank must get. For host and device.
#pragma once

#include <cstdint>

#include "src/base/host_device.h"
#include "src/model/moe/number_formats.h"
#include "src/model/moe/plan.h"
#include "src/model/moe/shape.h"

namespace shmemctl::moe {

/// Mixes all bits of a word into all bits.
SHMEMCTL_HOST_DEVICE constexpr std::uint32_t mixed(std::uint32_t word) {
  word ^= word >> 16;
  word *= 0x7feb352dU;
  word ^= word >> 15;
  word *= 0x846ca68bU;
  return word ^ word >> 16;
}

/// Identifies the row of a token of a rank in a run.
SHMEMCTL_HOST_DEVICE constexpr std::uint32_t row_key(std::uint32_t seed, std::int32_t rank,
                                                     std::int32_t token) {
  const std::uint32_t of_rank = mixed(seed + 0x9e3779b9U * static_cast<std::uint32_t>(rank + 1));
  return mixed(of_rank ^ (static_cast<std::uint32_t>(token) + 0x85ebca6bU));
}

/// Word `index` (two channels, the lower one in the lower half) of a row: finite BF16 values of
/// both signs, with magnitudes from 2^-7 to below 2.
SHMEMCTL_HOST_DEVICE constexpr std::uint32_t payload_word(std::uint32_t key, std::uint32_t index) {
  const std::uint32_t hash = mixed(key + 0x9e3779b9U * (index + 1));
  // In each half, the mask keeps the sign, 3 bits of the exponent and the mantissa; the addition
  // makes the exponent 120 to 127.
  return (hash & 0x83ff83ffU) + 0x3c003c00U;
}
SHMEMCTL_HOST_DEVICE constexpr std::uint16_t payload_bf16(std::uint32_t key,
                                                          std::uint32_t channel) {
  return static_cast<std::uint16_t>(payload_word(key, channel / 2) >> (channel % 2 * 16));
}

/// The weight of a token's k-th choice: in (0, 1], of 24 bits.
SHMEMCTL_HOST_DEVICE inline float payload_weight(std::uint32_t key, std::int32_t k) {
  const std::uint32_t hash = mixed(key ^ (0xc2b2ae35U + static_cast<std::uint32_t>(k)));
  return static_cast<float>((hash >> 8) + 1) * 0x1p-24F;
}

/// The number of consecutive experts whose factors are all different. It is prime, so that experts
/// at a distance that is a multiple of a power of two, as most addressing errors cause, have
/// different factors, too.
inline constexpr std::int32_t different_experts = 157;
/// The factor by which expert `expert` multiplies values: +-m/16 * 2^n, m from 16 to 31, n from -2
/// to 2. A row that a wrong expert processes gives a wrong result, unless the experts' distance is
/// a multiple of 157. Products of factors and values, and sums of a token's factors, are exact.
SHMEMCTL_HOST_DEVICE constexpr float expert_factor(std::int32_t expert) {
  // 61 makes the factors of consecutive experts very different.
  const std::int32_t which = expert % different_experts * 61 % different_experts;
  const std::int32_t sixteenths = (16 + which / 10) << which / 2 % 5;
  const float magnitude = static_cast<float>(sixteenths) * 0x1p-6F;
  return (which & 1) != 0 ? -magnitude : magnitude;
}

// What a rank returns for a received row x, and what the token's source rank computes.
//
// High throughput (as DeepEP's normal kernels): one row from each rank, bf16(x * rank_factor()),
// without weights; the source rank computes bf16(bias + row of the lowest rank + ... ), in FP32, in
// rank order. Weighted (as DeepEP's low-latency kernels): a row from each expert, bf16(x *
// expert_factor()); the source rank computes bf16(w[0] * row[0] + ...), each step one fused
// multiply-add in FP32, in order of k. Partial: one row from each rank, bf16 of the weighted sum
// over its own experts; the source rank computes bf16 of the sum of these rows in rank order. High
// throughput over several nodes: the rows of each node are added in FP32 in rank order and rounded
// to BF16 before they are sent to the source rank's node, and the source rank adds the bias and the
// nodes' sums in order of nodes.

/// The factor for all experts of the token on that rank: the sum of the magnitudes of their
/// factors, with the product of their signs. It is not 0 if the rank has any of the token's
/// experts, and it has at most 14 bits, so that the order of the experts does not matter.
SHMEMCTL_HOST_DEVICE inline float rank_factor(const Shape& shape, const std::int32_t* experts,
                                              std::int32_t rank) {
  float magnitude = 0, sign = 1;
  for (std::int32_t k = 0; k < shape.top_k; ++k) {
    if (shape.local_expert(experts[k], rank) == no_expert)
      continue;
    const float factor = expert_factor(experts[k]);
    magnitude += factor < 0 ? -factor : factor;
    sign = factor < 0 ? -sign : sign;
  }
  return sign * magnitude;
}

/// bf16(x * factor): the result of an expert, or of a rank (rank_factor()), for a value.
SHMEMCTL_HOST_DEVICE inline std::uint16_t transformed(std::uint16_t x, float factor) {
  return bf16_of_float(multiply(float_of_bf16(x), factor));
}

/// High throughput: the combined value of one channel of one token. Rows that are not sent are not
/// added, not even as 0.
/// @param ranks the ranks that the token was sent to
/// @param factors rank_factor() by rank
/// @param node_ranks ranks per node; 0: all ranks are on one node
SHMEMCTL_HOST_DEVICE inline std::uint16_t combined(std::uint16_t x, RankMask ranks,
                                                   const float* factors, std::int32_t n_ranks,
                                                   float bias = 0, std::int32_t node_ranks = 0) {
  float total = bias;
  const std::int32_t group = node_ranks == 0 ? n_ranks : node_ranks;
  for (std::int32_t first = 0; first < n_ranks; first += group) {
    if (ranks_on_node(ranks, first / group, group) == 0)
      continue;
    float of_node = node_ranks == 0 ? total : 0;
    for (std::int32_t rank = first; rank < first + group; ++rank)
      if (goes_to(ranks, rank))
        of_node = add(of_node, float_of_bf16(transformed(x, factors[rank])));
    total = node_ranks == 0 ? of_node : add(total, float_of_bf16(bf16_of_float(of_node)));
  }
  return bf16_of_float(total);
}

/// Weighted: the combined value of one channel of one token.
/// @param experts the token's choices
/// @param weights the weights of the choices
SHMEMCTL_HOST_DEVICE inline std::uint16_t combined_weighted(std::uint16_t x,
                                                            const std::int32_t* experts,
                                                            const float* weights,
                                                            std::int32_t top_k) {
  float total = 0;
  for (std::int32_t k = 0; k < top_k; ++k)
    if (experts[k] >= 0)
      total =
          multiply_add(weights[k], float_of_bf16(transformed(x, expert_factor(experts[k]))), total);
  return bf16_of_float(total);
}

/// Partial: the value of one channel of the row that one rank sends back.
SHMEMCTL_HOST_DEVICE inline std::uint16_t partial_row(std::uint16_t x, const Shape& shape,
                                                      const std::int32_t* experts,
                                                      const float* weights, std::int32_t rank) {
  float total = 0;
  for (std::int32_t k = 0; k < shape.top_k; ++k)
    if (shape.local_expert(experts[k], rank) != no_expert)
      total =
          multiply_add(weights[k], float_of_bf16(transformed(x, expert_factor(experts[k]))), total);
  return bf16_of_float(total);
}
SHMEMCTL_HOST_DEVICE inline std::uint16_t combined_partial(std::uint16_t x, const Shape& shape,
                                                           const std::int32_t* experts,
                                                           const float* weights) {
  const RankMask ranks = ranks_of_token(shape, experts);
  float total = 0;
  for (std::int32_t rank = 0; rank < shape.n_ranks; ++rank)
    if (goes_to(ranks, rank))
      total = add(total, float_of_bf16(partial_row(x, shape, experts, weights, rank)));
  return bf16_of_float(total);
}

} // namespace shmemctl::moe
