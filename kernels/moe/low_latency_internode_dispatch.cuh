// The dispatch of low_latency_internode.h: blocks 0 to senders - 1 send, the last block receives.
#pragma once

#include "kernels/moe/low_latency_internode_common.cuh"
#include "kernels/moe/rails.cuh"
#include "kernels/moe/token_counts.cuh"
#include "kernels/moe/token_metadata.cuh"

namespace shmemctl::moe {

/// Shared memory of a block of `threads` threads, in 32-bit words.
SHMEMCTL_HOST_DEVICE constexpr std::int32_t
low_latency_internode_shared_words(const Shape& shape, std::int32_t threads) {
  return TokenCounts::words(shape.n_ranks, threads) + shape.n_ranks;
}

class LowLatencyInternodeSender {
public:
  __device__ LowLatencyInternodeSender(const DeviceJob& job, const LowLatencyInternodeDispatch& all,
                                       std::int32_t* shared, std::int32_t senders,
                                       std::uint64_t epoch)
      : job_(job), all_(all), buffers_(job, all.shape, all.memory), layout_(all.shape, all.scales),
        senders_(senders), block_(static_cast<std::int32_t>(blockIdx.x)), epoch_(epoch),
        buffer_(buffer_of_dispatch(epoch)), n_(all.shape.n_ranks),
        value_bytes_(all.shape.value_bytes(format_of(all.scales))), counts_(all.tokens, n_, shared),
        sent_(shared + TokenCounts::words(n_, device::Block::size())) {}

  __device__ void run() const {
    find_slots();
    if (block_ == 0) {
      signal_remote_ranks();
      signal_begin();
    }
    const std::int32_t warps = device::Block::size() / device::Warp::size();
    for (std::int32_t token = block_ + device::Block::rank() / device::Warp::size() * senders_;
         token < all_.tokens; token += warps * senders_)
      send(token);
    device::Block::sync();
    signal_mapped_ranks();
  }

private:
  /// Finds the slots of this block's tokens.
  __device__ void find_slots() const {
    for (std::int32_t rank = device::Block::rank(); rank < n_; rank += device::Block::size())
      sent_[rank] = 0;
    const auto ranks_of = [&](std::int32_t token, const auto& act) {
      const RankMask ranks = ranks_of_token(all_.shape, experts_of(token));
      for (std::int32_t rank = 0; rank < n_; ++rank)
        if (goes_to(ranks, rank))
          act(rank);
    };
    counts_.count(ranks_of);
    for (std::int32_t token = counts_.begin(); token < counts_.end(); ++token)
      for (std::int32_t rank = 0; rank < n_ && token % senders_ == block_; ++rank)
        slots_of(token)[rank] = -1;
    counts_.each(ranks_of, [&](std::int32_t token, std::int32_t rank, std::int32_t slot) {
      if (token % senders_ != block_)
        return;
      slots_of(token)[rank] = slot;
      add_shared(sent_ + rank);
    });
    device::Block::sync();
  }
  /// Sends each rank that is not mapped its number of rows from all blocks.
  __device__ void signal_remote_ranks() const {
    for (std::int32_t rank = device::Block::rank(); rank < n_; rank += device::Block::size())
      if (buffers_.is_remote(rank) && !buffers_.is_masked(rank))
        device::put_value(job_, word_of(0),
                          count_word(epoch_, packed_count(1, counts_.total(rank))), rank);
  }
  /// Tells each mapped rank that this one has begun; ranks that are not mapped learn it from the
  /// counts.
  __device__ void signal_begin() const {
    for (std::int32_t rank = device::Block::rank(); rank < n_; rank += device::Block::size())
      if (!buffers_.is_remote(rank) && !buffers_.is_masked(rank))
        device::store_relaxed(
            device::pointer_to(job_, &all_.memory.mapped.flags->begun[job_.pe], rank), epoch_);
  }
  /// Sends each mapped rank the number of rows of this block. The block barrier before and the
  /// release together order the block's row stores before the flag.
  __device__ void signal_mapped_ranks() const {
    for (std::int32_t rank = device::Block::rank(); rank < n_; rank += device::Block::size())
      if (!buffers_.is_remote(rank) && !buffers_.is_masked(rank))
        device::store_release(device::pointer_to(job_, word_of(block_), rank),
                              count_word(epoch_, packed_count(senders_, sent_[rank])));
  }
  __device__ std::uint64_t* word_of(std::int32_t block) const {
    return &all_.memory.mapped.flags->block_counts[buffer_][job_.pe][block];
  }

