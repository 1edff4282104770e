// High-throughput combine: each token's source rank loads one output row from each of its
// destination ranks and adds them up.
#pragma once

#include "kernels/moe/call.cuh"
#include "kernels/moe/combine_reduce.cuh"
#include "kernels/moe/high_throughput.h"

namespace shmemctl::moe {

SHMEMCTL_HOST_DEVICE inline ReduceShape reduce_shape(const CombineArguments& all) {
  return {all.tokens, all.shape.hidden * 2, all.shape.n_ranks, all.chunk_bytes, all.tuning.stages,
          all.bias,   all.results};
}

/// Called by all threads of the grid once all ranks have entered: for each of the top_k experts of
/// this rank's tokens, the sum of the weights that the ranks return.
template <int ranks_limit>
__device__ inline void combine_weights(const DeviceJob& job, const CombineArguments& all) {
  const std::int32_t top_k = all.shape.top_k, n_ranks = all.shape.n_ranks;
  const std::int32_t choices = all.tokens * top_k;
  const auto step = static_cast<std::int32_t>(gridDim.x * blockDim.x);
  for (auto i = static_cast<std::int32_t>(blockIdx.x * blockDim.x + threadIdx.x); i < choices;
       i += step) {
    const std::int32_t token = i / top_k, choice = i % top_k;
    float given[ranks_limit]; // all loads are in flight at once
#pragma unroll
    for (int rank = 0; rank < ranks_limit; ++rank) {
      const std::int32_t slot =
          rank < n_ranks ? all.plan.slots[static_cast<std::int64_t>(token) * n_ranks + rank] : -1;
      given[rank] =
          slot < 0
              ? 0
              : device::pointer_to(
                    job, all.output_weights,
                    rank)[static_cast<std::int64_t>(all.plan.bases[rank] + slot) * top_k + choice];
    }
    float total = 0;
#pragma unroll
    for (int rank = 0; rank < ranks_limit; ++rank)
      total += given[rank];
    all.combined_weights[i] = total;
  }
}

template <int ranks_limit>
__global__ void __launch_bounds__(reduce_threads, 1)
    combine(const __grid_constant__ DeviceJob job, const __grid_constant__ CombineArguments all) {
  extern __shared__ __align__(128) std::byte shared[];
  const Call call(job, all.memory.flags, all.shape.n_ranks);
  call.announce();
  const ReduceShape shape = reduce_shape(all);
  const auto rank = static_cast<std::int32_t>(threadIdx.x % 32);
  const RowsOfRanks rows(job, all.memory.outputs, all.plan.slots, all.shape.n_ranks,
                         shape.row_bytes, rank < all.shape.n_ranks ? all.plan.bases[rank] : 0);
  CombineReducer<RowsOfRanks, ranks_limit> reducer(shape, rows, shared);
  reducer.prepare();
  const bool all_arrived = call.wait_for_all();
  if (all_arrived) {
    reducer.run();
    if (all.combined_weights != nullptr)
      combine_weights<ranks_limit>(job, all);
  }
  call.finish(all_arrived);
}

} // namespace shmemctl::moe
