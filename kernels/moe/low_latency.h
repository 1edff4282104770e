// Dispatch and combine within one NVLink domain for few tokens: no counts go ahead, no host, one
// kernel each, or two halves with nothing of the GPU held between. No CUDA header.
//
// Dispatch: a row for each token and rank goes into a slot that only its source writes
// (fixed_slot()), in one of two halves, by the dispatch's number. A word for each block of the
// source tells how many rows it wrote, beside that number, so nothing has to be zeroed.
//
// Why two halves suffice: a source that begins dispatch e + 2 has heard of dispatch e + 1 from
// every rank, and a rank that has begun e + 1 is through with what it received in e.
//
// Combine: the ranks leave their outputs where they are (in symmetric memory) and say so; each
// token's home loads them from there. They may be written anew once the next dispatch has been
// received: then every home has begun it, so it is through with the combine before.
//
// So one micro-batch is under way at a time: each dispatch is answered by its combine before the
// next dispatch is launched, on every rank, halves in the order send, receive. Launchers take the
// rank's LowLatencyCalls (low_latency_calls.h) and refuse any other order, as that of two batches
// that overlap (dispatch A, dispatch B, combine A, combine B) is: it would add up rows of one batch
// as those of the other. Captured graphs are checked when they are captured, not when they are
// launched.
//
// A rank that does not come in time is masked: from then on nothing is sent to it, waited for or
// taken from it, and the others go on. Launchers return "" or why the launch failed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/device_job.h"
#include "kernels/moe/high_throughput.h"
#include "kernels/moe/low_latency_calls.h"
#include "kernels/moe/token_metadata.h"

namespace shmemctl::moe {

/// Symmetric; all zeros before the first call. Written by peers, but for the words marked "own".
struct LowLatencyState {
  static constexpr int ranks = max_ranks; ///< over a network; else max_ranks_of_kernels
  std::uint64_t ready[ranks];             ///< by rank, the combine whose outputs lie there
  /// By rank, the dispatch that it has begun: told before its first row leaves, in no order to
  /// rows. For statistics alone. Not of ranks that are not mapped, whose first part's word goes
  /// ahead of their rows.
  std::uint64_t begun[ranks];
  std::uint64_t sent, received;    ///< own: dispatches that are over, by half of a call
  std::uint64_t combined;          ///< own: combines that are over
  std::uint64_t wait_ns[2][ranks]; ///< own: dispatch, combine: spent waiting for that rank, a sum
  std::uint64_t begin_wait_ns[ranks]; ///< own: of wait_ns[0], until it was heard to have begun
  std::uint64_t masked[ranks];        ///< own: not 0: that rank did not come
  std::uint32_t blocks_done[2];       ///< own: of the present launch
  std::uint64_t padding[4];
};
struct LowLatencyFlags : LowLatencyState {
  static constexpr int max_blocks = 256; ///< blocks of a dispatch
  /// By half, source and block: count_word() of packed_count().
  std::uint64_t block_counts[2][ranks][max_blocks];
};
/// Of a block, for one rank: so no rank may have more tokens.
inline constexpr std::int32_t max_rows_of_block = 0xffff;
/// "", or why a dispatch of that many tokens is not launched.
inline std::string refuse_tokens(std::int32_t tokens) {
  return tokens > max_rows_of_block
             ? "low-latency kernels know " + std::to_string(max_rows_of_block) + " tokens at most"
             : "";
}
/// How many rows a block of a dispatch wrote for one rank, and how many blocks there are.
SHMEMCTL_HOST_DEVICE constexpr std::int32_t packed_count(std::int32_t blocks, std::int32_t rows) {
  return blocks << 16 | rows;
}
SHMEMCTL_HOST_DEVICE constexpr std::int32_t blocks_of_count(std::int32_t block) {
  return block >> 16;
}
SHMEMCTL_HOST_DEVICE constexpr std::int32_t rows_of_count(std::int32_t block) {
  return block & max_rows_of_block;
}

/// Symmetric memory of the GPU heap.
struct LowLatencyMemory {
  LowLatencyFlags* flags;
  std::byte* rows;    ///< [2][max_rows][value_bytes]
  std::byte* records; ///< [2][max_rows][MetadataLayout::bytes()]
  /// BF16: [max_rows][hidden] for partial sums, [max_rows][top_k][hidden] for weighted ones: the
  /// outputs of a row's experts, in the order of the token's choices.
  std::byte* outputs;
};

/// Blocks that a dispatch is launched with: `parts` send, and another one receives.
struct DispatchBlocks {
  int senders, receiving;
  constexpr int all() const { return senders + receiving; }
};
inline constexpr int min_dispatch_blocks = 2;
/// A block for each token (over a network a warp) where there are enough; one at least, which tells
/// that there are no tokens.
/// @param sms min_dispatch_blocks at least
constexpr DispatchBlocks dispatch_blocks(std::int32_t tokens, int sms, Phases phases) {
  const int most = sms - 1 < LowLatencyFlags::max_blocks ? sms - 1 : LowLatencyFlags::max_blocks;
  const int senders = tokens < 1 ? 1 : tokens < most ? tokens : most;
  return {phases == Phases::receive ? 0 : senders, phases == Phases::send ? 0 : 1};
}
/// "", or why a dispatch is not launched on so few multiprocessors.
inline std::string refuse_sms(int sms) {
  return sms < min_dispatch_blocks
             ? "a low-latency dispatch takes " + std::to_string(min_dispatch_blocks) +
                   " multiprocessors at least"
             : "";
}

struct LowLatencyDispatch {
  Shape shape;
  Scales scales; ///< none: rows stay BF16; else they are cast
  LowLatencyMemory memory;
  std::int32_t tokens;
  const std::uint16_t* values; ///< [tokens][hidden] BF16, aligned to 16 bytes
  const std::int32_t* experts; ///< [tokens][top_k]
  const float* weights;        ///< [tokens][top_k]
  std::int32_t* slots;         ///< out: [tokens][n_ranks]: my how-manieth row there; -1: none
  std::int32_t* counts;        ///< out: [n_ranks]: rows from each source; -1: masked
  Phases phases;
  int sms;
  std::uint64_t rank_timeout_ns; ///< until a rank is masked
};
/// @param calls of this rank and this memory
std::string launch_low_latency_dispatch(const DeviceJob& job, const LowLatencyDispatch& arguments,
                                        LowLatencyCalls& calls, void* stream);

struct LowLatencyCombine {
  Shape shape;
  LowLatencyMemory memory;
  /// true: a row for each choice, summed with the weights here, in order of choices. false: one row
  /// for each rank (which has applied the weights), summed in order of ranks.
  bool weighted;
  std::int32_t tokens;
  const std::int32_t* experts;
  const float* weights;
  const std::int32_t* slots; ///< of the dispatch
  std::uint16_t* results;    ///< [tokens][hidden] BF16
  Phases phases;             ///< send: says that the outputs lie ready
  Tuning tuning;             ///< warps and stages of each block
  std::int32_t chunk_bytes;
  std::uint64_t rank_timeout_ns;
  /// weighted: [tokens][top_k], where the output of each choice lies on its rank, if the outputs
  /// lie packed by expert (pack.h); nullptr: by slot.
  const std::int32_t* output_rows = nullptr;
};
/// @param calls of this rank and this memory
std::string launch_low_latency_combine(const DeviceJob& job, const LowLatencyCombine& arguments,
                                       LowLatencyCalls& calls, void* stream);

} // namespace shmemctl::moe