  /// Called by a whole warp.
  __device__ void send(std::int32_t token) const {
    const TokenRow row{all_.values + static_cast<std::int64_t>(token) * value_bytes_,
                       all_.scales_of_values +
                           static_cast<std::int64_t>(token) * all_.shape.scales_per_row(),
                       experts_of(token),
                       reinterpret_cast<const std::uint32_t*>(all_.weights) +
                           static_cast<std::int64_t>(token) * layout_.top_k,
                       job_.pe,
                       token};
    bool packed = false;
    for (std::int32_t i = 0; i < n_; ++i) {
      const std::int32_t rank = (job_.pe + 1 + i) % n_;
      const std::int32_t slot = slots_of(token)[rank];
      if (slot < 0 || buffers_.is_masked(rank))
        continue;
      if (!buffers_.is_remote(rank)) {
        store(row, rank, slot);
        continue;
      }
      if (!packed)
        copy_row(row_out(token), row.values);
      packed = true;
      put(row, rank, slot);
    }
  }
  __device__ void copy_row(std::byte* to, const std::byte* from) const {
    device::copy<device::Warp, device::Local>(to, from, static_cast<std::size_t>(value_bytes_));
  }
  __device__ void store(const TokenRow& row, std::int32_t rank, std::int32_t slot) const {
    const std::int64_t at = buffers_.slot(buffer_, job_.pe, slot);
    copy_row(device::pointer_to(job_, all_.memory.mapped.rows, rank) + at * value_bytes_,
             row.values);
    write_record<device::Warp>(all_.shape, all_.scales, layout_, row, rank,
                               device::pointer_to(job_, all_.memory.mapped.records, rank) +
                                   at * layout_.bytes());
  }
  __device__ void put(const TokenRow& row, std::int32_t rank, std::int32_t slot) const {
    const std::int64_t at = buffers_.slot(buffer_, job_.pe, slot);
    std::byte* const record =
        all_.memory.records_out + buffers_.slot(buffer_, rank, slot) * layout_.bytes();
    write_record<device::Warp>(all_.shape, all_.scales, layout_, row, rank, record);
    device::put_signal_nbi<device::Warp>(job_, all_.memory.mapped.rows + at * value_bytes_,
                                         row_out(row.token), static_cast<std::size_t>(value_bytes_),
                                         all_.memory.row_signals + at * 2, epoch_, rank);
    device::put_signal_nbi<device::Warp>(job_, all_.memory.mapped.records + at * layout_.bytes(),
                                         record, static_cast<std::size_t>(layout_.bytes()),
                                         all_.memory.row_signals + at * 2 + 1, epoch_, rank);
  }
  __device__ std::byte* row_out(std::int32_t token) const {
    return all_.memory.rows_out +
           (static_cast<std::int64_t>(buffer_) * all_.shape.max_tokens + token) * value_bytes_;
  }
  __device__ const std::int32_t* experts_of(std::int32_t token) const {
    return all_.experts + static_cast<std::int64_t>(token) * all_.shape.top_k;
  }
  __device__ std::int32_t* slots_of(std::int32_t token) const {
    return all_.slots + static_cast<std::int64_t>(token) * n_;
  }

  const DeviceJob& job_;
  const LowLatencyInternodeDispatch& all_;
  InternodeBuffers buffers_;
  MetadataLayout layout_;
  std::int32_t senders_, block_;
  std::uint64_t epoch_;
  std::int32_t buffer_, n_, value_bytes_;
  TokenCounts counts_;
  std::int32_t* sent_;
};

/// The receiving block: its warps take the source ranks in turn.
class LowLatencyInternodeReceiver {
public:
  __device__ LowLatencyInternodeReceiver(const DeviceJob& job,
                                         const LowLatencyInternodeDispatch& all,
                                         std::int32_t* shared, std::uint64_t epoch)
      : all_(all), buffers_(job, all.shape, all.memory), rows_(shared), epoch_(epoch),
        buffer_(buffer_of_dispatch(epoch)) {}

