// High-throughput dispatch and combine across nodes, for many tokens. No CUDA header.
//
// Ranks of a node are consecutive and map each other's memory. The ranks with the same local index
// on all nodes form a rail.
//
// Dispatch: rows for ranks of the source's node are stored into their final positions. A row for
// another node crosses the network once, packed into chunks with one signal each, to the rank of
// the same rail there, which forwards it to its destination ranks as chunks arrive. Combine: that
// rank adds up the outputs of its node in rank order, rounds, and sends the sum back; the source
// rank adds the sums of the nodes in node order.
//
// Data crosses nodes by the device API's put with signal: by loads and stores, the proxy or IBGDA,
// whichever the job uses. Launchers return "" or why the launch failed; they do not wait. All ranks
// launch the same calls in the same order, each on one stream. A wait that takes longer than
// job.timeout_ns fills the job's report, which names the rank; what holds then is described in
// high_throughput.h, and a failure is also stored to the ranks of the same rail.
//
// Blocks of a dispatch or combine wait for data from blocks of other ranks, which wait for them in
// turn, so all blocks of a launch have to be resident. A launch of more blocks than the GPU holds
// at a time is refused; the message names the SMs that it needs and those available
// (launch_config.h). Other kernels on the GPU merely delay a launch, provided that they end by
// themselves. PEs that share a GPU divide its SMs among their launches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/moe/high_throughput.h"
#include "kernels/moe/token_counts.h"
#include "kernels/moe/token_metadata.h"
#include "src/model/moe/plan.h"
#include "src/model/moe/shape.h"

namespace shmemctl::moe {

struct InternodeShape {
  Shape shape;
  Format format;
  std::int32_t node_ranks;       ///< ranks per node; 1: each row is sent straight to its rank
  std::int32_t chunk_rows;       ///< rows per internode message, with one signal
  bool combined_weights = false; ///< combine also returns the top-k weights

  SHMEMCTL_HOST_DEVICE constexpr std::int32_t n_nodes() const { return shape.n_ranks / node_ranks; }
  SHMEMCTL_HOST_DEVICE constexpr std::int32_t other_nodes() const { return n_nodes() - 1; }
  SHMEMCTL_HOST_DEVICE constexpr std::int32_t node_of_rank(std::int32_t rank) const {
    return node_of(rank, node_ranks);
  }
  /// The rank on `node` that is on the same rail as `rank`.
  SHMEMCTL_HOST_DEVICE constexpr std::int32_t rail(std::int32_t rank, std::int32_t node) const {
    return rail_of(rank, node, node_ranks);
  }
  SHMEMCTL_HOST_DEVICE constexpr std::int32_t first_rank_of_node(std::int32_t rank) const {
    return node_of_rank(rank) * node_ranks;
  }
  /// Node `at` numbers the other nodes as peers 0, 1, ..., starting with the next higher node;
  /// after the last node comes node 0.
  SHMEMCTL_HOST_DEVICE constexpr std::int32_t peer_node(std::int32_t at, std::int32_t peer) const {
    return (at + 1 + peer) % n_nodes();
  }
  SHMEMCTL_HOST_DEVICE constexpr std::int32_t peer_index(std::int32_t at, std::int32_t node) const {
    return (node - at - 1 + n_nodes()) % n_nodes();
  }

  // Rows that cross nodes are ordered by peer node, then by token, and are sent in chunks.
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

  /// Metadata of a row at its destination rank.
  SHMEMCTL_HOST_DEVICE constexpr MetadataLayout record() const {
    return {shape, format == Format::fp8 ? Scales::float32 : Scales::none};
  }
  SHMEMCTL_HOST_DEVICE constexpr std::int32_t value_bytes() const {
    return shape.value_bytes(format);
  }
  /// Bytes of an output row, and of a sum of output rows as it crosses nodes, with its weights.
  SHMEMCTL_HOST_DEVICE constexpr std::int32_t output_bytes() const { return shape.hidden * 2; }
  SHMEMCTL_HOST_DEVICE constexpr std::int32_t sum_bytes() const {
    return output_bytes() + (combined_weights ? (shape.top_k + 3) / 4 * 16 : 0);
  }
  // Layout of a row as it crosses nodes: values, scales, the chosen experts (numbered over all
  // ranks), their weights, the token's number at its source, and for each local rank of the
  // destination node the row's slot there (-1: not sent to that rank).
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

