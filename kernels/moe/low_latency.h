// Low-latency dispatch and combine within one NVLink domain, for few tokens: no counts are
// exchanged first, the host is not involved, and each call is one kernel, or two (the phases send
// and receive) between which the GPU is free for other work. No CUDA header.
//
// Dispatch: one row per token and destination rank goes into a slot that only its source rank
// writes (fixed_slot()), in one of two buffers, by the dispatch's number modulo 2. A flag per
// sending block holds the number of rows that the block wrote, together with the dispatch's number,
// so nothing has to be zeroed.
//
// Why two buffers suffice: source S overwrites, in dispatch e + 2, the buffer of dispatch e at rank
// R. S begins e + 2 only after it has received dispatch e + 1 from R, and R has begun e + 1 only
// after its earlier kernels on the stream have read the rows of e.
//
// Combine: the ranks leave their outputs in symmetric memory and set a flag; each token's source
// rank loads them from there. The outputs are safe to overwrite once the next dispatch has been
// received: every source rank has then begun that dispatch, so its previous combine has completed.
//
// One micro-batch may be in flight at a time: each dispatch is followed by its combine before the
// next dispatch is launched, on every rank, with phases in the order send, receive. Launchers take
// the rank's LowLatencyCalls (low_latency_calls.h) and refuse any other order. Two overlapping
// micro-batches (dispatch A, dispatch B, combine A, combine B) would add up rows of one as those of
// the other. Captured graphs are checked when they are captured, not when they are launched.
//
// A rank that waits too long for another masks that one, for itself alone: from then on it sends it
// no rows, takes none from it and does not wait for it, but continues with the others. Launchers
// return "" or why the launch failed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/moe/high_throughput.h"
#include "kernels/moe/low_latency_calls.h"
#include "kernels/moe/token_metadata.h"
#include "src/abi/device_job.h"

