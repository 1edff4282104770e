// The dispatch of far_latency.h: blocks 0 to parts - 1 send, the last one receives.
#pragma once

#include "kernels/moe/low_latency_internode_common.cuh"
#include "kernels/moe/rails.cuh"
#include "kernels/moe/token_counts.cuh"
#include "kernels/moe/token_metadata.cuh"

namespace shmemctl::moe {

/// Shared memory of a block of `threads`, in words.
SHMEMCTL_HOST_DEVICE constexpr std::int32_t far_dispatch_words(const Shape& shape,
                                                               std::int32_t threads) {
  return ColumnCounts::words(shape.n_ranks, threads) + shape.n_ranks;
}

class FarLatencySender {
public:
  __device__ FarLatencySender(const DeviceJob& job, const FarLatencyDispatch& all,
                              std::int32_t* shared, std::int32_t parts, std::uint64_t epoch)
      : job_(job), all_(all), places_(job, all.shape, all.memory), layout_(all.shape, all.scales),
        parts_(parts), part_(static_cast<std::int32_t>(blockIdx.x)), epoch_(epoch),
        half_(half_of_dispatch(epoch)), n_(all.shape.n_ranks),
        value_bytes_(all.shape.value_bytes(format_of(all.scales))), counts_(all.tokens, n_, shared),
        sent_(shared + ColumnCounts::words(n_, device::Block::size())) {}

  __device__ void run() const {
    find_slots();
    if (part_ == 0) {
      tell_far();
      tell_begin();
    }
    const std::int32_t warps = device::Block::size() / device::Warp::size();
    for (std::int32_t token = part_ + device::Block::rank() / device::Warp::size() * parts_;
         token < all_.tokens; token += warps * parts_)
      send(token);
    device::Block::sync();
    tell_near();
  }

private:
  /// Of this block's tokens.
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
      for (std::int32_t rank = 0; rank < n_ && token % parts_ == part_; ++rank)
        slots_of(token)[rank] = -1;
    counts_.each(ranks_of, [&](std::int32_t token, std::int32_t rank, std::int32_t slot) {
      if (token % parts_ != part_)
        return;
      slots_of(token)[rank] = slot;
      add_shared(sent_ + rank);
    });
    device::Block::sync();
  }
  /// How many rows each rank that is not mapped gets of all blocks.
  __device__ void tell_far() const {
    for (std::int32_t rank = device::Block::rank(); rank < n_; rank += device::Block::size())
      if (places_.is_far(rank) && !places_.is_masked(rank))
        device::put_value(job_, word_of(0), count_word(epoch_, part_of(1, counts_.total(rank))),
                          rank);
  }
  /// Each other one that rows are about to leave; to ranks that are not mapped the words above tell
  /// it.
  __device__ void tell_begin() const {
    for (std::int32_t rank = device::Block::rank(); rank < n_; rank += device::Block::size())
      if (!places_.is_far(rank) && !places_.is_masked(rank))
        device::store_relaxed(
            device::pointer_to(job_, &all_.memory.near.cells->begun[job_.pe], rank), epoch_);
  }
  /// And each other one, of this block, behind its rows: the sync before and the release together.
  __device__ void tell_near() const {
    for (std::int32_t rank = device::Block::rank(); rank < n_; rank += device::Block::size())
      if (!places_.is_far(rank) && !places_.is_masked(rank))
        device::store_release(device::pointer_to(job_, word_of(part_), rank),
                              count_word(epoch_, part_of(parts_, sent_[rank])));
  }
  __device__ std::uint64_t* word_of(std::int32_t part) const {
    return &all_.memory.near.cells->parts[half_][job_.pe][part];
  }

  /// By a warp.
  __device__ void send(std::int32_t token) const {
    const RowOnItsWay row{all_.values + static_cast<std::int64_t>(token) * value_bytes_,
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
      if (slot < 0 || places_.is_masked(rank))
        continue;
      if (!places_.is_far(rank)) {
        store(row, rank, slot);
        continue;
      }
#ifndef SHMEMCTL_MUTATE_MOE_FAR_ROW
      if (!packed)
        copy_row(row_out(token), row.values);
#endif
      packed = true;
      put(row, rank, slot);
    }
  }
  __device__ void copy_row(std::byte* to, const std::byte* from) const {
    device::copy<device::Warp, device::Local>(to, from, static_cast<std::size_t>(value_bytes_));
  }
  __device__ void store(const RowOnItsWay& row, std::int32_t rank, std::int32_t slot) const {
    const std::int64_t at = places_.slot(half_, job_.pe, slot);
    copy_row(device::pointer_to(job_, all_.memory.near.rows, rank) + at * value_bytes_, row.values);
    write_record<device::Warp>(all_.shape, all_.scales, layout_, row, rank,
                               device::pointer_to(job_, all_.memory.near.records, rank) +
                                   at * layout_.bytes());
  }
  __device__ void put(const RowOnItsWay& row, std::int32_t rank, std::int32_t slot) const {
    const std::int64_t at = places_.slot(half_, job_.pe, slot);
    std::byte* const record =
        all_.memory.records_out + places_.slot(half_, rank, slot) * layout_.bytes();
    write_record<device::Warp>(all_.shape, all_.scales, layout_, row, rank, record);
    device::put_signal_nbi<device::Warp>(job_, all_.memory.near.rows + at * value_bytes_,
                                         row_out(row.token), static_cast<std::size_t>(value_bytes_),
                                         all_.memory.row_words + at * 2, epoch_, rank);
    device::put_signal_nbi<device::Warp>(job_, all_.memory.near.records + at * layout_.bytes(),
                                         record, static_cast<std::size_t>(layout_.bytes()),
                                         all_.memory.row_words + at * 2 + 1, epoch_, rank);
  }
  __device__ std::byte* row_out(std::int32_t token) const {
    return all_.memory.rows_out +
           (static_cast<std::int64_t>(half_) * all_.shape.max_tokens + token) * value_bytes_;
  }
  __device__ const std::int32_t* experts_of(std::int32_t token) const {
    return all_.experts + static_cast<std::int64_t>(token) * all_.shape.top_k;
  }
  __device__ std::int32_t* slots_of(std::int32_t token) const {
    return all_.slots + static_cast<std::int64_t>(token) * n_;
  }

