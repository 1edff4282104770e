// The destination of each row, computed before any row moves. For host and device; stateless.
//
// A token is sent once to each rank that has one of its experts. The rows that a rank receives are
// ordered by source rank, then by token: row = base(source, destination) + number of the source's
// earlier tokens for that destination. Both terms are sums of counts, so no two writers use the
// same row and every run gives the same order.
#pragma once

#include <cstdint>

#include "src/base/host_device.h"
#include "src/model/moe/shape.h"

namespace shmemctl::moe {

/// Bit r: the token goes to rank r.
using RankMask = std::uint64_t;

SHMEMCTL_HOST_DEVICE constexpr RankMask rank_bit(std::int32_t rank) {
  return RankMask{1} << rank;
}
SHMEMCTL_HOST_DEVICE constexpr bool goes_to(RankMask ranks, std::int32_t rank) {
  return (ranks >> rank & 1) != 0;
}
SHMEMCTL_HOST_DEVICE constexpr std::int32_t count_of_ranks(RankMask ranks) {
  std::int32_t count = 0;
  for (; ranks != 0; ranks &= ranks - 1)
    ++count;
  return count;
}
/// The i-th rank of the mask, in order; the mask has more than i.
SHMEMCTL_HOST_DEVICE constexpr std::int32_t ith_rank(RankMask ranks, std::int32_t i) {
  for (; i > 0; --i)
    ranks &= ranks - 1;
  std::int32_t rank = 0;
  while (!goes_to(ranks, rank))
    ++rank;
  return rank;
}

/// The ranks that a token goes to.
/// @param experts its `shape.top_k` choices
SHMEMCTL_HOST_DEVICE constexpr RankMask ranks_of_token(const Shape& shape,
                                                       const std::int32_t* experts) {
  const std::int32_t local = shape.local_experts();
  RankMask ranks = 0;
  for (std::int32_t k = 0; k < shape.top_k; ++k)
    if (experts[k] >= 0)
      ranks |= rank_bit(experts[k] / local);
  return ranks;
}

/// The first row that `source` fills on `destination`.
/// @param counts [source][destination], row major
SHMEMCTL_HOST_DEVICE constexpr std::int32_t base_of(const std::int32_t* counts,
                                                    std::int32_t n_ranks, std::int32_t source,
                                                    std::int32_t destination) {
  std::int32_t base = 0;
  for (std::int32_t lower = 0; lower < source; ++lower)
    base += counts[lower * n_ranks + destination];
  return base;
}
/// The rows that `destination` receives.
SHMEMCTL_HOST_DEVICE constexpr std::int32_t
rows_of(const std::int32_t* counts, std::int32_t n_ranks, std::int32_t destination) {
  return base_of(counts, n_ranks, n_ranks, destination);
}

/// The token count of an expert, rounded up to a multiple of the alignment.
SHMEMCTL_HOST_DEVICE constexpr std::int32_t aligned_count(std::int32_t count,
                                                          std::int32_t alignment) {
  return (count + alignment - 1) / alignment * alignment;
}

// Low latency: no counts are exchanged before the rows. Each source has `max_tokens` slots of its
// own on each destination, in two buffers that the calls use alternately. Call n + 2 overwrites the
// buffer of call n. By then the reader of that buffer has finished call n, because no rank begins
// call n + 2 before the reader has begun call n + 1.

SHMEMCTL_HOST_DEVICE constexpr std::int32_t buffer_of_epoch(std::uint64_t epoch) {
  return static_cast<std::int32_t>(epoch % 2);
}
/// The slot in a destination's buffer of the source's `index`-th token for this destination.
SHMEMCTL_HOST_DEVICE constexpr std::int32_t fixed_slot(const Shape& shape, std::int32_t source,
                                                       std::int32_t index) {
  return source * shape.max_tokens + index;
}

// Packed by expert (low latency, on request): the rows of each expert of a rank are contiguous.
// Experts are in order, and each begins at a multiple of the alignment. The rows of an expert are
// ordered by source rank, then token. offsets[e] = sum of aligned_count() of the experts before e.

/// The most rows that a rank can have in this layout.
SHMEMCTL_HOST_DEVICE constexpr std::int64_t max_packed_rows(const Shape& shape) {
  const std::int32_t local = shape.local_experts();
  const std::int64_t rows = std::int64_t{shape.n_ranks} * shape.max_tokens;
  return rows * (shape.top_k < local ? shape.top_k : local) +
         std::int64_t{local} * (shape.expert_alignment - 1);
}

// A count and its flag in one word: the epoch of its call is stored with it, so that nothing has to
// be zeroed between calls. Epochs begin at 1.

SHMEMCTL_HOST_DEVICE constexpr std::uint64_t count_word(std::uint64_t epoch, std::int32_t count) {
  return epoch << 32 | static_cast<std::uint32_t>(count);
}
SHMEMCTL_HOST_DEVICE constexpr bool has_come(std::uint64_t word, std::uint64_t epoch) {
  return static_cast<std::uint32_t>(word >> 32) == static_cast<std::uint32_t>(epoch);
}
SHMEMCTL_HOST_DEVICE constexpr std::int32_t count_of(std::uint64_t word) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(word));
}

// Internode: the ranks of a node have consecutive numbers, and a token is sent once to each node
// that has one of its experts, to the rank with the sender's local index.

SHMEMCTL_HOST_DEVICE constexpr std::int32_t node_of(std::int32_t rank, std::int32_t node_ranks) {
  return rank / node_ranks;
}
/// The rank on `node` with the local index of `rank`.
SHMEMCTL_HOST_DEVICE constexpr std::int32_t rail_of(std::int32_t rank, std::int32_t node,
                                                    std::int32_t node_ranks) {
  return node * node_ranks + rank % node_ranks;
}
/// The bits of the node's ranks; bit 0 is the node's first rank.
SHMEMCTL_HOST_DEVICE constexpr RankMask ranks_on_node(RankMask ranks, std::int32_t node,
                                                      std::int32_t node_ranks) {
  const RankMask all = node_ranks >= 64 ? ~RankMask{0} : rank_bit(node_ranks) - 1;
  return ranks >> (node * node_ranks) & all;
}

} // namespace shmemctl::moe