namespace shmemctl::moe {

/// Flags and counters of one rank. Symmetric, zeroed before the first call. Peers write them,
/// except those marked "own".
struct LowLatencyState {
  static constexpr int ranks =
      max_ranks; ///< most ranks of an internode job; intranode uses max_ranks_of_kernels
  std::uint64_t ready[ranks]; ///< by rank: the last combine whose outputs may be loaded
  /// By rank: the last dispatch that the rank has begun. Stored before its first row, relaxed and
  /// unordered with the rows. For statistics only. Not set by ranks that are reached by a network:
  /// those send the number of their rows before the rows.
  std::uint64_t begun[ranks];
  std::uint64_t sent, received; ///< own: completed dispatches, by phase
  std::uint64_t combined;       ///< own: completed combines
  /// Own: total time spent waiting for a rank, by operation (0: dispatch, 1: combine) and by
  /// rank.
  std::uint64_t wait_ns[2][ranks];
  std::uint64_t
      begin_wait_ns[ranks];     ///< own: the part of wait_ns[0] before that rank began the dispatch
  std::uint64_t masked[ranks];  ///< own: nonzero: that rank is masked
  std::uint32_t blocks_done[2]; ///< own: blocks of the current launch that are done, by phase
  std::uint64_t padding[4];
};
struct LowLatencyFlags : LowLatencyState {
  static constexpr int max_blocks = 256; ///< sending blocks of a dispatch
  /// By buffer, source rank and sending block: count_word() of packed_count().
  std::uint64_t block_counts[2][ranks][max_blocks];
};
/// Most rows that one sending CUDA block can count for one rank (16 bits of packed_count()). A
/// block may send all tokens of its rank, so this is also the most tokens of a rank.
inline constexpr std::int32_t max_rows_of_block = 0xffff;
/// "", or why a dispatch of that many tokens is not launched.
inline std::string refuse_tokens(std::int32_t tokens) {
  return tokens > max_rows_of_block
             ? "low-latency kernels know " + std::to_string(max_rows_of_block) + " tokens at most"
             : "";
}
/// The number of rows that one sending block wrote for one rank (low half), with the number of
/// sending blocks (high half).
SHMEMCTL_HOST_DEVICE constexpr std::int32_t packed_count(std::int32_t blocks, std::int32_t rows) {
  return blocks << 16 | rows;
}
SHMEMCTL_HOST_DEVICE constexpr std::int32_t blocks_of_count(std::int32_t block) {
  return block >> 16;
}
SHMEMCTL_HOST_DEVICE constexpr std::int32_t rows_of_count(std::int32_t block) {
  return block & max_rows_of_block;
}

/// Buffers in symmetric memory of the GPU heap.
struct LowLatencyMemory {
  LowLatencyFlags* flags;
  std::byte* rows;    ///< [2][max_rows][value_bytes]
  std::byte* records; ///< [2][max_rows][MetadataLayout::bytes()]
  /// BF16. Partial combine: [max_rows][hidden]. Weighted combine: [max_rows][top_k][hidden], the
  /// outputs of a row's experts in the order of the token's top-k list.
  std::byte* outputs;
};

/// Blocks of a dispatch launch: `senders` send, one more receives. A single phase has only its own.
struct DispatchBlocks {
  int senders, receiving;
  constexpr int all() const { return senders + receiving; }
};
inline constexpr int min_dispatch_blocks = 2;
/// One sending block per token, as far as there are SMs, then several tokens per block (internode:
/// one per warp at a time). At least one, which reports a count of zero when there are no tokens.
/// @param sms min_dispatch_blocks at least
constexpr DispatchBlocks dispatch_blocks(std::int32_t tokens, int sms, Phases phases) {
  const int max_senders =
      sms - 1 < LowLatencyFlags::max_blocks ? sms - 1 : LowLatencyFlags::max_blocks;
  const int senders = tokens < 1 ? 1 : tokens < max_senders ? tokens : max_senders;
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
  Scales scales; ///< none: rows stay BF16; otherwise they are cast to FP8
  LowLatencyMemory memory;
  std::int32_t tokens;
  const std::uint16_t* values; ///< [tokens][hidden] BF16, aligned to 16 bytes
  const std::int32_t* experts; ///< [tokens][top_k]
  const float* weights;        ///< [tokens][top_k]
  std::int32_t* slots;  ///< out: [tokens][n_ranks]: index of the token among this rank's rows at
                        ///< that rank; -1: not sent
  std::int32_t* counts; ///< out: [n_ranks]: received rows by source rank; -1: masked
  Phases phases;
  int sms;
  std::uint64_t rank_timeout_ns; ///< time after which a rank that does not respond is masked
};
/// @param calls of this rank and this memory
std::string launch_low_latency_dispatch(const DeviceJob& job, const LowLatencyDispatch& arguments,
                                        LowLatencyCalls& calls, void* stream);

struct LowLatencyCombine {
  Shape shape;
  LowLatencyMemory memory;
  /// true: one row per expert of the token, weighted and summed here in top-k order. false: one row
  /// per rank, which has applied the weights, summed in rank order.
  bool weighted;
  std::int32_t tokens;
  const std::int32_t* experts;
  const float* weights;
  const std::int32_t* slots; ///< output of the dispatch
  std::uint16_t* results;    ///< [tokens][hidden] BF16
  Phases phases;             ///< send: only signals that the outputs may be loaded
  Tuning tuning;             ///< warps and stages of a block
  std::int32_t chunk_bytes;
  std::uint64_t rank_timeout_ns;
  /// Weighted, with outputs packed per expert (pack.h): [tokens][top_k], the row of each expert's
  /// output on its rank. nullptr: outputs are stored by slot.
  const std::int32_t* output_rows = nullptr;
};
/// @param calls of this rank and this memory
std::string launch_low_latency_combine(const DeviceJob& job, const LowLatencyCombine& arguments,
                                       LowLatencyCalls& calls, void* stream);

/// One stage per warp, because there are few tokens.
constexpr ReduceTuning low_latency_combine_tuning(const Shape& shape, bool weighted, int sms) {
  ReduceTuning chosen =
      reduce_tuning(weighted ? shape.top_k : shape.n_ranks, shape.hidden * 2, sms, 8, 1024);
  chosen.tuning.stages = 1;
  return chosen;
}

} // namespace shmemctl::moe
