// Dispatch and combine within one NVLink domain, for many tokens. No CUDA header.
//
// A row goes once from its source straight to its final place on each rank that has one of its
// experts (src/moe/plan.h), by the bulk copy engine: no intermediate copy, no receiving side.
// Launchers return "" or why the launch failed, in CUDA's words; they do not wait. All ranks launch
// the same calls in the same order, on one stream each. A wait that takes longer than
// job.timeout_ns fills the job's report, which names the rank.
//
// What may be written again, and when, on the stream that the calls are on:
// - values, scales, experts and weights of a dispatch, bias and output_weights of a combine: behind
//   the call;
// - rows and records: by the next dispatch of any rank, which begins when this rank has begun it,
//   so whoever reads them does so before its own next dispatch or combine on the stream;
// - outputs: behind the combine, which has ended when every rank has loaded what it takes (they may
//   be `rows`, which the experts have read then);
// - the plan: by the next notify. Until then any number of dispatches and combines may use it.
//
// After a wait that took too long nothing of this holds, and the job has to be ended:
// - A rank that times out in notify, dispatch or combine stores that to all ranks in place of the
//   call's number (CallFlags). Every rank then fails that call or its next one: it reports the
//   missing rank at once (WaitKind::call_failed), so no rank takes rows, records or results of that
//   call, whose contents are undefined on every rank, for good ones. A launch that ends with a
//   report has failed.
// - A plan of a notify that failed moves nothing.
// - A failure is sticky: all later calls of a job with these cells end at once, with a report.
// - Other ranks may still write rows and records, and load outputs, until they have failed too: the
//   memory is freed, or used otherwise, only when no rank runs any kernel of the job. Then cells
//   and expert_count_flags may be zeroed on all ranks, and the calls begin anew with a notify.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/device_job.h"
#include "kernels/moe/call_flags.h"
#include "kernels/moe/token_metadata.h"
#include "src/moe/plan.h"
#include "src/moe/shape.h"

namespace shmemctl::moe {

/// Where things are on this PE. Symmetric memory of the GPU heap but for the plan.
struct HighThroughputMemory {
  CallFlags* flags;
  std::uint64_t* expert_count_flags; ///< [2][n_ranks][local experts]: counts as in CallFlags
  std::byte* rows;                   ///< [max_rows][value_bytes]: what dispatch brings
  std::byte* records;                ///< [max_rows][MetadataLayout::bytes()]
  std::byte* outputs;                ///< [max_rows][hidden] BF16: what combine takes; may be `rows`
};

/// What notify() finds out, in this PE's own memory.
struct Plan {
  std::int32_t* slots;         ///< [tokens][n_ranks]: which of my rows there; -1: not sent there
  std::int32_t* bases;         ///< [n_ranks]: my first row there
  std::int32_t* counts;        ///< [n_ranks][n_ranks]: rows by source and destination
  std::int32_t* expert_counts; ///< [local experts]: tokens that I receive, rounded up
};

/// Of a block, on sm_90.
inline constexpr std::size_t max_shared_bytes = 227 << 10;

struct Tuning {
  int sms = 24, warps = 7, stages = 2;
  int kept = 1;      ///< stages whose stores may still be read when the next load begins
  int self_sms = -1; ///< of a dispatch: blocks_for_self(); -1: its own choice
};

inline constexpr int notify_blocks = 2; ///< one counts by rank, one by expert
/// Of a block's shared memory, for what notify declares itself.
inline constexpr std::size_t notify_own_shared_bytes = 4096;
/// Experts of all ranks whose counts a block of notify holds.
inline constexpr std::int32_t max_notified_experts =
    static_cast<std::int32_t>((max_shared_bytes - notify_own_shared_bytes) / sizeof(std::int32_t));

struct NotifyArguments {
  Shape shape;
  HighThroughputMemory memory;
  Plan plan;
  std::int32_t tokens;
  const std::int32_t* experts; ///< [tokens][top_k]
  /// Words that the host reads, count_word() with the notification's number: the rows that I
  /// receive, then expert_counts; counts of -1 where it failed. nullptr: not wanted.
  std::uint64_t* host_words;
};
/// Exchanges counts; then the plan holds on every rank. If a rank is missing at the timeout, the
/// plan is one by which nothing is sent, and this rank's calls from then on fail.
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

  /// Scales are carried as they are given.
  SHMEMCTL_HOST_DEVICE constexpr MetadataLayout record() const {
    return {shape, format == Format::fp8 ? Scales::float32 : Scales::none};
  }
};
/// Of shared memory, for a stage (the row, and a record for each rank) and for a block; a block has
/// max_shared_bytes.
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

/// How many of a dispatch's blocks serve this rank itself; the others send to the others. 0: blocks
/// do both. Measured on two H200s: eight blocks for self keep up with the link where both have the
/// same to do, and sixteen fill it, two on each part of the GPU; 24 fill it less.
SHMEMCTL_HOST_DEVICE constexpr int blocks_for_self(const Tuning& tuning, int n_ranks) {
  constexpr int fewest_for_link = 8, best_for_link = 16;
  if (n_ranks == 1 || tuning.sms < 2)
    return 0;
  if (tuning.self_sms >= 0)
    return tuning.self_sms < tuning.sms ? tuning.self_sms : tuning.sms - 1;
  const int enough = (8 + n_ranks - 2) / (n_ranks - 1);
  if (tuning.sms < enough + fewest_for_link)
    return 0; // every multiprocessor counts
  if (tuning.sms >= 24 && tuning.sms <= 40)
    return tuning.sms - best_for_link;
  const int part = tuning.sms / (4 * n_ranks);
  return enough > part ? enough : part;
}
/// Rows and records are there when the stream has got behind it. The plan may be that of an earlier
/// call with the same routing.
std::string launch_dispatch(const DeviceJob& job, const DispatchArguments& arguments, void* stream);

struct CombineArguments {
  Shape shape;
  HighThroughputMemory memory;
  Plan plan;
  std::int32_t tokens;
  const std::uint16_t* bias; ///< [tokens][hidden] BF16, or nullptr
  std::uint16_t* results;    ///< [tokens][hidden] BF16
  Tuning tuning;
  std::int32_t chunk_bytes; ///< of a row at a time: a multiple of 16
  /// Symmetric, [max_rows][top_k]: what this rank gives back of each row's weights, 0 for choices
  /// of others. nullptr: weights stay.
  const float* output_weights = nullptr;
  float* combined_weights = nullptr; ///< [tokens][top_k]; with output_weights
};
/// For each of my tokens: bf16(bias + the outputs of the ranks it went to), FP32, in rank order;
/// and of each of its choices the sum of what these ranks give back, in the same way.
std::string launch_combine(const DeviceJob& job, const CombineArguments& arguments, void* stream);

} // namespace shmemctl::moe
