// High-throughput dispatch and combine within one NVLink domain. No CUDA header.
//
// Every rank maps the memory of all others, so the bulk copy engine stores a row once from its
// source rank straight into its final position on each destination rank (src/model/moe/plan.h):
// there is no staging copy and no receiving side. Launchers return "" or why the launch failed, in
// CUDA's words; they do not wait. All ranks launch the same calls in the same order, each on one
// stream. A wait that takes longer than job.timeout_ns fills the job's report, which names the rank
// that was waited for.
//
// When memory is safe to overwrite, in stream order:
// - values, scales, experts and weights of a dispatch, bias and output_weights of a combine: once
//   the call has completed.
// - rows and metadata: they are overwritten by the next dispatch of any rank, which stores nothing
//   before this rank has entered that call too. So this rank has to read them before its own next
//   dispatch on the stream.
// - values of a dispatch whose own rows stay in place (DispatchArguments::in_place): only once the
//   experts have read them, too.
// - outputs: once the combine has completed, because it completes only when every rank has loaded
//   the outputs that it needs. They may share memory with `rows`, which the experts have read by
//   then.
// - the plan: it is rewritten by the next notify. Until then any number of dispatches and combines
//   may use it (cached dispatch).
//
// After a timeout none of this holds, and the job has to be ended:
// - A rank that times out in notify, dispatch or combine stores the failure into the flags of all
//   ranks, in place of the call's number (CallFlags). Every rank then fails that call or its next
//   one: it reports the missing rank at once (WaitKind::call_failed), so no rank takes rows,
//   metadata or results of that call for valid data; their contents are undefined on every rank. A
//   launch that ends with a report has failed.
// - The plan of a notify that failed moves nothing.
// - A failure is sticky: all later calls of a job with these flags end at once, with a report.
// - Other ranks may still write rows and metadata, and load outputs, until they have failed too.
//   Free or reuse the memory only when no rank runs any kernel of the job. Then the call flags and
//   expert_count_flags may be zeroed on all ranks, and calls start again with a notify.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/moe/call_flags.h"
#include "kernels/moe/combine_reduce.h"
#include "kernels/moe/launch_config.h"
#include "kernels/moe/token_metadata.h"
#include "src/abi/device_job.h"
#include "src/model/moe/plan.h"
#include "src/model/moe/shape.h"

namespace shmemctl::moe {

/// Buffers of this rank, in symmetric memory of the GPU heap.
struct HighThroughputMemory {
  CallFlags* flags;
  std::uint64_t*
      expert_count_flags; ///< [2][n_ranks][local experts]: double buffered, as CallFlags::counts
  std::byte* rows;        ///< [max_rows][value_bytes]: received rows
  std::byte* records;     ///< [max_rows][MetadataLayout::bytes()]
  std::byte* outputs;     ///< [max_rows][hidden] BF16: input of combine; may be `rows`
};

/// The result of notify(), in this rank's own memory.
struct Plan {
  /// [tokens][n_ranks]: index among my rows at that rank; -1: not sent to that rank.
  std::int32_t* slots;
  std::int32_t* bases;  ///< [n_ranks]: index of my first row at that rank
  std::int32_t* counts; ///< [n_ranks][n_ranks]: row counts by source and destination rank
  std::int32_t*
      expert_counts; ///< [local experts]: received tokens per expert, rounded up to the alignment
};

inline constexpr int notify_blocks = 2; ///< one counts rows by rank, one counts tokens by expert
/// Shared memory of a block that notify declares statically.
inline constexpr std::size_t notify_own_shared_bytes = 4096;
/// Most experts, over all ranks, whose counts fit a notify block's shared memory.
inline constexpr std::int32_t max_notified_experts =
    static_cast<std::int32_t>((max_shared_bytes - notify_own_shared_bytes) / sizeof(std::int32_t));

struct NotifyArguments {
  Shape shape;
  HighThroughputMemory memory;
  Plan plan;
  std::int32_t tokens;
  const std::int32_t* experts; ///< [tokens][top_k]
  /// Words that the host polls, count_word() with the number of this notify: the number of received
  /// rows, then expert_counts; -1 if notify failed. nullptr: the host does not poll.
  std::uint64_t* host_words;
  /// Whether the counts are sent before the slots are written: the other ranks wait less for them.
  bool counts_first = false;
};
/// Exchanges row and token counts between all ranks and computes the plan on every rank. If a rank
/// is missing at the timeout, the plan sends nothing, and all later calls of this rank fail.
std::string launch_notify(const DeviceJob& job, const NotifyArguments& arguments, void* stream);

struct DispatchArguments {
  Shape shape;
  Format format;
  HighThroughputMemory memory;
  Plan plan;
  std::int32_t tokens;
  const std::byte* values;     ///< [tokens][value_bytes], aligned to 16 bytes
  const float* scales;         ///< [tokens][scales_per_row]; FP8 only
  const std::int32_t* experts; ///< [tokens][top_k]
  const float* weights;        ///< [tokens][top_k]
  Tuning tuning;
  /// The rows that this rank sends to itself stay where they are: their metadata is written at
  /// their index in `records` as always, nothing is written to `rows` there, and the experts find
  /// the values by the token of the record, at values + token * value_bytes. No SM then copies
  /// rows to this rank itself, and all SMs send to the other ranks.
  bool in_place = false;
  /// Set if the last kernel on this stream is the notify that computes this plan. Dispatch then
  /// begins while notify still runs (programmatic dependent launch): it announces that this rank
  /// has entered and loads its first rows. Only programs of tests/gpu set it, with
  /// NotifyArguments::counts_first: other callers may have other work between the two kernels.
  bool after_notify = false;

