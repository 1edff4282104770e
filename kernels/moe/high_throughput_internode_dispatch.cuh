// Internode dispatch. Every block first sends (rows that cross nodes, then rows within the node)
// and then forwards received rows. Sending never waits for another rank's forwarding, so it always
// completes.
#pragma once

#include "kernels/device/signal.cuh"
#include "kernels/moe/call.cuh"
#include "kernels/moe/high_throughput_internode.h"
#include "kernels/moe/rails.cuh"
#include "kernels/moe/token_metadata.cuh"

namespace shmemctl::moe {

class InternodeSender {
public:
  __device__ InternodeSender(const DeviceJob& job, const InternodeDispatch& all, const Rails& rails,
                             std::uint64_t epoch)
      : job_(job), all_(all), shape_(all.shape), rails_(rails), record_(all.shape.record()),
        scales_(all.shape.format == Format::fp8 ? Scales::float32 : Scales::none), epoch_(epoch),
        n_(all.shape.shape.n_ranks), first_rank_(all.shape.first_rank_of_node(job.pe)),
        value_bytes_(all.shape.value_bytes()), warp_(device::Block::rank() / device::Warp::size()),
        warps_(device::Block::size() / device::Warp::size()) {}

  /// Called by a block: packs and sends its share of the chunks that cross nodes.
  __device__ void send_chunks() const {
    each_chunk([&](std::int32_t peer, std::int32_t chunk) {
      const std::int32_t node = rails_.peer_node(peer);
      const Rows rows = rows_of(crossing(job_.pe, node), chunk);
      for (std::int32_t row = rows.begin + warp_; row < rows.end; row += warps_)
        pack(all_.plan.crossing_tokens[shape_.crossing_row(node, row)],
             all_.memory.rows_out + crossing_offset(peer, row), node);
      device::Block::sync(); // the whole chunk is packed
      if (rows.begin < rows.end)
        send_chunk(peer, chunk, rows);
      return true;
    });
  }
  /// Called by a warp: stores its share of the rows that stay on the node.
  __device__ void send_within_node() const {
    const auto workers = static_cast<std::int32_t>(gridDim.x) * warps_;
    for (std::int32_t token =
             warp_ * static_cast<std::int32_t>(gridDim.x) + static_cast<std::int32_t>(blockIdx.x);
         token < all_.tokens; token += workers) {
      const std::int32_t* const slots = all_.plan.slots + static_cast<std::int64_t>(token) * n_;
      for (std::int32_t i = 0; i < shape_.node_ranks; ++i) {
        // Each rank starts with the next higher one, so that not all send to the same rank.
        const std::int32_t rank = node_peer(i);
        if (slots[rank] >= 0)
          store_row(own_row(token), rank, slots[rank]);
      }
    }
  }
  /// Called by a block: forwards its share of the received rows to the ranks of this node. False: a
  /// rank of the rail timed out or its call failed, and the report names the missing rank.
  __device__ bool forward() const {
    return each_chunk([&](std::int32_t peer, std::int32_t chunk) {
      const std::int32_t source = rails_.peer_rank(peer);
      const Rows rows = rows_of(crossing(source, rails_.node()), chunk);
      if (rows.begin >= rows.end)
        return true;
      bool arrived = true;
      if (device::Block::rank() == 0)
        arrived = rails_.wait(all_.memory.row_signals + shape_.chunk_word(peer, chunk), peer, 1,
                              blockIdx.x == 0);
      if (!device::Block::all(arrived))
        return false;
      for (std::int32_t row = rows.begin + warp_; row < rows.end; row += warps_)
        forward_row(all_.memory.rows_in + crossing_offset(peer, row), source);
      return true;
    });
  }

private:
  struct Rows {
    std::int32_t begin, end;
  };
  __device__ Rows rows_of(std::int32_t count, std::int32_t chunk) const {
    const std::int32_t begin = chunk * shape_.chunk_rows, end = begin + shape_.chunk_rows;
    return {begin, end < count ? end : count};
  }
  __device__ std::int32_t crossing(std::int32_t source, std::int32_t node) const {
    return all_.plan.crossing_counts[source * shape_.n_nodes() + node];
  }
  __device__ std::int64_t crossing_offset(std::int32_t peer, std::int32_t row) const {
    return shape_.crossing_row(peer, row) * shape_.crossing_bytes();
  }
  __device__ std::int32_t node_peer(std::int32_t i) const {
    return first_rank_ + (job_.pe - first_rank_ + 1 + i) % shape_.node_ranks;
  }
  /// Calls act(peer, chunk) for the chunks of this block, lowest chunk first, until it returns
  /// false.
  template <class Act>
  __device__ bool each_chunk(const Act& act) const {
    const std::int32_t peers = shape_.other_nodes(), units = peers * shape_.chunks();
    for (auto unit = static_cast<std::int32_t>(blockIdx.x); unit < units;
         unit += static_cast<std::int32_t>(gridDim.x))
      if (!act(unit % peers, unit / peers))
        return false;
    return true;
  }

