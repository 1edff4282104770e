// The combine of low_latency_internode.h: every block first sends its share of the outputs for
// ranks that are not mapped, then adds up its share of this rank's tokens.
#pragma once

#include "kernels/moe/low_latency_internode_common.cuh"
#include "kernels/moe/rails.cuh"
#include "kernels/moe/vector_cast.cuh"

namespace shmemctl::moe {

/// The output rows of a warp's token: at most one per expert.
struct TokenRows {
  const uint4* rows[max_top_k]; ///< nullptr: no such row
  float weights[max_top_k];
};
/// By rank: the longest time that this block has waited for an output of that rank.
struct LongestWaits {
  std::uint64_t longest_ns[max_ranks];
};

class LowLatencyInternodeReducer {
public:
  /// @param shared TokenRows of each warp
  __device__ LowLatencyInternodeReducer(const DeviceJob& job, const LowLatencyInternodeCombine& all,
                                        TokenRows* shared, LongestWaits& waits, std::uint64_t epoch)
      : job_(job), all_(all), shape_(all.shape), buffers_(job, all.shape, all.memory),
        epoch_(epoch), of_row_(rows_of(all.shape, all.weighted)), row_bytes_(all.shape.hidden * 2),
        warp_(device::Block::rank() / device::Warp::size()),
        warps_(device::Block::size() / device::Warp::size()), list_(shared[warp_]), waits_(waits) {}

  /// Called by all threads of the grid.
  __device__ void send() const {
    LowLatencyFlags* const flags = all_.memory.mapped.flags;
    for (std::int32_t rank = device::Block::rank(); blockIdx.x == 0 && rank < shape_.n_ranks;
         rank += device::Block::size())
      if (!buffers_.is_remote(rank) && !buffers_.is_masked(rank)) // as announce_outputs()
        device::store_release(device::pointer_to(job_, &flags->ready[job_.pe], rank), epoch_);
    const std::int32_t buffer = buffer_of_dispatch(device::load_relaxed(&flags->received));
    // Each rank starts with the next higher one, so that not all send to the same rank.
    for (std::int32_t i = 1; i < shape_.n_ranks; ++i) {
      const std::int32_t source_rank = (job_.pe + i) % shape_.n_ranks;
      if (buffers_.is_remote(source_rank) && !buffers_.is_masked(source_rank))
        each_of_mine(all_.counts[source_rank],
                     [&](std::int32_t slot) { send_outputs(buffer, source_rank, slot); });
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
  /// Sends the outputs of a row; in a weighted combine those of this rank's experts.
  __device__ void send_outputs(std::int32_t buffer, std::int32_t source_rank,
                               std::int32_t slot) const {
    const MetadataLayout layout(shape_, all_.scales);
    const auto* const experts = reinterpret_cast<const std::int32_t*>(
        all_.memory.mapped.records + buffers_.slot(buffer, source_rank, slot) * layout.bytes() +
        layout.experts() * 4);
    const std::int64_t here = buffers_.output_slot(source_rank, slot, of_row_, 0);
    const std::int64_t there = buffers_.output_slot(job_.pe, slot, of_row_, 0);
    for (std::int32_t which = 0; which < of_row_; ++which)
      if (!all_.weighted || experts[which] != no_expert)
        device::put_signal_nbi<device::Warp>(
            job_, all_.memory.returned_outputs + (there + which) * row_bytes_,
            all_.memory.mapped.outputs + output_of(here + which) * row_bytes_,
            static_cast<std::size_t>(row_bytes_), all_.memory.output_signals + there + which,
            epoch_, source_rank);
  }
  /// Row in `outputs` of this rank's output with index `number` by slot.
  __device__ std::int64_t output_of(std::int64_t number) const {
    return all_.output_rows_by_slot == nullptr ? number : all_.output_rows_by_slot[number];
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
  /// Finds the token's i-th row: that of its i-th choice if weighted, else that of its i-th rank.
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
    const std::byte* const row = buffers_.is_remote(rank) ? returned_row(rank, slot, which)
                                                          : mapped_row(token, rank, slot, which);
    list_.rows[i] = reinterpret_cast<const uint4*>(row);
  }
  __device__ const std::byte* mapped_row(std::int32_t token, std::int32_t rank, std::int32_t slot,
                                         std::int32_t which) const {
    const std::uint64_t* const word = &all_.memory.mapped.flags->ready[rank];
    if (!wait(rank, [&] { return device::load_acquire(word) >= epoch_; }))
      return nullptr;
    // output_rows is written by the rank that has the output, and is valid once the output is.
    const std::int64_t at =
        all_.output_rows == nullptr
            ? buffers_.output_slot(job_.pe, slot, of_row_, which)
            : all_.output_rows[static_cast<std::int64_t>(token) * shape_.top_k + which];
    return device::pointer_to(job_, all_.memory.mapped.outputs, rank) + at * row_bytes_;
  }
  __device__ const std::byte* returned_row(std::int32_t rank, std::int32_t slot,
                                           std::int32_t which) const {
    const std::int64_t at = buffers_.output_slot(rank, slot, of_row_, which);
    if (!wait(rank,
              [&] { return device::load_acquire(all_.memory.output_signals + at) == epoch_; }))
      return nullptr;
    return all_.memory.returned_outputs + at * row_bytes_;
  }
  template <class Ready>
  __device__ bool wait(std::int32_t rank, const Ready& ready) const {
    const std::uint64_t begin_ns = device::global_time_ns();
    const bool arrived = wait_or_mask(all_.memory.mapped.flags, rank, all_.rank_timeout_ns, ready);
    if (blockIdx.x == 0)
      raise_shared(waits_.longest_ns + rank, device::global_time_ns() - begin_ns);
    return arrived;
  }
  /// Block 0: its warps wait at the same time, so the longest wait per rank counts. A rank that has
  /// no output for this block's tokens is not waited for.
  __device__ void count_waits() const {
    device::Block::sync();
    std::uint64_t* const sums_ns = all_.memory.mapped.flags->wait_ns[1];
    for (std::int32_t rank = device::Block::rank(); blockIdx.x == 0 && rank < shape_.n_ranks;
         rank += device::Block::size())
      sums_ns[rank] += waits_.longest_ns[rank];
  }

  /// Sum of 16 bytes of each row, in their order, with several loads in flight.
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
  const LowLatencyInternodeCombine& all_;
  const Shape& shape_;
  InternodeBuffers buffers_;
  std::uint64_t epoch_;
  std::int32_t of_row_, row_bytes_, warp_, warps_;
  TokenRows& list_;
  LongestWaits& waits_; ///< the block's longest waits
};

/// Called by all threads of a grid. @param shared, waits of the block
__device__ inline void run_low_latency_internode_combine(const DeviceJob& job,
                                                         const LowLatencyInternodeCombine& all,
                                                         TokenRows* shared, LongestWaits& waits) {
  LowLatencyFlags* const flags = all.memory.mapped.flags;
  const std::uint64_t epoch = device::load_relaxed(&flags->combined) + 1;
  const LowLatencyInternodeReducer adder(job, all, shared, waits, epoch);
  if (all.phases != Phases::receive)
    adder.send();
  if (all.phases == Phases::send)
    return;
  adder.add_up();
  count_internode_call(&flags->blocks_done[0], gridDim.x, &flags->combined, epoch);
}

} // namespace shmemctl::moe