  const DeviceJob& job_;
  const FarLatencyDispatch& all_;
  FarPlaces places_;
  RecordLayout layout_;
  std::int32_t parts_, part_;
  std::uint64_t epoch_;
  std::int32_t half_, n_, value_bytes_;
  ColumnCounts counts_;
  std::int32_t* sent_;
};

/// By a block: warps hear of sources in turn.
class FarLatencyReceiver {
public:
  __device__ FarLatencyReceiver(const DeviceJob& job, const FarLatencyDispatch& all,
                                std::int32_t* shared, std::uint64_t epoch)
      : all_(all), places_(job, all.shape, all.memory), rows_(shared), epoch_(epoch),
        half_(half_of_dispatch(epoch)) {}

  __device__ void run() const {
    const std::int32_t n = all_.shape.n_ranks;
    for (std::int32_t rank = device::Block::rank(); rank < n; rank += device::Block::size())
      rows_[rank] = 0;
    device::Block::sync();
    const std::int32_t warps = device::Block::size() / device::Warp::size();
    for (std::int32_t source = device::Block::rank() / device::Warp::size(); source < n;
         source += warps)
      hear(source);
  }

private:
  __device__ void hear(std::int32_t source) const {
    LowLatencyCells* const cells = all_.memory.near.cells;
    const std::uint64_t begin_ns = device::global_time_ns();
    const std::uint64_t* const words = cells->parts[half_][source];
    bool came = true;
    std::int32_t first = 0;
    std::uint64_t begun_ns = begin_ns;
    if (device::Warp::rank() == 0) {
      begun_ns = hear_begin(cells, source, all_.patience_ns, epoch_, words);
      came = heard_part(source, words);
      first = came ? count_of(device::load_relaxed(words)) : 0;
    }
    first = static_cast<std::int32_t>(
        device::Warp::broadcast(static_cast<std::uint64_t>(static_cast<std::uint32_t>(first))));
    came = (places_.is_far(source) ? hear_rows(source, rows_of_part(first))
                                   : hear_parts(source, words, blocks_of_part(first))) &&
           came;
    const bool all_came = device::Warp::all(came);
    if (device::Warp::rank() == 0) {
      all_.counts[source] = all_came ? rows_[source] : -1;
      cells->begin_wait_ns[source] += begun_ns - begin_ns;
      count_wait(cells, 0, source, begin_ns);
    }
  }
  /// A mapped source: a word of each of its blocks. Each is acquired: the rows come with it.
  __device__ bool hear_parts(std::int32_t source, const std::uint64_t* words,
                             std::int32_t blocks) const {
    bool came = true;
    for (std::int32_t part = device::Warp::rank(); part < blocks; part += device::Warp::size()) {
      came = heard_part(source, words + part) && came;
      const std::int32_t rows =
          came ? rows_of_part(count_of(device::load_relaxed(words + part))) : 0;
      for (std::int32_t i = 0; i < rows; ++i)
        add_shared(rows_ + source);
    }
    return came;
  }
  /// Another one: two words of each row.
  __device__ bool hear_rows(std::int32_t source, std::int32_t rows) const {
    bool came = true;
    const std::uint64_t* const words = all_.memory.row_words + places_.slot(half_, source, 0) * 2;
    for (std::int32_t i = device::Warp::rank(); i < rows * 2; i += device::Warp::size()) {
#ifndef SHMEMCTL_MUTATE_MOE_FAR_UNHEARD
      came = wait_or_mask(all_.memory.near.cells, source, all_.patience_ns,
                          [&] { return device::load_acquire(words + i) == epoch_; }) &&
             came;
#endif
    }
    if (device::Warp::rank() == 0)
      rows_[source] = rows;
    return came;
  }
  __device__ bool heard_part(std::int32_t source, const std::uint64_t* word) const {
    return wait_or_mask(all_.memory.near.cells, source, all_.patience_ns,
                        [&] { return has_come(device::load_acquire(word), epoch_); });
  }

  const FarLatencyDispatch& all_;
  FarPlaces places_;
  std::int32_t* rows_;
  std::uint64_t epoch_;
  std::int32_t half_;
};

/// By all threads of a grid of `parts` blocks that send, if any do, and one that receives, if it is
/// there.
__device__ inline void run_far_latency_dispatch(const DeviceJob& job, const FarLatencyDispatch& all,
                                                std::int32_t parts, std::int32_t* shared) {
  LowLatencyCells* const cells = all.memory.near.cells;
  if (static_cast<std::int32_t>(blockIdx.x) < parts) {
    const std::uint64_t epoch = device::load_relaxed(&cells->sent) + 1;
    FarLatencySender(job, all, shared, parts, epoch).run();
    count_far_call(&cells->blocks_done[0], static_cast<std::uint32_t>(parts), &cells->sent, epoch);
  } else {
    const std::uint64_t epoch = device::load_relaxed(&cells->received) + 1;
    FarLatencyReceiver(job, all, shared, epoch).run();
    count_far_call(&cells->blocks_done[1], 1, &cells->received, epoch);
  }
}

} // namespace shmemctl::moe
