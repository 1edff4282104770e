// Packs what a low-latency dispatch has brought by expert (src/moe/plan.h): experts in order, of
// one by source rank, then token. A row still goes over the link once; here it is copied on its
// GPU, to each of its experts. No CUDA header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/device_job.h"
#include "kernels/moe/low_latency.h"
#include "kernels/moe/token_metadata.h"
#include "src/moe/shape.h"

namespace shmemctl::moe {

inline constexpr int pack_blocks_per_sm = 2;
/// Counts of so many experts of a rank lie in a block's shared memory.
inline constexpr std::int32_t max_packed_experts = 4096;

/// This PE's own, but for `places`.
struct PackedMemory {
  std::byte* rows;       ///< [max_packed_rows()][value_bytes]
  std::byte* records;    ///< [max_packed_rows()][MetadataLayout::bytes()]: as they came
  std::int32_t* counts;  ///< [local experts]: their rows
  std::int32_t* offsets; ///< [local experts + 1]: their first rows, and the end of all
  /// Symmetric, [max_tokens][top_k]: where each choice of my tokens lies on the rank of its expert.
  /// Written by these ranks; for a combine, which says so behind it.
  ///
  /// Why one half suffices: who packs has heard of this dispatch from the tokens' home, which
  /// therefore is through with the combine before.
  std::int32_t* output_rows;
  /// Where a home is not mapped, it need not know: this rank sends the outputs. [max_rows][top_k],
  /// by slot: where each choice of the row lies here. nullptr: all homes are mapped.
  std::int32_t* output_rows_by_slot = nullptr;
};

struct PackArguments {
  Shape shape;
  Scales scales;
  LowLatencyMemory memory;
  const std::int32_t* counts; ///< [n_ranks], of the dispatch: rows from each source; -1: masked
  PackedMemory packed;
  int sms;
};
/// Blocks of a launch that takes `sms` multiprocessors at most. Blocks go to idle multiprocessors
/// first: there are two for each (a block is slow because its steps are, not its work) only where
/// all of the GPU's are to be taken.
constexpr int pack_blocks(int sms, int sms_of_gpu) {
  return sms < sms_of_gpu ? sms : sms * pack_blocks_per_sm;
}
/// Behind a dispatch, or its receiving half, on the same stream.
std::string launch_pack(const DeviceJob& job, const PackArguments& arguments, void* stream);

} // namespace shmemctl::moe
