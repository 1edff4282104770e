// The combine of far_latency.h: every block first sends its share of what ranks that are not mapped
// are to get, then adds up its share of this rank's tokens.
#pragma once

#include "kernels/moe/low_latency_internode_common.cuh"
#include "kernels/moe/rails.cuh"
#include "kernels/moe/vector_cast.cuh"

namespace shmemctl::moe {

/// Where the rows of a warp's token are: it goes to as many ranks as it has choices at most.
struct FarRows {
  const uint4* rows[max_top_k]; ///< nullptr: there is none
  float weights[max_top_k];
};
/// By rank: the longest wait of a block for one of its outputs.
struct FarWaits {
  std::uint64_t longest_ns[max_ranks];
};

class FarLatencyAdder {
public:
  /// @param shared FarRows of each warp
  __device__ FarLatencyAdder(const DeviceJob& job, const FarLatencyCombine& all, FarRows* shared,
                             FarWaits& waits, std::uint64_t epoch)
      : job_(job), all_(all), shape_(all.shape), places_(job, all.shape, all.memory), epoch_(epoch),
        of_row_(rows_of(all.shape, all.weighted)), row_bytes_(all.shape.hidden * 2),
        warp_(device::Block::rank() / device::Warp::size()),
        warps_(device::Block::size() / device::Warp::size()), list_(shared[warp_]), waits_(waits) {}

  /// By all threads of the grid.
  __device__ void send() const {
    LowLatencyCells* const cells = all_.memory.near.cells;
    for (std::int32_t rank = device::Block::rank(); blockIdx.x == 0 && rank < shape_.n_ranks;
         rank += device::Block::size())
      if (!places_.is_far(rank) && !places_.is_masked(rank)) // as announce_outputs()
        device::store_release(device::pointer_to(job_, &cells->ready[job_.pe], rank), epoch_);
    const std::int32_t half = half_of_dispatch(device::load_relaxed(&cells->received));
    // Beginning behind me: that all begin with the same home would be a queue before it.
    for (std::int32_t i = 1; i < shape_.n_ranks; ++i) {
      const std::int32_t home = (job_.pe + i) % shape_.n_ranks;
      if (places_.is_far(home) && !places_.is_masked(home))
        each_of_mine(all_.counts[home], [&](std::int32_t slot) { send_outputs(half, home, slot); });
    }
  }
  __device__ void add_up() const {
    for (std::int32_t rank = device::Block::rank(); rank < max_ranks; rank += device::Block::size())
      waits_.longest_ns[rank] = 0;
    device::Block::sync();
    each_of_mine(all_.tokens, [&](std::int32_t token) { add_up_token(token); });
    count_waits();
  }

private:
  /// Calls act(i) for this warp's share of 0 to count - 1.
  template <class Act>
  __device__ void each_of_mine(std::int32_t count, const Act& act) const {
    for (std::int32_t i =
             static_cast<std::int32_t>(blockIdx.x) + warp_ * static_cast<std::int32_t>(gridDim.x);
         i < count; i += warps_ * static_cast<std::int32_t>(gridDim.x))
      act(i);
  }
  /// What this rank's experts made of a row; of a weighted combine the choices that are its own.
  __device__ void send_outputs(std::int32_t half, std::int32_t home, std::int32_t slot) const {
    const RecordLayout layout(shape_, all_.scales);
    const auto* const experts = reinterpret_cast<const std::int32_t*>(
        all_.memory.near.records + places_.slot(half, home, slot) * layout.bytes() +
        layout.experts() * 4);
    const std::int64_t here = places_.back(home, slot, of_row_, 0);
    const std::int64_t there = places_.back(job_.pe, slot, of_row_, 0);
    for (std::int32_t which = 0; which < of_row_; ++which)
      if (!all_.weighted || experts[which] != no_expert)
        device::put_signal_nbi<device::Warp>(job_, all_.memory.back + (there + which) * row_bytes_,
                                             all_.memory.near.outputs +
                                                 output_of(here + which) * row_bytes_,
                                             static_cast<std::size_t>(row_bytes_),
                                             all_.memory.back_words + there + which, epoch_, home);
  }
  /// Where this rank's output lies that has that number if it is not packed.
  __device__ std::int64_t output_of(std::int64_t number) const {
    return all_.far_places == nullptr ? number : all_.far_places[number];
  }

