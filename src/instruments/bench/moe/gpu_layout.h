// The layout of the GPU backend's memory, for each MoePath.
#pragma once

#include <string>
#include <vector>

#include "kernels/moe/check.h"
#include "kernels/moe/high_throughput.h"
#include "kernels/moe/high_throughput_internode.h"
#include "kernels/moe/low_latency_internode.h"
#include "kernels/moe/pack.h"
#include "src/instruments/bench/moe/backend.h"

namespace shmemctl::moe {

Scales scales_of(const Setup& setup);
/// Setup::scale_bytes for kernels: 1 if they carry UE8M0 scales, otherwise 4.
std::int32_t scale_bytes_of(const Setup& setup);

/// A region of the memory, between guard bytes that must not be written.
struct GpuRegion {
  std::size_t offset = 0, size_bytes = 0;
};
inline constexpr std::size_t gpu_guard_bytes = 1024;
inline constexpr int gpu_poison = 0xff; ///< NaN as BF16 and FP32, and no index

struct GpuLayout {
  explicit GpuLayout(const Setup& setup);

  GpuRegion flags, expert_count_flags; ///< symmetric words
  GpuRegion rows, records,
      outputs; ///< symmetric; rows and records of low latency are double buffered
  GpuRegion values, casts, scales, experts, weights, bias, results; ///< of this rank
  GpuRegion slots, bases, counts, expert_counts, wrong;
  GpuRegion output_weights,
      combined_weights;  ///< the first one symmetric; if combine returns the top-k weights
  GpuRegion output_rows; ///< symmetric; if rows are packed per expert
  GpuRegion packed_rows, packed_records, packed_counts, packed_offsets; ///< by expert
  std::size_t size_bytes = 0;
  std::vector<MemoryUse> uses; ///< what a program that calls these kernels would need

protected:
  GpuRegion add(std::size_t size_bytes);
};

struct InternodeLayout : GpuLayout {
  /// For chunks of any number of rows.
  /// @param node_ranks ranks of a node; 1: each row goes straight to its rank
  InternodeLayout(const Setup& setup, std::int32_t node_ranks);

  InternodeShape
      shape; ///< but for the rows of a chunk, which are one here: that takes the most words
  GpuRegion rails, counts_out, counts_in, row_signals, sum_signals;      ///< symmetric words
  GpuRegion rows_out, rows_in, sums_out, sums_in;                        ///< symmetric rows
  GpuRegion all_bases, crossing_slots, crossing_tokens, crossing_counts; ///< of this rank
};

struct LowLatencyInternodeLayout : GpuLayout {
  explicit LowLatencyInternodeLayout(const Setup& setup);

  GpuRegion row_signals, output_signals; ///< symmetric words
  GpuRegion rows_out, records_out, back; ///< symmetric rows
  GpuRegion cast_rows, cast_scales;      ///< of this rank, FP8
  GpuRegion output_rows_by_slot;         ///< of this rank, by expert
};

} // namespace shmemctl::moe
