// Internode combine: every block first adds up and sends its share of the sums for other nodes,
// then adds up its share of this rank's own tokens as the sums of the other nodes arrive.
#pragma once

#include "kernels/device/signal.cuh"
#include "kernels/moe/call.cuh"
#include "kernels/moe/high_throughput_internode.h"
#include "kernels/moe/rails.cuh"
#include "kernels/moe/vector_cast.cuh"

namespace shmemctl::moe {

/// The output rows of a token on the ranks of this node, in rank order.
template <int max_rows>
struct RowsToAdd {
  const uint4* rows[max_rows];
  int count = 0;

  __device__ void add(const std::byte* row) {
#pragma unroll
    for (int i = 0; i < max_rows; ++i) // not rows[count], so that `rows` stays in registers
      if (i == count)
        rows[i] = reinterpret_cast<const uint4*>(row);
    ++count;
  }
  /// Called by a warp: calls act(piece, sum) for each 16 bytes of the row, with several loads in
  /// flight.
  template <class Act>
  __device__ void each_sum(std::int32_t pieces, const Act& act) const {
    constexpr int at_once = max_rows <= 2 ? 4 : max_rows <= 4 ? 2 : 1;
    const int step = device::Warp::size();
    for (std::int32_t at = device::Warp::rank(); at < pieces; at += step * at_once) {
      uint4 values[at_once][max_rows];
#pragma unroll
      for (int row = 0; row < max_rows; ++row)
#pragma unroll
        for (int i = 0; i < at_once; ++i)
          if (row < count && at + i * step < pieces)
            // NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): set if row < count
            values[i][row] = rows[row][at + i * step];
#pragma unroll
      for (int i = 0; i < at_once; ++i) {
        if (at + i * step >= pieces)
          continue;
        EightFloats sum;
        sum.set(0);
#pragma unroll
        for (int row = 0; row < max_rows; ++row)
          if (row < count)
            sum.add(values[i][row]);
        act(at + i * step, sum);
      }
    }
  }
};

/// @tparam max_node_ranks most ranks of a node
template <int max_node_ranks>
class InternodeReducer {
public:
  __device__ InternodeReducer(const DeviceJob& job, const InternodeCombine& all, const Rails& rails,
                              std::uint64_t epoch)
      : job_(job), all_(all), shape_(all.shape), rails_(rails), epoch_(epoch),
        n_(all.shape.shape.n_ranks), first_rank_(all.shape.first_rank_of_node(job.pe)),
        pieces_(all.shape.output_bytes() / 16), sum_pieces_(all.shape.sum_bytes() / 16),
        warp_(device::Block::rank() / device::Warp::size()),
        warps_(device::Block::size() / device::Warp::size()) {}

