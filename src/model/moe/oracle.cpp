#include "src/model/moe/oracle.h"

#include <algorithm>

namespace shmemctl::moe {

namespace {

float largest_of(const std::vector<std::uint16_t>& values, std::size_t begin) {
  float largest = 0;
  for (std::size_t i = begin; i < begin + channels_per_scale; ++i)
    largest = std::max(largest, std::fabs(float_of_bf16(values[i])));
  return largest;
}

} // namespace

std::vector<std::int32_t> row_counts(const Shape& shape, const Routing& routing) {
  const auto n = static_cast<std::size_t>(shape.n_ranks);
  std::vector<std::int32_t> counts(n * n);
  for (std::size_t source = 0; source < n; ++source)
    for (std::int32_t token = 0; token < routing[source].tokens(); ++token) {
      const RankMask ranks = ranks_of_token(shape, routing[source].choices(token));
      for (std::size_t to = 0; to < n; ++to)
        counts[source * n + to] += goes_to(ranks, static_cast<std::int32_t>(to)) ? 1 : 0;
    }
  return counts;
}

std::vector<RowSource> expected_rows(const Shape& shape, const Routing& routing,
                                     std::int32_t rank) {
  std::vector<RowSource> rows;
  for (std::int32_t source = 0; source < shape.n_ranks; ++source) {
    const RankRouting& sent = routing[static_cast<std::size_t>(source)];
    for (std::int32_t token = 0; token < sent.tokens(); ++token)
      if (goes_to(ranks_of_token(shape, sent.choices(token)), rank))
        rows.push_back({source, token});
  }
  return rows;
}

std::vector<std::int32_t> expected_expert_counts(const Shape& shape, const Routing& routing,
                                                 std::int32_t rank) {
  std::vector<std::int32_t> counts(static_cast<std::size_t>(shape.local_experts()));
  for (const RankRouting& sent : routing)
    for (const std::int32_t expert : sent.experts)
      if (const std::int32_t local = shape.local_expert(expert, rank); local != no_expert)
        ++counts[static_cast<std::size_t>(local)];
  for (std::int32_t& count : counts)
    count = aligned_count(count, shape.expert_alignment);
  return counts;
}

PackedRows expected_packed(const Shape& shape, const Routing& routing, std::int32_t rank) {
  PackedRows packed;
  packed.rows.resize(static_cast<std::size_t>(shape.local_experts()));
  for (const RowSource& row : expected_rows(shape, routing, rank)) {
    const std::int32_t* const experts =
        routing[static_cast<std::size_t>(row.rank)].choices(row.token);
    for (std::int32_t k = 0; k < shape.top_k; ++k)
      if (const std::int32_t local = shape.local_expert(experts[k], rank); local != no_expert)
        packed.rows[static_cast<std::size_t>(local)].push_back(row);
  }
  packed.offsets.push_back(0);
  for (const std::vector<RowSource>& of_expert : packed.rows)
    packed.offsets.push_back(
        packed.offsets.back() +
        aligned_count(static_cast<std::int32_t>(of_expert.size()), shape.expert_alignment));
  return packed;
}

std::vector<float> expected_weights(std::uint32_t key, std::int32_t top_k) {
  std::vector<float> weights;
  for (std::int32_t k = 0; k < top_k; ++k)
    weights.push_back(payload_weight(key, k));
  return weights;
}

std::vector<float> expected_combined_weights(const Shape& shape, const std::int32_t* experts,
                                             std::uint32_t key) {
  std::vector<float> weights = expected_weights(key, shape.top_k);
  for (std::int32_t k = 0; k < shape.top_k; ++k) {
    float& weight = weights[static_cast<std::size_t>(k)];
    weight = experts[k] < 0 ? 0 : weight_back(weight, experts[k]);
  }
  return weights;
}

std::vector<std::uint16_t> expected_values(const Shape& shape, std::uint32_t key) {
  std::vector<std::uint16_t> values(static_cast<std::size_t>(shape.hidden));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = payload_bf16(key, static_cast<std::uint32_t>(i));
  return values;
}

Fp8Row expected_fp8(const Shape& shape, std::uint32_t key, bool power_scales) {
  const std::vector<std::uint16_t> values = expected_values(shape, key);
  Fp8Row row;
  for (std::size_t begin = 0; begin < values.size(); begin += channels_per_scale) {
    const float largest = largest_of(values, begin);
    const Fp8Scale scale = power_scales ? fp8_power_scale(largest) : fp8_scale(largest);
    row.scales.push_back(scale.scale);
    for (std::size_t i = begin; i < begin + channels_per_scale; ++i)
      row.values.push_back(fp8_cast(values[i], scale));
  }
  return row;
}

std::vector<std::uint16_t> expected_read(const Shape& shape, std::uint32_t key, Format format,
                                         bool power_scales) {
  if (format == Format::bf16)
    return expected_values(shape, key);
  const Fp8Row row = expected_fp8(shape, key, power_scales);
  std::vector<std::uint16_t> read;
  for (std::size_t i = 0; i < row.values.size(); ++i)
    read.push_back(fp8_read(row.values[i], row.scales[i / channels_per_scale]));
  return read;
}

std::vector<std::uint16_t> expected_combined(const Shape& shape, const std::int32_t* experts,
                                             std::uint32_t key, Combine combine,
                                             const std::vector<std::uint16_t>& read,
                                             const std::vector<std::uint16_t>& bias,
                                             std::int32_t node_ranks) {
  const std::vector<float> weights = expected_weights(key, shape.top_k);
  const RankMask ranks = ranks_of_token(shape, experts);
  std::vector<float> factors;
  for (std::int32_t rank = 0; rank < shape.n_ranks; ++rank)
    factors.push_back(rank_factor(shape, experts, rank));
  std::vector<std::uint16_t> expected;
  expected.reserve(read.size());
  for (std::size_t i = 0; i < read.size(); ++i)
    switch (combine) {
    case Combine::rows:
      expected.push_back(combined(read[i], ranks, factors.data(), shape.n_ranks,
                                  bias.empty() ? 0 : float_of_bf16(bias[i]), node_ranks));
      break;
    case Combine::weighted:
      expected.push_back(combined_weighted(read[i], experts, weights.data(), shape.top_k));
      break;
    case Combine::partial:
      expected.push_back(combined_partial(read[i], shape, experts, weights.data()));
      break;
    }
  return expected;
}

} // namespace shmemctl::moe
