// Dispatch and combine across nodes: what lies where, and who has to do with whom. For host and
// device; no state.
//
// Ranks of a node are neighbours and map each other's memory; ranks with the same place on their
// nodes are a rail. A row crosses once for each node, along its rail, and is handed on there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/moe/high_throughput.h"
#include "kernels/moe/token_counts.h"
#include "kernels/moe/token_metadata.h"
#include "src/moe/plan.h"
#include "src/moe/shape.h"

namespace shmemctl::moe {

struct InternodeShape {
  Shape shape;
  Format format;
  std::int32_t node_ranks;       ///< ranks of a node; 1: each row goes straight to its rank
  std::int32_t chunk_rows;       ///< rows that cross in one message, with one signal
  bool combined_weights = false; ///< the weights of the choices come back with the rows

  SHMEMCTL_HOST_DEVICE constexpr std::int32_t n_nodes() const { return shape.n_ranks / node_ranks; }
  SHMEMCTL_HOST_DEVICE constexpr std::int32_t other_nodes() const { return n_nodes() - 1; }
  SHMEMCTL_HOST_DEVICE constexpr std::int32_t node_of_rank(std::int32_t rank) const {
    return node_of(rank, node_ranks);
  }
  /// The rank on `node` that has to do with `rank`.
  SHMEMCTL_HOST_DEVICE constexpr std::int32_t rail(std::int32_t rank, std::int32_t node) const {
    return rail_of(rank, node, node_ranks);
  }
  SHMEMCTL_HOST_DEVICE constexpr std::int32_t first_rank_of_node(std::int32_t rank) const {
    return node_of_rank(rank) * node_ranks;
  }
  /// Of the other nodes, the one that `at` has in `place`: 0 is the node behind it.
  SHMEMCTL_HOST_DEVICE constexpr std::int32_t peer_node(std::int32_t at, std::int32_t peer) const {
    return (at + 1 + peer) % n_nodes();
  }
  SHMEMCTL_HOST_DEVICE constexpr std::int32_t peer_index(std::int32_t at, std::int32_t node) const {
    return (node - at - 1 + n_nodes()) % n_nodes();
  }

  // Rows that cross lie by place, then in the order of tokens, and go in chunks.
  SHMEMCTL_HOST_DEVICE constexpr std::int32_t chunks() const { return chunks_of(shape.max_tokens); }
  SHMEMCTL_HOST_DEVICE constexpr std::int32_t chunks_of(std::int32_t rows) const {
    return (rows + chunk_rows - 1) / chunk_rows;
  }
  SHMEMCTL_HOST_DEVICE constexpr std::int64_t crossing_row(std::int32_t peer,
                                                           std::int32_t row) const {
    return static_cast<std::int64_t>(peer) * shape.max_tokens + row;
  }
  SHMEMCTL_HOST_DEVICE constexpr std::int64_t chunk_word(std::int32_t peer,
                                                         std::int32_t chunk) const {
    return static_cast<std::int64_t>(peer) * chunks() + chunk;
  }

  /// As a row lies with its rank.
  SHMEMCTL_HOST_DEVICE constexpr MetadataLayout record() const {
    return {shape, format == Format::fp8 ? Scales::float32 : Scales::none};
  }
  SHMEMCTL_HOST_DEVICE constexpr std::int32_t value_bytes() const {
    return shape.value_bytes(format);
  }
  /// Of a row that comes back, and of a sum of such rows as it crosses: with its weights.
  SHMEMCTL_HOST_DEVICE constexpr std::int32_t output_bytes() const { return shape.hidden * 2; }
  SHMEMCTL_HOST_DEVICE constexpr std::int32_t sum_bytes() const {
    return output_bytes() + (combined_weights ? (shape.top_k + 3) / 4 * 16 : 0);
  }
  // As it crosses: values, scales, choices (of all ranks), weights, its token, and by rank of the
  // node how many rows of its source lie there before it (-1: it does not go there).
  SHMEMCTL_HOST_DEVICE constexpr std::int32_t crossing_token() const {
    return record().scale_words + 2 * shape.top_k;
  }
  SHMEMCTL_HOST_DEVICE constexpr std::int32_t crossing_slots() const {
    return crossing_token() + 1;
  }
  SHMEMCTL_HOST_DEVICE constexpr std::int32_t crossing_words() const {
    return crossing_slots() + node_ranks;
  }
  SHMEMCTL_HOST_DEVICE constexpr std::int32_t crossing_bytes() const {
    return value_bytes() + (crossing_words() + 3) / 4 * 16;
  }