  /// Called by a block: adds up and sends its share of the sums for the other ranks of the rail.
  __device__ void send_sums() const {
    const std::int32_t peers = shape_.other_nodes(), units = peers * shape_.chunks();
    for (auto unit = static_cast<std::int32_t>(blockIdx.x); unit < units;
         unit += static_cast<std::int32_t>(gridDim.x)) {
      const std::int32_t peer = unit % peers, chunk = unit / peers;
      const std::int32_t source = rails_.peer_rank(peer);
      const std::int32_t count =
          all_.plan.crossing_counts[source * shape_.n_nodes() + rails_.node()];
      const std::int32_t begin = chunk * shape_.chunk_rows;
      const std::int32_t rest = count - begin;
      const std::int32_t rows = rest < shape_.chunk_rows ? rest : shape_.chunk_rows;
      if (rows <= 0)
        continue;
      for (std::int32_t row = begin + warp_; row < begin + rows; row += warps_)
        add_up_for(source, shape_.crossing_row(peer, row));
      device::Block::sync(); // the whole chunk is written
      send_chunk(peer, chunk, begin, rows);
    }
  }
  /// Called by a block: adds up its share of this rank's tokens, one token per warp at a time.
  /// False: a rank of the rail timed out or its call failed; the report names the missing rank.
  __device__ bool add_up_own() const {
    const auto blocks = static_cast<std::int32_t>(gridDim.x);
    for (auto group = static_cast<std::int32_t>(blockIdx.x); group * warps_ < all_.tokens;
         group += blocks) {
      if (!wait_for_sums(group * warps_))
        return false;
      if (const std::int32_t token = group * warps_ + warp_; token < all_.tokens)
        add_up_token(token);
    }
    return true;
  }

private:
  /// The outputs of a row on the ranks of this node.
  /// @param slots by rank of the node
  __device__ RowsToAdd<max_node_ranks> rows_here(std::int32_t source,
                                                 const std::int32_t* slots) const {
    RowsToAdd<max_node_ranks> rows;
    for (std::int32_t local = 0; local < shape_.node_ranks; ++local) {
      if (slots[local] < 0)
        continue;
      const std::int32_t rank = first_rank_ + local;
      const std::int64_t row = all_.plan.bases[source * n_ + rank] + slots[local];
      rows.add(device::pointer_to(job_, all_.memory.node.outputs, rank) +
               row * shape_.output_bytes());
    }
    return rows;
  }
  /// Called by a warp: calls act(choice, sum) with the sum of the weights that the ranks of this
  /// node return.
  template <class Act>
  __device__ void each_weight(std::int32_t source, const std::int32_t* slots,
                              const Act& act) const {
    const std::int32_t top_k = shape_.shape.top_k;
    for (std::int32_t choice = device::Warp::rank(); choice < top_k;
         choice += device::Warp::size()) {
      float total = 0;
      for (std::int32_t local = 0; local < shape_.node_ranks; ++local) {
        if (slots[local] < 0)
          continue;
        const std::int32_t rank = first_rank_ + local;
        const std::int64_t row = all_.plan.bases[source * n_ + rank] + slots[local];
        total += device::pointer_to(job_, all_.output_weights, rank)[row * top_k + choice];
      }
      act(choice, total);
    }
  }
  /// Weights of a sum that crosses nodes.
  __device__ float* weights_of(std::byte* sums, std::int64_t row) const {
    return reinterpret_cast<float*>(sums + row * shape_.sum_bytes() + shape_.output_bytes());
  }
  __device__ void add_up_for(std::int32_t source, std::int64_t row) const {
    // The metadata that the row had in the dispatch is still in the receive buffer.
    const auto* const words = reinterpret_cast<const std::int32_t*>(
        all_.memory.rows_in + row * shape_.crossing_bytes() + shape_.value_bytes());
    auto* const sum = reinterpret_cast<uint4*>(all_.memory.sums_out + row * shape_.sum_bytes());
    rows_here(source, words + shape_.crossing_slots())
        .each_sum(pieces_, [&](std::int32_t piece, const EightFloats& total) {
          sum[piece] = total.rounded();
        });
    if (shape_.combined_weights)
      each_weight(source, words + shape_.crossing_slots(), [&](std::int32_t choice, float weight) {
        weights_of(all_.memory.sums_out, row)[choice] = weight;
      });
  }
  __device__ void send_chunk(std::int32_t peer, std::int32_t chunk, std::int32_t begin,
                             std::int32_t rows) const {
    const std::int32_t there = rails_.index_at_peer(peer);
    device::put_signal_nbi<device::Block>(
        job_, all_.memory.sums_in + shape_.crossing_row(there, begin) * shape_.sum_bytes(),
        all_.memory.sums_out + shape_.crossing_row(peer, begin) * shape_.sum_bytes(),
        static_cast<std::size_t>(rows) * static_cast<std::size_t>(shape_.sum_bytes()),
        all_.memory.sum_signals + shape_.chunk_word(there, chunk), epoch_, rails_.peer_rank(peer));
  }