  /// Scales are sent as they are given.
  SHMEMCTL_HOST_DEVICE constexpr MetadataLayout record() const {
    return {shape, format == Format::fp8 ? Scales::float32 : Scales::none};
  }
};
/// Shared memory of a stage: the row, and a record for each rank. dispatch_shared_bytes() is that
/// of a block, which may have at most max_shared_bytes.
SHMEMCTL_HOST_DEVICE constexpr std::int32_t dispatch_stage_bytes(const DispatchArguments& all) {
  const std::int32_t bytes = (all.shape.value_bytes(all.format) + 127) / 128 * 128 +
                             all.shape.n_ranks * all.record().bytes();
  return (bytes + 127) / 128 * 128;
}
constexpr std::size_t dispatch_shared_bytes(const DispatchArguments& arguments) {
  const auto stages = static_cast<std::size_t>(arguments.tuning.warps) *
                      static_cast<std::size_t>(arguments.tuning.stages);
  return stages *
         (static_cast<std::size_t>(dispatch_stage_bytes(arguments)) + sizeof(std::uint64_t));
}

/// How many blocks of a dispatch copy rows to this rank itself; the others send to the other ranks.
/// 0: every block does both.
///
/// Each block has an SM of its own. Eight sending blocks keep up with a link; sixteen fill it,
/// presumably because the GPU spreads them over its eight GPCs, two SMs in each; 12, 20 or 24 fill
/// it less. Measured on two H200s, where the rows to this rank itself are as many as those to the
/// other rank and take eight blocks, and on four H100s, where they are a third as many as those to
/// the other ranks and take three or four blocks.
SHMEMCTL_HOST_DEVICE constexpr int blocks_for_self(const Tuning& tuning, int n_ranks) {
  constexpr int min_for_link = 8, best_for_link = 16;
  if (n_ranks == 1 || tuning.sms < 2)
    return 0;
  if (tuning.self_sms >= 0)
    return tuning.self_sms < tuning.sms ? tuning.self_sms : tuning.sms - 1;
  const int enough = (8 + n_ranks - 2) / (n_ranks - 1);
  if (tuning.sms < enough + min_for_link)
    return 0; // too few blocks to reserve some for this rank itself
  if (tuning.sms <= 40 && tuning.sms >= (n_ranks > 2 ? enough + best_for_link : 24))
    return tuning.sms - best_for_link;
  if (tuning.sms <= 40 && n_ranks > 2)
    return tuning.sms - min_for_link;
  const int part = tuning.sms / (4 * n_ranks);
  const int least = n_ranks > 2 ? 8 : enough;
  return least > part ? least : part;
}
/// Later work on the stream may read the received rows and metadata. The plan may be that of an
/// earlier call with the same routing (cached dispatch).
std::string launch_dispatch(const DeviceJob& job, const DispatchArguments& arguments, void* stream);

struct CombineArguments {
  Shape shape;
  HighThroughputMemory memory;
  Plan plan;
  std::int32_t tokens;
  const std::uint16_t* bias; ///< [tokens][hidden] BF16, or nullptr
  std::uint16_t* results;    ///< [tokens][hidden] BF16
  Tuning tuning;
  std::int32_t chunk_bytes; ///< bytes of a row that are loaded at a time; a multiple of 16
  /// Symmetric, [max_rows][top_k]: the weights that this rank returns for each row; 0 for experts
  /// of other ranks. nullptr: no weights are returned.
  const float* output_weights = nullptr;
  float* combined_weights = nullptr; ///< [tokens][top_k]: sums of the returned weights; set
                                     ///< together with output_weights
};
/// For each token of this rank: bf16(bias + the outputs of its destination ranks), added in FP32 in
/// rank order; and the same sum of the returned weights of each of its top_k experts.
std::string launch_combine(const DeviceJob& job, const CombineArguments& arguments, void* stream);

// Default settings for a shape. Measured on two H200s and on four H100s.

/// For launch_dispatch(): as many rows in flight as shared memory holds.
constexpr Tuning dispatch_tuning(DispatchArguments arguments, int sms) {
  arguments.tuning = {sms, 1, 1};
  const int stages_that_fit =
      static_cast<int>((max_shared_bytes - own_shared_bytes) / dispatch_shared_bytes(arguments));
  const int enough_for_four = arguments.shape.n_ranks > 2 ? 12 : 28;
  const int stages = stages_that_fit >= enough_for_four ? 4 : stages_that_fit >= 4 ? 2 : 1;
  const int warps = stages_that_fit / stages;
  return {sms, warps < 1 ? 1 : warps > 16 ? 16 : warps, stages, stages > 1 ? 1 : 0};
}
constexpr ReduceTuning combine_tuning(const Shape& shape, int sms) {
  return reduce_tuning(shape.n_ranks, shape.hidden * 2, sms, shape.n_ranks > 2 ? 8 : 16, 3584);
}

} // namespace shmemctl::moe