  // What each rank tells each other one: its rows by rank, its rows by node that cross, and how
  // many of its choices are of each of that rank's experts.
  SHMEMCTL_HOST_DEVICE constexpr std::int32_t columns() const { return shape.n_ranks + n_nodes(); }
  SHMEMCTL_HOST_DEVICE constexpr std::int32_t message_words() const {
    return (columns() + shape.local_experts() + 3) / 4 * 4;
  }
  SHMEMCTL_HOST_DEVICE constexpr std::int64_t message_at(std::int32_t buffer,
                                                         std::int32_t rank) const {
    return (static_cast<std::int64_t>(buffer) * shape.n_ranks + rank) * message_words();
  }
};

// A number is put into a word of another rank, and networks keep no order among puts without a
// fence: the number of this call may overtake that of the one before. So two words take turns, as
// those of barriers do (kernels/device_plan.h). Why two suffice: who puts number e + 2 has ended
// call (or notification) e + 1, for which every rank that it writes to has begun e + 1, hence ended
// e, hence seen number e in the word that is overwritten now.
SHMEMCTL_HOST_DEVICE constexpr std::int32_t turn_of_call(std::uint64_t number) {
  return static_cast<std::int32_t>(number % 2);
}

/// Of one PE, symmetric, all zeros before the first call. Written by other nodes' ranks, but for
/// what is marked "own". Words only grow, so nothing has to be zeroed.
struct RailFlags {
  /// By turn and rank: the notification whose message lies here, in the half of the same number.
  std::uint64_t counts[2][max_ranks];
  /// By turn and node: the call that the rail's rank there has begun; in both turns failed_call()
  /// (cells.h) when it has given up.
  std::uint64_t entered[2][max_ranks];
  /// Own: spent waiting for the rail's rank on that node, sums: until it had begun, and for its
  /// rows.
  std::uint64_t wait_ns[2][max_ranks];
  std::uint64_t notification; ///< own: notifications that are over
  std::uint64_t padding[15];
};

/// Where things are on this PE: symmetric memory of the GPU heap. `places` are other_nodes().
struct InternodeMemory {
  HighThroughputMemory node; ///< `cells` are those of the node's ranks; no `expert_count_flags`
  RailFlags* rails;
  std::int32_t* counts_out;   ///< [2][n_ranks][message_words]: what this rank tells
  std::int32_t* counts_in;    ///< the same: what it is told
  std::uint64_t* row_signals; ///< [places][chunks]: the call that the chunk's rows are of
  std::uint64_t* sum_signals; ///< [places][chunks]: the same of sums
  std::byte* rows_out;        ///< [places][max_tokens][crossing_bytes]
  std::byte* rows_in;         ///< the same
  std::byte* sums_out;        ///< [places][max_tokens][sum_bytes]
  std::byte* sums_in;         ///< the same
};

/// What notify finds out, in this PE's own memory.
struct InternodePlan {
  std::int32_t* slots;           ///< [tokens][n_ranks]: which of my rows there; -1: not sent there
  std::int32_t* counts;          ///< [n_ranks][n_ranks]: rows by source and destination
  std::int32_t* bases;           ///< [n_ranks][n_ranks]: the source's first row at the destination
  std::int32_t* expert_counts;   ///< [local experts]: tokens that I receive, rounded up
  std::int32_t* crossing_slots;  ///< [tokens][n_nodes]: which of my rows that cross to that node
  std::int32_t* crossing_tokens; ///< [n_nodes][max_tokens]: the tokens of those rows
  std::int32_t* crossing_counts; ///< [n_ranks][n_nodes]: rows of each rank that cross to each node
};

/// Notify's shared memory with `threads`, in words: counts by column, and choices by expert.
SHMEMCTL_HOST_DEVICE constexpr std::int32_t internode_notify_words(const InternodeShape& shape,
                                                                   std::int32_t threads) {
  return token_count_words(shape.columns(), threads) + shape.shape.n_experts;
}
inline constexpr int internode_notify_blocks = 1;
inline constexpr int min_internode_notify_threads = 32; ///< it takes fewer where experts are many
/// Of all ranks, whose counts notify's one block holds.
constexpr std::int32_t max_internode_experts(const InternodeShape& shape) {
  return static_cast<std::int32_t>((max_shared_bytes - notify_own_shared_bytes) /
                                   sizeof(std::int32_t)) -
         token_count_words(shape.columns(), min_internode_notify_threads);
}

struct InternodeNotify {
  InternodeShape shape;
  InternodeMemory memory;
  InternodePlan plan;
  std::int32_t tokens;
  const std::int32_t* experts; ///< [tokens][top_k]
};
std::string launch_internode_notify(const DeviceJob& job, const InternodeNotify& arguments,
                                    void* stream);

struct InternodeDispatch {
  InternodeShape shape;
  InternodeMemory memory;
  InternodePlan plan;
  std::int32_t tokens;
  const std::byte* values;     ///< [tokens][value_bytes], aligned to 16 bytes
  const float* scales;         ///< [tokens][scales_per_row]; FP8 only
  const std::int32_t* experts; ///< [tokens][top_k]
  const float* weights;        ///< [tokens][top_k]
  int sms;
};
/// The plan may be that of an earlier call with the same routing.
std::string launch_internode_dispatch(const DeviceJob& job, const InternodeDispatch& arguments,
                                      void* stream);

struct InternodeCombine {
  InternodeShape shape;
  InternodeMemory memory;
  InternodePlan plan;
  std::int32_t tokens;
  const std::uint16_t* bias; ///< [tokens][hidden] BF16, or nullptr
  std::uint16_t* results;    ///< [tokens][hidden] BF16
  int sms;
  // As of CombineArguments; where InternodeShape::combined_weights.
  const float* output_weights = nullptr;
  float* combined_weights = nullptr;
};
/// For each of my tokens: bf16(bias + the nodes' sums), each of them bf16(its ranks' outputs).
/// Weights are added up in the same order, in FP32.
std::string launch_internode_combine(const DeviceJob& job, const InternodeCombine& arguments,
                                     void* stream);

} // namespace shmemctl::moe
