// The reduction of combine: the source rank of a token loads the output rows of that token straight
// from the memory of the ranks that hold them, in bulk, a chunk of channels at a time, and adds
// them up.
#pragma once

#include "kernels/device/symmetric_address.cuh"
#include "kernels/moe/bulk_copy.cuh"
#include "kernels/moe/combine_reduce.h"
#include "kernels/moe/vector_cast.cuh"

namespace shmemctl::moe {

/// Most threads of a block: the reduction needs many registers per thread.
inline constexpr int reduce_threads = 512;

/// Barrier of a stage, and a bit mask of the rows that it holds.
struct ReduceStage {
  device::ArrivalBarrier barrier;
  std::uint32_t rows;
  std::uint32_t padding;
};
static_assert(sizeof(ReduceStage) == reduce_stage_bytes, "as counted");

/// Loads 16 bytes of shared memory. (The compiler would not move an ordinary load ahead of earlier
/// stores to global memory, because it cannot tell that they do not overlap.)
__device__ inline uint4 load_shared(std::uint32_t address) {
  uint4 value;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "r"(address));
  return value;
}

/// Address of a row, and the rank that holds it.
struct FoundRow {
  const std::byte* at = nullptr; ///< nullptr: no such row
  std::int32_t rank = 0;
  float weight = 0;
};

/// The pipeline of one warp over the chunks of its tokens. `Rows::find()`, called by all lanes,
/// returns to lane i the i-th row of a token.
template <class Rows, int max_rows>
class CombineReducer {
public:
  __device__ CombineReducer(const ReduceShape& shape, const Rows& rows, std::byte* shared)
      : shape_(shape), rows_(rows), lane_(static_cast<int>(threadIdx.x % 32)),
        chunks_((shape.row_bytes + shape.chunk_bytes - 1) / shape.chunk_bytes),
        units_(static_cast<std::int64_t>(shape.tokens) * chunks_) {
    const auto n_warps = static_cast<std::int32_t>(blockDim.x / 32);
    const auto warp = static_cast<std::int32_t>(threadIdx.x / 32);
    const std::int32_t first_stage = warp * shape.stages, all = n_warps * shape.stages;
    workers_ = static_cast<std::int64_t>(gridDim.x) * n_warps;
    worker_ = static_cast<std::int64_t>(warp) * gridDim.x + blockIdx.x;
    stage_memory_ = shared + static_cast<std::ptrdiff_t>(first_stage) * shape.stage_bytes();
    auto* const stages = reinterpret_cast<ReduceStage*>(shared + static_cast<std::ptrdiff_t>(all) *
                                                                     shape.stage_bytes());
    stages_ = stages + first_stage;
    weights_ = reinterpret_cast<float*>(stages + all) + first_stage * shape.rows;
    if (lane_ == 0) {
      for (int i = 0; i < shape.stages; ++i)
        stages_[i].barrier.init();
      device::ArrivalBarrier::fence_init();
    }
    __syncwarp();
  }

  /// Does the part of the work that needs no rows of other ranks.
  __device__ void prepare() { find(0); }
  /// Called when the rows are complete and this thread has acquired their flags.
  /// @param ranks a bit for each rank that responded; rows of the others are left out
  __device__ void run(std::uint32_t ranks = ~0u) {
    ranks_ = ranks;
    // Proxy fence: the acquired stores of other ranks are ordered before the bulk loads of their
    // rows.
    device::fence_global_for_bulk();
    for (int i = 0; i < shape_.stages; ++i) {
      load(i, i);
      find(i + 1);
    }
    int stage = 0;
    std::uint32_t parity = 0;
    std::int64_t i = 0;
    for (std::int64_t unit = worker_; unit < units_; ++i, unit += workers_) {
      stages_[stage].barrier.wait(parity);
      reduce(unit, stage);
      // This lane's reads of the stage come before the copy engine writes there again. (Without
      // this fence, single rows are sometimes wrong.)
      device::fence_shared_for_bulk();
      __syncwarp();
      load(i + shape_.stages, stage);
      find(i + shape_.stages + 1);
      if (++stage == shape_.stages) {
        stage = 0;
        parity ^= 1;
      }
    }
  }

private:
  /// Groups of 16 bytes of a row that a lane holds in registers at once.
  static constexpr int at_once = max_rows <= 4 ? 4 : max_rows <= 8 ? 2 : 1;