  __device__ void add_up_token(std::int32_t token) const {
    device::Warp::sync(); // the last token's list has been read
    const std::int32_t rows = all_.weighted ? shape_.top_k : count_of_ranks(ranks_of(token));
    for (std::int32_t i = device::Warp::rank(); i < rows; i += device::Warp::size())
      find(token, i);
    device::Warp::sync();
    auto* const result = reinterpret_cast<uint4*>(all_.results) +
                         static_cast<std::int64_t>(token) * (row_bytes_ / 16);
    for (std::int32_t at = device::Warp::rank(); at < row_bytes_ / 16; at += device::Warp::size())
      result[at] = sum_at(rows, at);
  }
  __device__ RankMask ranks_of(std::int32_t token) const {
    return ranks_of_token(shape_, all_.experts + static_cast<std::int64_t>(token) * shape_.top_k);
  }
  /// The token's i-th row: of a choice, or of a rank.
  __device__ void find(std::int32_t token, std::int32_t i) const {
    std::int32_t rank = 0;
    list_.rows[i] = nullptr;
    if (all_.weighted) {
      const std::int64_t choice = static_cast<std::int64_t>(token) * shape_.top_k + i;
      if (all_.experts[choice] < 0)
        return;
      rank = shape_.rank_of_expert(all_.experts[choice]);
      list_.weights[i] = all_.weights[choice];
    } else {
      rank = ith_rank(ranks_of(token), i);
    }
    const std::int32_t slot = all_.slots[static_cast<std::int64_t>(token) * shape_.n_ranks + rank];
    if (slot < 0)
      return;
    const std::int32_t which = all_.weighted ? i : 0;
    const std::byte* const row =
        places_.is_far(rank) ? far_row(rank, slot, which) : near_row(token, rank, slot, which);
    list_.rows[i] = reinterpret_cast<const uint4*>(row);
  }
  __device__ const std::byte* near_row(std::int32_t token, std::int32_t rank, std::int32_t slot,
                                       std::int32_t which) const {
    const std::uint64_t* const word = &all_.memory.near.cells->ready[rank];
    if (!wait(rank, [&] { return device::load_acquire(word) >= epoch_; }))
      return nullptr;
    // A place is written by the rank that has the output, and is there when the output is.
    const std::int64_t at =
        all_.places == nullptr
            ? places_.back(job_.pe, slot, of_row_, which)
            : all_.places[static_cast<std::int64_t>(token) * shape_.top_k + which];
    return device::pointer_to(job_, all_.memory.near.outputs, rank) + at * row_bytes_;
  }
  __device__ const std::byte* far_row(std::int32_t rank, std::int32_t slot,
                                      std::int32_t which) const {
    const std::int64_t at = places_.back(rank, slot, of_row_, which);
#ifndef SHMEMCTL_MUTATE_MOE_FAR_BACK_UNHEARD
    if (!wait(rank, [&] { return device::load_acquire(all_.memory.back_words + at) == epoch_; }))
      return nullptr;
#endif
    return all_.memory.back + at * row_bytes_;
  }
  template <class Ready>
  __device__ bool wait(std::int32_t rank, const Ready& ready) const {
    const std::uint64_t begin_ns = device::global_time_ns();
    const bool came = wait_or_mask(all_.memory.near.cells, rank, all_.patience_ns, ready);
    if (blockIdx.x == 0)
      raise_shared(waits_.longest_ns + rank, device::global_time_ns() - begin_ns);
    return came;
  }
  /// Of block 0: its warps wait at the same time, so of a rank the longest wait counts. One that
  /// has nothing for this block's tokens is not waited for.
  __device__ void count_waits() const {
    device::Block::sync();
    std::uint64_t* const sums_ns = all_.memory.near.cells->wait_ns[1];
    for (std::int32_t rank = device::Block::rank(); blockIdx.x == 0 && rank < shape_.n_ranks;
         rank += device::Block::size())
      sums_ns[rank] += waits_.longest_ns[rank];
  }

  /// 16 bytes of each row, in their order. Several loads are on the way.
  __device__ uint4 sum_at(std::int32_t rows, std::int32_t at) const {
    constexpr std::int32_t at_once = 4;
    EightFloats total;
    total.set(0);
    for (std::int32_t first = 0; first < rows; first += at_once) {
      uint4 values[at_once];
#pragma unroll
      for (std::int32_t i = 0; i < at_once; ++i)
        if (first + i < rows && list_.rows[first + i] != nullptr)
          values[i] = list_.rows[first + i][at];
#pragma unroll
      for (std::int32_t i = 0; i < at_once; ++i)
        if (first + i < rows && list_.rows[first + i] != nullptr) {
          if (all_.weighted)
            total.add_weighted(list_.weights[first + i], values[i]);
          else
            total.add(values[i]);
        }
    }
    return total.rounded();
  }

  const DeviceJob& job_;
  const FarLatencyCombine& all_;
  const Shape& shape_;
  FarPlaces places_;
  std::uint64_t epoch_;
  std::int32_t of_row_, row_bytes_, warp_, warps_;
  FarRows& list_;
  FarWaits& waits_; ///< of the block
};

/// By all threads of a grid. @param shared, waits of the block
__device__ inline void run_far_latency_combine(const DeviceJob& job, const FarLatencyCombine& all,
                                               FarRows* shared, FarWaits& waits) {
  LowLatencyCells* const cells = all.memory.near.cells;
  const std::uint64_t epoch = device::load_relaxed(&cells->combined) + 1;
  const FarLatencyAdder adder(job, all, shared, waits, epoch);
  if (all.halves != Halves::receive)
    adder.send();
  if (all.halves == Halves::send)
    return;
  adder.add_up();
  count_far_call(&cells->blocks_done[0], gridDim.x, &cells->combined, epoch);
}

} // namespace shmemctl::moe