  __device__ TokenRow own_row(std::int32_t token) const {
    const std::int64_t at = token;
    return {all_.values + at * value_bytes_,
            all_.scales + at * record_.scale_words,
            all_.experts + at * record_.top_k,
            reinterpret_cast<const std::uint32_t*>(all_.weights) + at * record_.top_k,
            job_.pe,
            token};
  }
  /// Packs a row into the send buffer.
  __device__ void pack(std::int32_t token, std::byte* to, std::int32_t node) const {
    const TokenRow row = own_row(token);
    device::copy<device::Warp, device::Local>(to, row.values,
                                              static_cast<std::size_t>(value_bytes_));
    auto* const words = reinterpret_cast<std::uint32_t*>(to + value_bytes_);
    const std::int32_t* const slots =
        all_.plan.slots + static_cast<std::int64_t>(token) * n_ + node * shape_.node_ranks;
    for (std::int32_t word = device::Warp::rank(); word < shape_.crossing_words();
         word += device::Warp::size()) {
      const std::int32_t choice = word - record_.scale_words;
      words[word] = choice < 0                       ? bits_of(row.scales[word])
                    : choice < record_.top_k         ? bits_of_number(row.experts[choice])
                    : word < shape_.crossing_token() ? row.weights[choice - record_.top_k]
                    : word == shape_.crossing_token()
                        ? bits_of_number(token)
                        : bits_of_number(slots[word - shape_.crossing_slots()]);
    }
  }
  __device__ void send_chunk(std::int32_t peer, std::int32_t chunk, Rows rows) const {
    const std::int32_t there = rails_.index_at_peer(peer);
    device::put_signal_nbi<device::Block>(
        job_, all_.memory.rows_in + crossing_offset(there, rows.begin),
        all_.memory.rows_out + crossing_offset(peer, rows.begin),
        static_cast<std::size_t>(rows.end - rows.begin) *
            static_cast<std::size_t>(shape_.crossing_bytes()),
        all_.memory.row_signals + shape_.chunk_word(there, chunk), epoch_, rails_.peer_rank(peer));
  }

  __device__ void forward_row(const std::byte* at, std::int32_t source) const {
    const auto* const words = reinterpret_cast<const std::uint32_t*>(at + value_bytes_);
    const auto* const numbers = reinterpret_cast<const std::int32_t*>(words);
    const TokenRow row{at,
                       reinterpret_cast<const float*>(words),
                       numbers + record_.scale_words,
                       words + record_.scale_words + record_.top_k,
                       source,
                       numbers[shape_.crossing_token()]};
    for (std::int32_t i = 0; i < shape_.node_ranks; ++i) {
      const std::int32_t rank = node_peer(i);
      if (const std::int32_t slot = numbers[shape_.crossing_slots() + rank - first_rank_];
          slot >= 0)
        store_row(row, rank, slot);
    }
  }
  /// Stores a row into its final position on a rank of this node.
  /// @param slot index among the source's rows there
  __device__ void store_row(const TokenRow& row, std::int32_t rank, std::int32_t slot) const {
    const std::int64_t at = all_.plan.bases[row.source * n_ + rank] + slot;
    const HighThroughputMemory& memory = all_.memory.node;
    device::copy<device::Warp, device::Local>(device::pointer_to(job_, memory.rows, rank) +
                                                  at * value_bytes_,
                                              row.values, static_cast<std::size_t>(value_bytes_));
    write_record<device::Warp>(shape_.shape, scales_, record_, row, rank,
                               device::pointer_to(job_, memory.records, rank) +
                                   at * record_.bytes());
  }

  const DeviceJob& job_;
  const InternodeDispatch& all_;
  const InternodeShape& shape_;
  const Rails& rails_;
  MetadataLayout record_;
  Scales scales_;
  std::uint64_t epoch_;
  std::int32_t n_, first_rank_, value_bytes_, warp_, warps_;
};

/// Called by all threads of the grid.
__device__ inline void run_internode_dispatch(const DeviceJob& job, const InternodeDispatch& all) {
  const InternodeShape& shape = all.shape;
  const Call call(job, all.memory.node.flags, shape.node_ranks, shape.first_rank_of_node(job.pe));
  const Rails rails(job, shape, all.memory, call.epoch());
  call.announce();
  rails.announce();
  bool ok = call.wait_for_all();
  ok = rails.wait_for_all() && ok; // waits for the rail even if the first wait has failed
  if (ok) {
    const InternodeSender sender(job, all, rails, call.epoch());
    sender.send_chunks();
    sender.send_within_node();
    ok = sender.forward(); // if false, ranks of this node miss rows
  }
  if (const std::uint64_t failure = call.finish(ok))
    rails.announce_failure(failure);
}

} // namespace shmemctl::moe