  struct Chunk {
    std::int64_t token;
    std::int32_t begin_bytes, size_bytes;
  };
  __device__ Chunk chunk_of(std::int64_t unit) const {
    const std::int64_t token = unit / chunks_;
    const std::int32_t begin = static_cast<std::int32_t>(unit % chunks_) * shape_.chunk_bytes;
    const std::int32_t left = shape_.row_bytes - begin;
    return {token, begin, left < shape_.chunk_bytes ? left : shape_.chunk_bytes};
  }
  /// Finds the rows of this warp's i-th unit (a chunk of a token), well before they are loaded.
  __device__ void find(std::int64_t i) {
    const std::int64_t unit = worker_ + i * workers_;
    if (unit < units_)
      row_ = rows_.find(static_cast<std::int32_t>(unit / chunks_), lane_);
  }
  /// Begins to load the i-th unit, for which find() was called last, into a stage.
  __device__ void load(std::int64_t i, int stage) {
    const std::int64_t unit = worker_ + i * workers_;
    if (unit >= units_)
      return;
    const Chunk chunk = chunk_of(unit);
    const bool takes_part = row_.at != nullptr && (ranks_ >> row_.rank & 1) != 0;
    const std::uint32_t there = __ballot_sync(0xffffffffu, takes_part);
    if (Rows::weighted && lane_ < shape_.rows)
      weights_[stage * shape_.rows + lane_] = row_.weight;
    if (lane_ == 0) {
      stages_[stage].rows = there;
      stages_[stage].barrier.expect(static_cast<std::uint32_t>(__popc(there) * chunk.size_bytes));
    }
    __syncwarp();
    if (takes_part)
      device::bulk_load(stage_memory_ + static_cast<std::ptrdiff_t>(stage) * shape_.stage_bytes() +
                            lane_ * shape_.chunk_bytes,
                        row_.at + chunk.begin_bytes, static_cast<std::uint32_t>(chunk.size_bytes),
                        stages_[stage].barrier);
  }
  __device__ void reduce(std::int64_t unit, int stage) const {
    const Chunk chunk = chunk_of(unit);
    const std::int64_t begin = (chunk.token * shape_.row_bytes + chunk.begin_bytes) / 16;
    const std::int32_t pieces = chunk.size_bytes / 16;
    std::int32_t at = lane_;
    for (; at + 32 * (at_once - 1) < pieces; at += 32 * at_once)
      add_up<at_once>(stage, begin, at);
    for (; at < pieces; at += 32)
      add_up<1>(stage, begin, at);
  }
  /// Adds up 16 bytes of each row at each of the `count` places `at`, at + 32, ... (in units of 16
  /// bytes): first all loads, then all sums.
  template <int count>
  __device__ void add_up(int stage, std::int64_t begin, std::int32_t at) const {
    const std::uint32_t there = stages_[stage].rows;
    const std::uint32_t address =
        device::shared_address(stage_memory_) +
        static_cast<std::uint32_t>(stage * shape_.stage_bytes() + at * 16);
    uint4 values[count][max_rows];
#pragma unroll
    for (int row = 0; row < max_rows; ++row)
      if ((there >> row & 1) != 0)
#pragma unroll
        for (int i = 0; i < count; ++i)
          values[i][row] = load_shared(
              address + static_cast<std::uint32_t>(row * shape_.chunk_bytes + i * 32 * 16));
#pragma unroll
    for (int i = 0; i < count; ++i) {
      EightFloats total;
      total.set(0);
      if (shape_.bias != nullptr)
        total.add(__ldg(reinterpret_cast<const uint4*>(shape_.bias) + begin + at + i * 32));
#pragma unroll
      for (int row = 0; row < max_rows; ++row)
        if ((there >> row & 1) != 0) {
          if (Rows::weighted)
            total.add_weighted(weights_[stage * shape_.rows + row], values[i][row]);
          else
            total.add(values[i][row]);
        }
      reinterpret_cast<uint4*>(shape_.results)[begin + at + i * 32] = total.rounded();
    }
  }

  const ReduceShape& shape_;
  const Rows& rows_;
  int lane_;
  std::int32_t chunks_;
  std::int64_t units_, workers_, worker_;
  std::byte* stage_memory_;
  ReduceStage* stages_;
  float* weights_;
  FoundRow row_;
  std::uint32_t ranks_ = 0;
};

/// One row from each destination rank of the token, in rank order.
class RowsOfRanks {
public:
  static constexpr bool weighted = false;
  /// Called by a warp: lane r serves rank r. @param base index of this rank's first row at rank r
  __device__ RowsOfRanks(const DeviceJob& job, const std::byte* outputs, const std::int32_t* slots,
                         std::int32_t n_ranks, std::int32_t row_bytes, std::int32_t base)
      : slots_(slots), n_ranks_(n_ranks), row_bytes_(row_bytes) {
    const auto rank = static_cast<std::int32_t>(threadIdx.x % 32);
    if (rank < n_ranks)
      rows_ = device::pointer_to(job, outputs, rank) + static_cast<std::int64_t>(base) * row_bytes;
  }
  __device__ FoundRow find(std::int32_t token, int rank) const {
    FoundRow found;
    if (rank >= n_ranks_)
      return found;
    const std::int32_t slot = slots_[static_cast<std::int64_t>(token) * n_ranks_ + rank];
    found.at = slot < 0 ? nullptr : rows_ + static_cast<std::int64_t>(slot) * row_bytes_;
    found.rank = rank;
    return found;
  }

private:
  const std::int32_t* slots_;
  std::int32_t n_ranks_, row_bytes_;
  const std::byte* rows_ = nullptr;
};

} // namespace shmemctl::moe
