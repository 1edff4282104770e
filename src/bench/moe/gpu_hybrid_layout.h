// Where the GPU backend's things lie when rows cross nodes: those of one node, and more.
#pragma once

#include "kernels/moe/high_throughput_internode.h"
#include "src/bench/moe/gpu_layout.h"

namespace shmemctl::moe {

struct HybridLayout : GpuLayout {
  /// For chunks of any number of rows.
  /// @param node_ranks ranks of a node; 1: each row goes straight to its rank
  HybridLayout(const Setup& setup, std::int32_t node_ranks);

  HybridShape shape; ///< but for the rows of a chunk, which are one here: that takes the most words
  GpuPart rails, counts_out, counts_in, row_words, sum_words;          ///< symmetric words
  GpuPart rows_out, rows_in, sums_out, sums_in;                        ///< symmetric rows
  GpuPart all_bases, crossing_slots, crossing_tokens, crossing_counts; ///< of this rank
};

} // namespace shmemctl::moe
