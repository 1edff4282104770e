// Packs, by expert, the rows that a low-latency dispatch has received (src/model/moe/plan.h):
// experts in order, the rows of an expert by source rank, then token. A row still crosses the link
// once; the receiving GPU copies it for each of its experts. No CUDA header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/moe/low_latency.h"
#include "kernels/moe/token_metadata.h"
#include "src/abi/device_job.h"
#include "src/model/moe/shape.h"

namespace shmemctl::moe {

inline constexpr int pack_blocks_per_sm = 2;
/// Most experts of a rank whose counts fit a block's shared memory.
inline constexpr std::int32_t max_packed_experts = 4096;

/// All in this rank's own memory, except `output_rows`.
struct PackedMemory {
  std::byte* rows;       ///< [max_packed_rows()][value_bytes]
  std::byte* records;    ///< [max_packed_rows()][MetadataLayout::bytes()]: as received
  std::int32_t* counts;  ///< [local experts]: number of rows
  std::int32_t* offsets; ///< [local experts + 1]: first row of each expert, and the end
  /// Symmetric, [max_tokens][top_k]: for each expert of this rank's tokens, the packed row on the
  /// rank of that expert. The experts' ranks write it; the flag of combine orders these stores.
  ///
  /// One buffer suffices: rank R writes here after it has received a dispatch from this rank, which
  /// began that dispatch only after its previous combine had completed.
  std::int32_t* output_rows;
  /// [max_rows][top_k], by slot: the packed row of each expert, for source ranks that are not
  /// mapped, to which this rank sends the outputs. nullptr: all source ranks are mapped.
  std::int32_t* output_rows_by_slot = nullptr;
};

struct PackArguments {
  Shape shape;
  Scales scales;
  LowLatencyMemory memory;
  const std::int32_t*
      counts; ///< [n_ranks], of the dispatch: received rows by source rank; -1: masked
  PackedMemory packed;
  int sms;
};
/// Blocks of a launch that may use `sms` SMs. Two blocks per SM are faster, because a block is
/// bound by latency, but the GPU places blocks on idle SMs first. So they are launched only if the
/// launch may use all SMs of the GPU.
constexpr int pack_blocks(int sms, int sms_of_gpu) {
  return sms < sms_of_gpu ? sms : sms * pack_blocks_per_sm;
}
/// Launched after a dispatch, or its receive phase, on the same stream.
std::string launch_pack(const DeviceJob& job, const PackArguments& arguments, void* stream);

} // namespace shmemctl::moe
