// Combine of the high-throughput mode: one row from each rank.
#pragma once

#include "kernels/moe/call.cuh"
#include "kernels/moe/gather.cuh"
#include "kernels/moe/high_throughput.h"

namespace shmemctl::moe {

SHMEMCTL_HOST_DEVICE inline GatherShape gather_shape(const CombineArguments& all) {
  return {all.tokens, all.shape.hidden * 2, all.shape.n_ranks, all.chunk_bytes, all.tuning.stages,
          all.bias,   all.results};
}

template <int most_ranks>
__global__ void __launch_bounds__(gather_threads, 1)
    combine(const __grid_constant__ DeviceJob job, const __grid_constant__ CombineArguments all) {
  extern __shared__ __align__(128) std::byte shared[];
  const Call call(job, all.memory.cells, all.shape.n_ranks);
  call.announce();
  const GatherShape shape = gather_shape(all);
  const auto rank = static_cast<std::int32_t>(threadIdx.x % 32);
  const RowsOfRanks rows(job, all.memory.outputs, all.plan.slots, all.shape.n_ranks,
                         shape.row_bytes, rank < all.shape.n_ranks ? all.plan.bases[rank] : 0);
  Gatherer<RowsOfRanks, most_ranks> gatherer(shape, rows, shared);
  gatherer.prepare();
  if (call.wait_for_all())
    gatherer.run();
  call.finish();
}

} // namespace shmemctl::moe
