// Low-latency combine: each rank signals that its outputs may be loaded, then loads and adds up the
// outputs for its own tokens.
#pragma once

#include "kernels/moe/combine_reduce.cuh"
#include "kernels/moe/low_latency_common.cuh"

namespace shmemctl::moe {

/// One row per expert of the token, in top-k order.
class RowsOfChoices {
public:
  static constexpr bool weighted = true;
  /// Called by a warp: lane r serves rank r.
  __device__ RowsOfChoices(const DeviceJob& job, const LowLatencyCombine& all)
      : all_(all), me_(job.pe), lane_(static_cast<int>(threadIdx.x % 32)) {
    if (lane_ < all.shape.n_ranks)
      outputs_ =
          reinterpret_cast<std::uintptr_t>(device::pointer_to(job, all.memory.outputs, lane_));
  }

  __device__ FoundRow find(std::int32_t token, int k) const {
    const Shape& shape = all_.shape;
    FoundRow found;
    std::int32_t expert = no_expert, slot = 0, output_row = 0;
    if (k < shape.top_k) {
      const std::int64_t choice = static_cast<std::int64_t>(token) * shape.top_k + k;
      expert = __ldg(all_.experts + choice);
      found.weight = __ldg(all_.weights + choice);
      if (all_.output_rows != nullptr)
        output_row = all_.output_rows[choice];
    }
    if (lane_ < shape.n_ranks && all_.output_rows == nullptr) // in flight with the loads above
      slot = all_.slots[static_cast<std::int64_t>(token) * shape.n_ranks + lane_];
    found.rank = expert < 0 ? 0 : shape.rank_of_expert(expert);
    slot = __shfl_sync(0xffffffffu, slot, found.rank);
    const auto outputs = static_cast<std::uintptr_t>(
        __shfl_sync(0xffffffffu, static_cast<unsigned long long>(outputs_), found.rank));
    const std::int64_t row =
        all_.output_rows != nullptr
            ? output_row
            : static_cast<std::int64_t>(fixed_slot(shape, me_, slot)) * shape.top_k + k;
    if (expert >= 0)
      found.at = reinterpret_cast<const std::byte*>(outputs) + row * shape.hidden * 2;
    return found;
  }

private:
  const LowLatencyCombine& all_;
  std::int32_t me_;
  int lane_;
  std::uintptr_t outputs_ = 0; ///< address of the outputs of the rank that this lane serves
};

SHMEMCTL_HOST_DEVICE inline ReduceShape reduce_shape(const LowLatencyCombine& all) {
  return {all.tokens,      all.shape.hidden * 2, all.weighted ? all.shape.top_k : all.shape.n_ranks,
          all.chunk_bytes, all.tuning.stages,    nullptr,
          all.results};
}

/// Called by all threads of a block. @return a bit for each rank whose outputs may be loaded
__device__ inline std::uint32_t wait_for_outputs(const LowLatencyCombine& all,
                                                 std::uint64_t epoch) {
  __shared__ std::uint32_t there;
  if (threadIdx.x < 32) {
    const auto rank = static_cast<std::int32_t>(threadIdx.x);
    LowLatencyFlags* const flags = all.memory.flags;
    const std::uint64_t begin_ns = device::global_time_ns();
    bool arrived = false;
    if (rank < all.shape.n_ranks)
      arrived = wait_or_mask(flags, rank, all.rank_timeout_ns,
                             [&] { return device::load_acquire(&flags->ready[rank]) >= epoch; });
    if (blockIdx.x == 0 && rank < all.shape.n_ranks)
      count_wait(flags, 1, rank, begin_ns);
    const std::uint32_t votes = __ballot_sync(0xffffffffu, arrived);
    if (threadIdx.x == 0)
      there = votes;
  }
  __syncthreads();
  return there;
}

/// Called by block 0: signals all ranks that this rank's outputs may be loaded. Release: the
/// experts' stores of earlier kernels are ordered before the flag.
/// @param is_masked of the rank that this thread serves: a masked rank is not signalled, because
///        its rows were not taken and the buffer of their outputs holds data of another call
__device__ inline void announce_outputs(const DeviceJob& job, const LowLatencyCombine& all,
                                        std::uint64_t epoch, bool is_masked) {
  const auto rank = static_cast<std::int32_t>(threadIdx.x);
  LowLatencyFlags* const flags = all.memory.flags;
  if (rank >= all.shape.n_ranks || is_masked)
    return;
  std::uint64_t* const word = device::pointer_to(job, &flags->ready[job.pe], rank);
  device::store_release(word, epoch);
}

/// Most threads of a block of the kernels that are launched by default: with so few, a thread has
/// all the registers that it needs. In blocks of reduce_threads a thread has 128 registers, keeps
/// the rest of its values in local memory and loads them again after each fence.
inline constexpr int few_reduce_threads = 256;

template <bool weighted, int max_rows, int max_threads>
__global__ void __launch_bounds__(max_threads, 1)
    low_latency_combine(const __grid_constant__ DeviceJob job,
                        const __grid_constant__ LowLatencyCombine all) {
  extern __shared__ __align__(128) std::byte shared[];
  LowLatencyFlags* const flags = all.memory.flags;
  // Both loads are in flight together.
  const bool is_masked = threadIdx.x < static_cast<unsigned>(all.shape.n_ranks) &&
                         device::load_relaxed(&flags->masked[threadIdx.x]) != 0;
  const std::uint64_t epoch = device::load_relaxed(&flags->combined) + 1;
  if (blockIdx.x == 0 && all.phases != Phases::receive)
    announce_outputs(job, all, epoch, is_masked);
  if (all.phases == Phases::send)
    return;
  const ReduceShape shape = reduce_shape(all);
  const auto count_and_wait = [&] {
    count_call_early(&flags->blocks_done[0], gridDim.x, &flags->combined, epoch);
    return wait_for_outputs(all, epoch);
  };
  if constexpr (weighted) {
    const RowsOfChoices rows(job, all);
    CombineReducer<RowsOfChoices, max_rows> reducer(shape, rows, shared);
    // output_rows is written by other ranks and is valid once their outputs are.
    if (all.output_rows == nullptr)
      reducer.prepare();
    const std::uint32_t there = count_and_wait();
    if (all.output_rows != nullptr)
      reducer.prepare();
    reducer.run(there);
  } else {
    const RowsOfRanks rows(job, all.memory.outputs, all.slots, all.shape.n_ranks, shape.row_bytes,
                           fixed_slot(all.shape, job.pe, 0));
    CombineReducer<RowsOfRanks, max_rows> reducer(shape, rows, shared);
    reducer.prepare();
    reducer.run(count_and_wait());
  }
}

} // namespace shmemctl::moe
