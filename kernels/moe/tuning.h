// Settings that suit a shape, where nobody has chosen any. Measured on two H200s.
#pragma once

#include "kernels/moe/combine_reduce.h"
#include "kernels/moe/high_throughput.h"

namespace shmemctl::moe {

/// Of max_shared_bytes, for what kernels declare themselves.
inline constexpr int own_shared_bytes = 512;

/// For launch_dispatch(): as many rows on the way as shared memory holds.
constexpr Tuning dispatch_tuning(DispatchArguments arguments, int sms) {
  arguments.tuning = {sms, 1, 1};
  const int stages_that_fit =
      static_cast<int>((max_shared_bytes - own_shared_bytes) / dispatch_shared_bytes(arguments));
  const int stages = stages_that_fit >= 28 ? 4 : stages_that_fit >= 4 ? 2 : 1;
  const int warps = stages_that_fit / stages;
  return {sms, warps < 1 ? 1 : warps > 16 ? 16 : warps, stages, stages > 1 ? 1 : 0};
}

struct ReduceTuning {
  Tuning tuning;
  int chunk_bytes;
};
/// For combines: `warps` of them, with chunks that leave each at least one stage.
/// @param rows of a token that are added up at most
constexpr ReduceTuning reduce_tuning(int rows, int row_bytes, int sms, int warps, int chunk_bytes) {
  if (chunk_bytes > row_bytes)
    chunk_bytes = row_bytes;
  constexpr int shared = static_cast<int>(max_shared_bytes) - own_shared_bytes;
  const auto stage_bytes = [rows](int chunk) {
    return rows * (chunk + static_cast<int>(sizeof(float))) + static_cast<int>(reduce_stage_bytes);
  };
  while (warps * stage_bytes(chunk_bytes) > shared && chunk_bytes > 512)
    chunk_bytes = chunk_bytes / 2 / 16 * 16;
  while (warps * stage_bytes(chunk_bytes) > shared && warps > 1)
    warps /= 2;
  const int stages = shared / (warps * stage_bytes(chunk_bytes));
  return {{sms, warps, stages > 4 ? 4 : stages < 1 ? 1 : stages}, chunk_bytes};
}
constexpr ReduceTuning combine_tuning(const Shape& shape, int sms) {
  return reduce_tuning(shape.n_ranks, shape.hidden * 2, sms, 16, 3584);
}
/// One chunk for each warp where tokens are few.
constexpr ReduceTuning low_latency_combine_tuning(const Shape& shape, bool weighted, int sms) {
  ReduceTuning chosen =
      reduce_tuning(weighted ? shape.top_k : shape.n_ranks, shape.hidden * 2, sms, 8, 1024);
  chosen.tuning.stages = 1;
  return chosen;
}

} // namespace shmemctl::moe
