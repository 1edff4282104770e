// What an exchange is made for: the numbers that its memory, its kernels and their limits follow
// from. A plain value, the same on all ranks.
#pragma once

#include <cstdint>

#include "kernels/moe/token_metadata.h"
#include "src/model/moe/oracle.h"
#include "src/model/moe/shape.h"

namespace shmemctl::moe {

enum class Mode {
  high_throughput, ///< counts first, received rows are contiguous, one row per rank returns
  low_latency      ///< fixed slots, no counts first
};

struct ExchangeConfig {
  Shape shape;
  Mode mode = Mode::high_throughput;
  Format format = Format::bf16;
  bool power_scales = false; ///< FP8: scales are powers of two (UE8M0)
  /// `rows` is for high_throughput, the other values for low_latency.
  Combine combine = Combine::rows;
  bool combined_weights = false; ///< for Combine::rows: the summed top-k weights are returned, too
  bool by_expert = false;      ///< low latency, weighted: received rows are also packed per expert
  std::int32_t node_ranks = 1; ///< ranks of a node; shape.n_ranks where there is one node,
                               ///< or rows go straight to ranks of other nodes
  /// Low latency: a rank that does not respond in that time is masked, and the others go on. 0:
  /// calls wait for the job's timeout, and fail.
  double rank_timeout_us = 0;
  std::int32_t num_sms = 0; ///< most SMs of a kernel; 0: chosen per kernel

  std::int32_t n_nodes() const { return shape.n_ranks / node_ranks; }
  bool is_low_latency() const { return mode == Mode::low_latency; }
  /// Format of the scales in the metadata of received rows.
  Scales scales() const {
    if (format == Format::bf16)
      return Scales::none;
    if (!power_scales)
      return Scales::float32;
    return is_low_latency() ? Scales::ue8m0 : Scales::power;
  }
  /// Output rows of the experts per received row.
  std::int32_t outputs_per_row() const { return combine == Combine::weighted ? shape.top_k : 1; }
};

} // namespace shmemctl::moe
