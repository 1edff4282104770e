// Dispatch and combine for few tokens between ranks that map each other's memory or reach each
// other by a network. No CUDA header.
//
// As low_latency.h, straight from rank to rank: no counts go ahead, a row for each token and rank
// goes into a slot that only its source writes, in one of two halves. To a rank that is not mapped
// the row and its record go by the device API's put with signal, each with a word of its own, and
// one word tells how many there are. In combine such a rank sends its outputs, each with a word.
//
// Rows are sent as they are given: FP8 is cast before (cast.h). Ranks that do not come are masked
// as there. What is sent by a network is sent from memory of these calls, which is written again
// two dispatches later: whoever begins dispatch e + 2 has heard of e + 1 from every rank, which has
// received all of e before. Outputs are sent from where they lie: they may be written anew once the
// next dispatch has been received.
#pragma once

#include "kernels/moe/low_latency.h"

namespace shmemctl::moe {

/// Symmetric memory of the GPU heap. T is max_tokens.
struct LowLatencyInternodeMemory {
  LowLatencyMemory mapped;    ///< as between ranks that are mapped
  std::uint64_t* row_signals; ///< [2][n_ranks][T][2]: the dispatch that the row, the record are of
  std::uint64_t* output_signals; ///< [n_ranks][T][rows_of()]: the combine that the output is of
  std::byte* rows_out;           ///< [2][T][value_bytes]
  std::byte* records_out;        ///< [2][n_ranks][T][MetadataLayout::bytes()]
  std::byte* returned_outputs;   ///< [n_ranks][T][rows_of()][hidden] BF16
};
/// Outputs of a row.
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
  std::int32_t* slots;           ///< out: [tokens][n_ranks]: my how-manieth row there; -1: none
  std::int32_t* counts;          ///< out: [n_ranks]: rows from each source; -1: masked
  Phases phases;
  int sms;
  std::uint64_t rank_timeout_ns; ///< until a rank is masked
};
/// @param calls of this rank and this memory: the order is that of low_latency.h
std::string launch_low_latency_internode_dispatch(const DeviceJob& job,
                                                  const LowLatencyInternodeDispatch& arguments,
                                                  LowLatencyCalls& calls, void* stream);

struct LowLatencyInternodeCombine {
  Shape shape;
  Scales scales; ///< of the dispatch before, for its records
  LowLatencyInternodeMemory memory;
  bool weighted; ///< as LowLatencyCombine
  std::int32_t tokens;
  const std::int32_t* experts;
  const float* weights;
  const std::int32_t* slots;  ///< of the dispatch
  const std::int32_t* counts; ///< of the dispatch
  std::uint16_t* results;     ///< [tokens][hidden] BF16
  Phases phases;              ///< send: outputs to ranks that are not mapped; all are told
  int sms;
  std::uint64_t rank_timeout_ns;
  // weighted, where the outputs lie packed by expert (pack.h); nullptr: by slot.
  const std::int32_t* output_rows = nullptr;         ///< PackedMemory::places
  const std::int32_t* output_rows_by_slot = nullptr; ///< PackedMemory::output_rows_by_slot
};
/// @param calls of this rank and this memory
std::string launch_low_latency_internode_combine(const DeviceJob& job,
                                                 const LowLatencyInternodeCombine& arguments,
                                                 LowLatencyCalls& calls, void* stream);

} // namespace shmemctl::moe
