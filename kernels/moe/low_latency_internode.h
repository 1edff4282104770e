// Low-latency dispatch and combine between ranks of which some map each other's memory and others
// are reached by a network. No CUDA header.
//
// As in low_latency.h, rows are sent straight from rank to rank without exchanging counts first:
// one row per token and destination rank goes into a slot that only its source rank writes, in one
// of two buffers. To a rank that is not mapped, the row and its metadata are sent by the device
// API's put with signal, each with a flag of its own, and one more flag holds the number of rows.
// In combine, outputs for such a rank are sent in the same way, each with a flag.
//
// Rows are sent as they are given: for FP8, the caller casts them before (cast.h). Ranks that do
// not respond are masked as in low_latency.h. Puts read from the send buffers rows_out and
// records_out, which are overwritten two dispatches later. That is safe: a rank begins dispatch e +
// 2 only after it has received dispatch e + 1 from every rank, and each of them has received
// everything of dispatch e before it began e + 1. Outputs are sent from where the experts wrote
// them: they are safe to overwrite once the next dispatch has been received.
#pragma once

#include "kernels/moe/low_latency.h"

namespace shmemctl::moe {

/// Buffers in symmetric memory of the GPU heap. T is max_tokens.
struct LowLatencyInternodeMemory {
  LowLatencyMemory mapped; ///< the buffers of low_latency.h
  std::uint64_t*
      row_signals; ///< [2][n_ranks][T][2]: the dispatch that the row and its metadata belong to
  std::uint64_t*
      output_signals;          ///< [n_ranks][T][rows_of()]: the combine that the output belongs to
  std::byte* rows_out;         ///< [2][T][value_bytes]
  std::byte* records_out;      ///< [2][n_ranks][T][MetadataLayout::bytes()]
  std::byte* returned_outputs; ///< [n_ranks][T][rows_of()][hidden] BF16
};
/// Output rows per received row.
SHMEMCTL_HOST_DEVICE constexpr std::int32_t rows_of(const Shape& shape, bool weighted) {
  return weighted ? shape.top_k : 1;
}

struct LowLatencyInternodeDispatch {
  Shape shape;
  Scales scales;
  LowLatencyInternodeMemory memory;
  std::int32_t tokens;
  const std::byte* values;       ///< [tokens][value_bytes], aligned to 16 bytes
  const float* scales_of_values; ///< [tokens][scales_per_row]; FP8 only
  const std::int32_t* experts;   ///< [tokens][top_k]
  const float* weights;          ///< [tokens][top_k]
  std::int32_t* slots;  ///< out: [tokens][n_ranks]: index of the token among this rank's rows at
                        ///< that rank; -1: not sent
  std::int32_t* counts; ///< out: [n_ranks]: received rows by source rank; -1: masked
  Phases phases;
  int sms;
  std::uint64_t rank_timeout_ns; ///< time after which a rank that does not respond is masked
};
/// @param calls of this rank and this memory: the order is that of low_latency.h
std::string launch_low_latency_internode_dispatch(const DeviceJob& job,
                                                  const LowLatencyInternodeDispatch& arguments,
                                                  LowLatencyCalls& calls, void* stream);

struct LowLatencyInternodeCombine {
  Shape shape;
  Scales scales; ///< the preceding dispatch's scales, needed to read its metadata
  LowLatencyInternodeMemory memory;
  bool weighted; ///< as in LowLatencyCombine
  std::int32_t tokens;
  const std::int32_t* experts;
  const float* weights;
  const std::int32_t* slots;  ///< slots that the dispatch wrote
  const std::int32_t* counts; ///< counts that the dispatch wrote
  std::uint16_t* results;     ///< [tokens][hidden] BF16
  Phases phases; ///< send: sends outputs to ranks that are not mapped, and signals all ranks
  int sms;
  std::uint64_t rank_timeout_ns;
  // Weighted, with outputs packed per expert (pack.h); nullptr: outputs are stored by slot.
  const std::int32_t* output_rows = nullptr;         ///< PackedMemory::output_rows
  const std::int32_t* output_rows_by_slot = nullptr; ///< PackedMemory::output_rows_by_slot
};
/// @param calls of this rank and this memory
std::string launch_low_latency_internode_combine(const DeviceJob& job,
                                                 const LowLatencyInternodeCombine& arguments,
                                                 LowLatencyCalls& calls, void* stream);

} // namespace shmemctl::moe