  // The counts message from one rank to another: row counts by rank, counts of crossing rows by
  // node, and how many tokens choose each expert of the receiving rank.
  SHMEMCTL_HOST_DEVICE constexpr std::int32_t columns() const { return shape.n_ranks + n_nodes(); }
  SHMEMCTL_HOST_DEVICE constexpr std::int32_t message_words() const {
    return (columns() + shape.local_experts() + 3) / 4 * 4;
  }
  SHMEMCTL_HOST_DEVICE constexpr std::int64_t message_at(std::int32_t buffer,
                                                         std::int32_t rank) const {
    return (static_cast<std::int64_t>(buffer) * shape.n_ranks + rank) * message_words();
  }
};

// A flag is set by a put, and a network does not order puts without a fence: the number of call e +
// 1 may arrive before that of call e. So two flags alternate, as those of barriers do
// (kernels/device_plan.h). Two suffice: a rank that puts number e + 2 has completed call (or
// notify) e + 1, for which every rank that it writes to has begun e + 1, hence completed e, hence
// seen number e in the flag that is overwritten now.
SHMEMCTL_HOST_DEVICE constexpr std::int32_t turn_of_call(std::uint64_t number) {
  return static_cast<std::int32_t>(number % 2);
}

/// Flags of one rank, symmetric, zeroed before the first call. All ranks write `counts`, those of
/// the rail `entered`; the rest is this rank's own. Flags only grow, so they are not zeroed again.
struct RailFlags {
  /// By notify number modulo 2 and source rank: the notify whose counts message has arrived, in the
  /// buffer of the same number.
  std::uint64_t counts[2][max_ranks];
  /// By call number modulo 2 and node: the call that the rank of this rail there has entered. After
  /// a failure, both hold failed_call() (call_flags.h).
  std::uint64_t entered[2][max_ranks];
  /// Own. Total wait per node: [0] for this rail's rank there to enter a call or send its counts,
  /// [1] for its rows and sums.
  std::uint64_t wait_ns[2][max_ranks];
  std::uint64_t notification; ///< own: number of the last completed notify
  std::uint64_t padding[15];
};

/// Buffers of this rank in symmetric memory of the GPU heap. `peers` is other_nodes().
struct InternodeMemory {
  HighThroughputMemory
      node; ///< `flags` serve calls among the ranks of the node; expert_count_flags is unused
  RailFlags* rails;
  std::int32_t* counts_out;   ///< [2][n_ranks][message_words]: counts to send
  std::int32_t* counts_in;    ///< [2][n_ranks][message_words]: received counts
  std::uint64_t* row_signals; ///< [peers][chunks]: the call whose rows the chunk holds
  std::uint64_t* sum_signals; ///< [peers][chunks]: the call whose sums the chunk holds
  std::byte* rows_out;        ///< [peers][max_tokens][crossing_bytes]
  std::byte* rows_in;         ///< [peers][max_tokens][crossing_bytes]
  std::byte* sums_out;        ///< [peers][max_tokens][sum_bytes]
  std::byte* sums_in;         ///< [peers][max_tokens][sum_bytes]
};

/// The result of notify, in this rank's own memory.
struct InternodePlan {
  std::int32_t* slots;  ///< [tokens][n_ranks]: index among my rows at that rank; -1: not sent
  std::int32_t* counts; ///< [n_ranks][n_ranks]: row counts by source and destination rank
  std::int32_t* bases;  ///< [n_ranks][n_ranks]: the source's first row at the destination
  std::int32_t*
      expert_counts; ///< [local experts]: received tokens per expert, rounded up to the alignment
  std::int32_t* crossing_slots;  ///< [tokens][n_nodes]: index among my rows that cross to that node
  std::int32_t* crossing_tokens; ///< [n_nodes][max_tokens]: the tokens of those rows
  std::int32_t* crossing_counts; ///< [n_ranks][n_nodes]: rows of each rank that cross to each node
};

/// Shared memory of notify with `threads` threads, in 32-bit words: counts by column and by expert.
SHMEMCTL_HOST_DEVICE constexpr std::int32_t internode_notify_words(const InternodeShape& shape,
                                                                   std::int32_t threads) {
  return token_count_words(shape.columns(), threads) + shape.shape.n_experts;
}
inline constexpr int internode_notify_blocks = 1;
inline constexpr int min_internode_notify_threads =
    32; ///< fewer threads are used when there are many experts
/// Most experts, over all ranks, whose counts fit the shared memory of notify's one block.
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
/// The plan may be that of an earlier call with the same routing (cached dispatch).
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
  // As in CombineArguments; used if InternodeShape::combined_weights.
  const float* output_weights = nullptr;
  float* combined_weights = nullptr;
};
/// For each token of this rank: bf16(bias + the sums of the nodes), each of them bf16(sum of the
/// outputs of its ranks). Weights are added in the same order, in FP32.
std::string launch_internode_combine(const DeviceJob& job, const InternodeCombine& arguments,
                                     void* stream);

} // namespace shmemctl::moe
