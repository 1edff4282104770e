// Dispatch and combine across nodes, for many tokens. No CUDA header.
//
// Dispatch: rows for the ranks of this node are stored into their final places; rows for another
// node cross once, packed into chunks with a signal each, to the rank of this one's rail there,
// which hands them on as chunks come. Combine: the rank of the home's rail adds up its node's rows
// in the order of ranks, rounds, and sends the sum; home adds the nodes' sums in the order of
// nodes.
//
// What crosses goes by the device API's put with signal: loads and stores, the proxy or the HCA's
// queues, as the job has it. Launchers return "" or why the launch failed; they do not wait. All
// ranks launch the same calls in the same order, on one stream each. A wait that takes longer than
// job.timeout_ns fills the job's report, which names the rank; what then holds is as in
// high_throughput.h, and a failure is also stored to the ranks of the same rail.
//
// Blocks of a dispatch or combine wait for what blocks of other ranks send, which wait for them, so
// all blocks of a launch must be resident. A launch of more than the GPU holds at a time is refused
// with the SMs that it wants and those there are (residency.h). Other kernels on the GPU only delay
// a launch if they end by themselves; PEs that share a GPU divide its SMs by their launches.
#pragma once

#include <string>

#include "kernels/moe/column_words.h"
#include "kernels/moe/high_throughput.h"
#include "kernels/moe/hybrid_shape.h"

namespace shmemctl::moe {

/// Where things are on this PE: symmetric memory of the GPU heap. `places` are other_nodes().
struct HybridMemory {
  HighThroughputMemory node; ///< `cells` are those of the node's ranks; no `expert_words`
  RailCells* rails;
  std::int32_t* counts_out; ///< [2][n_ranks][message_words]: what this rank tells
  std::int32_t* counts_in;  ///< the same: what it is told
  std::uint64_t* row_words; ///< [places][chunks]: the call that the chunk's rows are of
  std::uint64_t* sum_words; ///< [places][chunks]: the same of sums
  std::byte* rows_out;      ///< [places][max_tokens][crossing_bytes]
  std::byte* rows_in;       ///< the same
  std::byte* sums_out;      ///< [places][max_tokens][sum_bytes]
  std::byte* sums_in;       ///< the same
};

/// What notify finds out, in this PE's own memory.
struct HybridPlan {
  std::int32_t* slots;           ///< [tokens][n_ranks]: which of my rows there; -1: not sent there
  std::int32_t* counts;          ///< [n_ranks][n_ranks]: rows by source and destination
  std::int32_t* bases;           ///< [n_ranks][n_ranks]: the source's first row at the destination
  std::int32_t* expert_counts;   ///< [local experts]: tokens that I receive, rounded up
  std::int32_t* crossing_slots;  ///< [tokens][n_nodes]: which of my rows that cross to that node
  std::int32_t* crossing_tokens; ///< [n_nodes][max_tokens]: the tokens of those rows
  std::int32_t* crossing_counts; ///< [n_ranks][n_nodes]: rows of each rank that cross to each node
};

/// Notify's shared memory with `threads`, in words: counts by column, and choices by expert.
SHMEMCTL_HOST_DEVICE constexpr std::int32_t hybrid_notify_words(const HybridShape& shape,
                                                                std::int32_t threads) {
  return column_count_words(shape.columns(), threads) + shape.shape.n_experts;
}
inline constexpr int hybrid_notify_blocks = 1;
inline constexpr int fewest_hybrid_notify_threads = 32; ///< it takes fewer where experts are many
/// Of all ranks, whose counts notify's one block holds.
constexpr std::int32_t most_hybrid_experts(const HybridShape& shape) {
  return static_cast<std::int32_t>((most_shared_bytes - notify_own_shared_bytes) /
                                   sizeof(std::int32_t)) -
         column_count_words(shape.columns(), fewest_hybrid_notify_threads);
}

struct HybridNotify {
  HybridShape shape;
  HybridMemory memory;
  HybridPlan plan;
  std::int32_t tokens;
  const std::int32_t* experts; ///< [tokens][top_k]
};
std::string launch_hybrid_notify(const DeviceJob& job, const HybridNotify& arguments, void* stream);

struct HybridDispatch {
  HybridShape shape;
  HybridMemory memory;
  HybridPlan plan;
  std::int32_t tokens;
  const std::byte* values;     ///< [tokens][value_bytes], aligned to 16 bytes
  const float* scales;         ///< [tokens][scales_per_row]; FP8 only
  const std::int32_t* experts; ///< [tokens][top_k]
  const float* weights;        ///< [tokens][top_k]
  int sms;
};
/// The plan may be that of an earlier call with the same routing.
std::string launch_hybrid_dispatch(const DeviceJob& job, const HybridDispatch& arguments,
                                   void* stream);

struct HybridCombine {
  HybridShape shape;
  HybridMemory memory;
  HybridPlan plan;
  std::int32_t tokens;
  const std::uint16_t* bias; ///< [tokens][hidden] BF16, or nullptr
  std::uint16_t* results;    ///< [tokens][hidden] BF16
  int sms;
  // As of CombineArguments; where HybridShape::weights_home.
  const float* weights_back = nullptr;
  float* weights_home = nullptr;
};
/// For each of my tokens: bf16(bias + the nodes' sums), each of them bf16(its ranks' outputs).
/// Weights are added up in the same order, in FP32.
std::string launch_hybrid_combine(const DeviceJob& job, const HybridCombine& arguments,
                                  void* stream);

} // namespace shmemctl::moe