  __device__ void run() const {
    const std::int32_t n = all_.shape.n_ranks;
    for (std::int32_t rank = device::Block::rank(); rank < n; rank += device::Block::size())
      rows_[rank] = 0;
    device::Block::sync();
    const std::int32_t warps = device::Block::size() / device::Warp::size();
    for (std::int32_t source = device::Block::rank() / device::Warp::size(); source < n;
         source += warps)
      receive_from(source);
  }

private:
  __device__ void receive_from(std::int32_t source) const {
    LowLatencyFlags* const flags = all_.memory.mapped.flags;
    const std::uint64_t begin_ns = device::global_time_ns();
    const std::uint64_t* const words = flags->block_counts[buffer_][source];
    bool arrived = true;
    std::int32_t first = 0;
    std::uint64_t begun_ns = begin_ns;
    if (device::Warp::rank() == 0) {
      begun_ns = wait_for_begin(flags, source, all_.rank_timeout_ns, epoch_, words);
      arrived = wait_for_block(source, words);
      first = arrived ? count_of(device::load_relaxed(words)) : 0;
    }
    first = static_cast<std::int32_t>(
        device::Warp::broadcast(static_cast<std::uint64_t>(static_cast<std::uint32_t>(first))));
    arrived = (buffers_.is_remote(source)
                   ? wait_for_row_signals(source, rows_of_count(first))
                   : wait_for_block_counts(source, words, blocks_of_count(first))) &&
              arrived;
    const bool all_arrived = device::Warp::all(arrived);
    if (device::Warp::rank() == 0) {
      all_.counts[source] = all_arrived ? rows_[source] : -1;
      flags->begin_wait_ns[source] += begun_ns - begin_ns;
      count_wait(flags, 0, source, begin_ns);
    }
  }
  /// A mapped source: one flag per sending block. Acquire: makes the rows of that block visible.
  __device__ bool wait_for_block_counts(std::int32_t source, const std::uint64_t* words,
                                        std::int32_t blocks) const {
    bool arrived = true;
    for (std::int32_t block = device::Warp::rank(); block < blocks; block += device::Warp::size()) {
      arrived = wait_for_block(source, words + block) && arrived;
      const std::int32_t rows =
          arrived ? rows_of_count(count_of(device::load_relaxed(words + block))) : 0;
      for (std::int32_t i = 0; i < rows; ++i)
        add_shared(rows_ + source);
    }
    return arrived;
  }
  /// A source that is not mapped: two signals per row.
  __device__ bool wait_for_row_signals(std::int32_t source, std::int32_t rows) const {
    bool arrived = true;
    const std::uint64_t* const words =
        all_.memory.row_signals + buffers_.slot(buffer_, source, 0) * 2;
    for (std::int32_t i = device::Warp::rank(); i < rows * 2; i += device::Warp::size()) {
      arrived = wait_or_mask(all_.memory.mapped.flags, source, all_.rank_timeout_ns,
                             [&] { return device::load_acquire(words + i) == epoch_; }) &&
                arrived;
    }
    if (device::Warp::rank() == 0)
      rows_[source] = rows;
    return arrived;
  }
  __device__ bool wait_for_block(std::int32_t source, const std::uint64_t* word) const {
    return wait_or_mask(all_.memory.mapped.flags, source, all_.rank_timeout_ns,
                        [&] { return has_come(device::load_acquire(word), epoch_); });
  }

  const LowLatencyInternodeDispatch& all_;
  InternodeBuffers buffers_;
  std::int32_t* rows_;
  std::uint64_t epoch_;
  std::int32_t buffer_;
};

/// Called by all threads of a grid of `senders` sending blocks and one receiving block; a single
/// phase has only one kind.
__device__ inline void run_low_latency_internode_dispatch(const DeviceJob& job,
                                                          const LowLatencyInternodeDispatch& all,
                                                          std::int32_t senders,
                                                          std::int32_t* shared) {
  LowLatencyFlags* const flags = all.memory.mapped.flags;
  if (static_cast<std::int32_t>(blockIdx.x) < senders) {
    const std::uint64_t epoch = device::load_relaxed(&flags->sent) + 1;
    LowLatencyInternodeSender(job, all, shared, senders, epoch).run();
    count_internode_call(&flags->blocks_done[0], static_cast<std::uint32_t>(senders), &flags->sent,
                         epoch);
  } else {
    const std::uint64_t epoch = device::load_relaxed(&flags->received) + 1;
    LowLatencyInternodeReceiver(job, all, shared, epoch).run();
    count_internode_call(&flags->blocks_done[1], 1, &flags->received, epoch);
  }
}

} // namespace shmemctl::moe
