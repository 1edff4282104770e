// The oracle: the expected results of dispatch and combine, computed on the host from the routing
// of all ranks. The results of the host's and of the GPU's implementation are compared with it.
#pragma once

#include <cstdint>
#include <vector>

#include "src/model/moe/payload.h"
#include "src/model/moe/routing.h"
#include "src/model/moe/shape.h"

namespace shmemctl::moe {

/// Where a received row comes from.
struct RowSource {
  std::int32_t rank, token;
  bool operator==(const RowSource& other) const {
    return rank == other.rank && token == other.token;
  }
};

/// counts[source * n_ranks + destination]: the number of rows that `source` sends to `destination`.
std::vector<std::int32_t> row_counts(const Shape& shape, const Routing& routing);

/// The rows that `rank` receives, by source rank, then token.
std::vector<RowSource> expected_rows(const Shape& shape, const Routing& routing, std::int32_t rank);

/// For each local expert of `rank`, the number of received tokens that chose it, rounded up to the
/// shape's alignment.
std::vector<std::int32_t> expected_expert_counts(const Shape& shape, const Routing& routing,
                                                 std::int32_t rank);

/// The rows of a rank packed by expert (plan.h).
struct PackedRows {
  std::vector<std::vector<RowSource>> rows; ///< by local expert
  std::vector<std::int32_t> offsets;        ///< by local expert, and the end of the last one
};
PackedRows expected_packed(const Shape& shape, const Routing& routing, std::int32_t rank);

/// A token's weights.
/// @param key row_key() of the token
std::vector<float> expected_weights(std::uint32_t key, std::int32_t top_k);

/// The weight that a rank returns for a choice of one of its own experts, if combine returns the
/// top-k weights (high throughput); it returns 0 for other choices. The token's source rank adds
/// the returned weights in FP32, in rank order within a node, then in order of nodes; all but one
/// of them are 0.
SHMEMCTL_HOST_DEVICE inline float weight_back(float weight, std::int32_t expert) {
  return multiply(weight, expert_factor(expert));
}
/// The expected combined weights of a token; 0 for a masked expert.
std::vector<float> expected_combined_weights(const Shape& shape, const std::int32_t* experts,
                                             std::uint32_t key);

/// A token's row on its source rank, in BF16.
std::vector<std::uint16_t> expected_values(const Shape& shape, std::uint32_t key);
/// A row cast to FP8, and its scales.
struct Fp8Row {
  std::vector<std::uint8_t> values;
  std::vector<float> scales;
};
Fp8Row expected_fp8(const Shape& shape, std::uint32_t key, bool power_scales);
/// The row as an expert reads it, in BF16: after the conversion to and from FP8 if `format` is fp8.
std::vector<std::uint16_t> expected_read(const Shape& shape, std::uint32_t key, Format format,
                                         bool power_scales);

/// Which model the combine follows: see payload.h.
enum class Combine : std::int32_t {
  rows,     ///< high throughput: unweighted, one row per rank
  weighted, ///< low latency: one row per expert, weighted at the source rank
  partial   ///< one weighted row per rank
};

/// The expected result of a token, if the experts read the row as expected_read() says.
/// @param bias for Combine::rows, by channel; empty: no bias
/// @param node_ranks for Combine::rows: the ranks per node; 0: all ranks are on one node
std::vector<std::uint16_t> expected_combined(const Shape& shape, const std::int32_t* experts,
                                             std::uint32_t key, Combine combine,
                                             const std::vector<std::uint16_t>& read,
                                             const std::vector<std::uint16_t>& bias = {},
                                             std::int32_t node_ranks = 0);

} // namespace shmemctl::moe
