// The configuration of an exchange, which determines its memory, its kernels and their limits. A
// plain value, the same on all ranks.
#pragma once

#include <cstdint>

#include "kernels/moe/token_metadata.h"
#include "src/model/moe/oracle.h"
#include "src/model/moe/shape.h"

namespace shmemctl::moe {

enum class Mode {
  /// Counts are exchanged first, received rows are contiguous, and in combine each rank returns one
  /// row per token.
  high_throughput,
  low_latency ///< fixed slots, no exchange of counts
};

struct ExchangeConfig {
  Shape shape;
  Mode mode = Mode::high_throughput;
  Format format = Format::bf16;
  bool power_scales = false; ///< FP8: scales are powers of two (UE8M0)
  /// `rows` is for high_throughput, the other values for low_latency.
  Combine combine = Combine::rows;
  bool combined_weights = false; ///< for Combine::rows: the sums of top-k weights are returned, too
  bool by_expert = false;      ///< low latency, weighted: received rows are also packed per expert
  std::int32_t node_ranks = 1; ///< ranks of a node; shape.n_ranks if there is one node, or if
                               ///< rows go straight to ranks of other nodes
  /// Low latency: a rank that does not respond within this time is masked, and the others continue.
  /// 0: it is masked after the job's timeout; the caller has to treat that as a failure.
  double rank_timeout_us = 0;
  std::int32_t num_sms = 0; ///< most SMs that a kernel uses; 0: chosen for each kernel

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