  __device__ const std::int32_t* crossing_slots(std::int32_t token) const {
    return all_.plan.crossing_slots + static_cast<std::int64_t>(token) * shape_.n_nodes();
  }
  /// Waits for the sums of the tokens from `first` on, one token per warp. One thread per node
  /// polls: many polling threads would delay the data that they wait for.
  __device__ bool wait_for_sums(std::int32_t first) const {
    const std::int32_t end = first + warps_ < all_.tokens ? first + warps_ : all_.tokens;
    bool arrived = true;
    for (std::int32_t peer = device::Block::rank(); peer < shape_.other_nodes();
         peer += device::Block::size()) {
      std::int32_t waited_chunk = -1;
      for (std::int32_t token = first; token < end; ++token)
        if (const std::int32_t slot = crossing_slots(token)[rails_.peer_node(peer)];
            slot >= 0 && slot / shape_.chunk_rows != waited_chunk) {
          waited_chunk = slot / shape_.chunk_rows;
          arrived = rails_.wait(all_.memory.sum_signals + shape_.chunk_word(peer, waited_chunk),
                                peer, 1, blockIdx.x == 0) &&
                    arrived;
        }
    }
    return device::Block::all(arrived);
  }
  __device__ void add_up_token(std::int32_t token) const {
    const std::int32_t* const slots =
        all_.plan.slots + static_cast<std::int64_t>(token) * n_ + first_rank_;
    const RowsToAdd<max_node_ranks> rows = rows_here(job_.pe, slots);
    const std::int32_t* const crossing = crossing_slots(token);
    const std::int64_t at = static_cast<std::int64_t>(token) * pieces_;
    rows.each_sum(pieces_, [&](std::int32_t piece, const EightFloats& here) {
      EightFloats total;
      total.set(0);
      if (all_.bias != nullptr)
        total.add(reinterpret_cast<const uint4*>(all_.bias)[at + piece]);
      for (std::int32_t node = 0; node < shape_.n_nodes(); ++node)
        if (node == rails_.node()) {
          if (rows.count > 0) // rounded like the sums of the other nodes
            total.add(here.rounded());
        } else if (crossing[node] >= 0) {
          const std::int64_t row =
              shape_.crossing_row(shape_.peer_index(rails_.node(), node), crossing[node]);
          total.add(reinterpret_cast<const uint4*>(all_.memory.sums_in)[row * sum_pieces_ + piece]);
        }
      reinterpret_cast<uint4*>(all_.results)[at + piece] = total.rounded();
    });
    if (shape_.combined_weights)
      add_up_weights(token, slots);
  }
  __device__ void add_up_weights(std::int32_t token, const std::int32_t* slots) const {
    const std::int32_t* const crossing = crossing_slots(token);
    float* const combined =
        all_.combined_weights + static_cast<std::int64_t>(token) * shape_.shape.top_k;
    each_weight(job_.pe, slots, [&](std::int32_t choice, float here) {
      float total = 0;
      for (std::int32_t node = 0; node < shape_.n_nodes(); ++node)
        if (node == rails_.node())
          total += here;
        else if (crossing[node] >= 0)
          total += weights_of(
              all_.memory.sums_in,
              shape_.crossing_row(shape_.peer_index(rails_.node(), node), crossing[node]))[choice];
      combined[choice] = total;
    });
  }

  const DeviceJob& job_;
  const InternodeCombine& all_;
  const InternodeShape& shape_;
  const Rails& rails_;
  std::uint64_t epoch_;
  std::int32_t n_, first_rank_, pieces_, sum_pieces_, warp_, warps_;
};

/// Called by all threads of the grid.
template <int max_node_ranks>
__device__ inline void run_internode_combine(const DeviceJob& job, const InternodeCombine& all) {
  const InternodeShape& shape = all.shape;
  const Call call(job, all.memory.node.flags, shape.node_ranks, shape.first_rank_of_node(job.pe));
  const Rails rails(job, shape, all.memory, call.epoch());
  call.announce();
  rails.announce();
  bool ok = call.wait_for_all();
  ok = rails.wait_for_all() && ok;
  if (ok) {
    const InternodeReducer<max_node_ranks> adder(job, all, rails, call.epoch());
    adder.send_sums();
    ok = adder.add_up_own();
  }
  if (const std::uint64_t failure = call.finish(ok))
    rails.announce_failure(failure);
}

} // namespace shmemctl::moe
