// Notify across nodes: each rank counts its rows for each rank and node, tells every rank by one
// message, and works out the plan from what all have told. One block.
#pragma once

#include "kernels/device/signal.cuh"
#include "kernels/device/wait.cuh"
#include "kernels/moe/hybrid.h"
#include "kernels/moe/rails.cuh"

namespace shmemctl::moe {

/// Threads whose counts are added up by one thread.
inline constexpr std::int32_t counting_segment = 32;

/// Shared memory of a block of `threads`, in words: counts by thread and column, sums by segment and
/// column, choices by expert.
SHMEMCTL_HOST_DEVICE constexpr std::int32_t hybrid_notify_words(const HybridShape& shape,
                                                                std::int32_t threads) {
  const std::int32_t segments = (threads + counting_segment - 1) / counting_segment;
  return shape.columns() * (threads + segments + 1) + shape.shape.n_experts;
}

/// A column is a rank, or behind those a node: rows that go there. Each thread has tokens in a row,
/// so that the order of tokens is that of threads.
class HybridCounts {
public:
  __device__ HybridCounts(const DeviceJob& job, const HybridNotify& all, std::int32_t* shared)
      : job_(job), all_(all), shape_(all.shape),
        epoch_(device::load_relaxed(&all.memory.rails->notification) + 1),
        half_(half_of_epoch(epoch_)), n_(shape_.shape.n_ranks), columns_(shape_.columns()),
        thread_(device::Block::rank()), threads_(device::Block::size()),
        segments_((threads_ + counting_segment - 1) / counting_segment), mine_(shared),
        sums_(mine_ + columns_ * threads_), chosen_(sums_ + columns_ * (segments_ + 1)) {
    const std::int32_t each = (all.tokens + threads_ - 1) / threads_;
    begin_ = min_of(thread_ * each, all.tokens);
    end_ = min_of(begin_ + each, all.tokens);
  }

  __device__ void run() {
    for (std::int32_t expert = thread_; expert < shape_.shape.n_experts; expert += threads_)
      chosen_[expert] = 0;
    device::Block::sync();
    count();
    scan();
    write_slots();
    write_messages();
    publish();
    receive();
    device::Block::sync();
    if (thread_ == 0)
      device::store_relaxed(&all_.memory.rails->notification, epoch_);
  }

private:
  static __device__ std::int32_t min_of(std::int32_t a, std::int32_t b) { return a < b ? a : b; }
  __device__ const std::int32_t* experts_of(std::int32_t token) const {
    return all_.experts + static_cast<std::int64_t>(token) * shape_.shape.top_k;
  }
  /// Calls act(column) for each that the token goes to.
  template <class Act>
  __device__ void each_column(std::int32_t token, const Act& act) const {
    const RankMask ranks = ranks_of_token(shape_.shape, experts_of(token));
    for (std::int32_t rank = 0; rank < n_; ++rank)
      if (goes_to(ranks, rank))
        act(rank);
    for (std::int32_t node = 0; node < shape_.n_nodes(); ++node)
      if (node != shape_.node_of_rank(job_.pe) &&
          ranks_on_node(ranks, node, shape_.node_ranks) != 0)
        act(n_ + node);
  }
  __device__ std::int32_t& of_thread(std::int32_t thread, std::int32_t column) const {
    return mine_[thread * columns_ + column];
  }
  __device__ std::int32_t& of_segment(std::int32_t segment, std::int32_t column) const {
    return sums_[segment * columns_ + column];
  }

  __device__ void count() const {
    for (std::int32_t column = 0; column < columns_; ++column)
      of_thread(thread_, column) = 0;
    for (std::int32_t token = begin_; token < end_; ++token) {
      each_column(token, [&](std::int32_t column) { ++of_thread(thread_, column); });
      for (std::int32_t k = 0; k < shape_.shape.top_k; ++k)
        if (const std::int32_t expert = experts_of(token)[k]; expert >= 0)
          add_shared(chosen_ + expert);
    }
    device::Block::sync();
  }
  /// Makes of_thread() what the threads before have, and of_segment(segments_) what all have.
  __device__ void scan() const {
    const auto each_thread_of = [&](std::int32_t item, const auto& act) {
      const std::int32_t segment = item / columns_, column = item % columns_;
      const std::int32_t end = min_of((segment + 1) * counting_segment, threads_);
      for (std::int32_t thread = segment * counting_segment; thread < end; ++thread)
        act(of_thread(thread, column), of_segment(segment, column));
    };
    const std::int32_t items = segments_ * columns_;
    for (std::int32_t item = thread_; item < items; item += threads_) {
      sums_[item] = 0;
      each_thread_of(item, [](std::int32_t& one, std::int32_t& sum) { sum += one; });
    }
    device::Block::sync();
    for (std::int32_t column = thread_; column < columns_; column += threads_) {
      std::int32_t before = 0;
      for (std::int32_t segment = 0; segment <= segments_; ++segment) {
        const std::int32_t here = segment < segments_ ? of_segment(segment, column) : 0;
        of_segment(segment, column) = before;
        before += here;
      }
    }
    device::Block::sync();
    for (std::int32_t item = thread_; item < items; item += threads_)
      each_thread_of(item, [](std::int32_t& one, std::int32_t& sum) {
        const std::int32_t here = one;
        one = sum;
        sum += here;
      });
    device::Block::sync();
  }
  __device__ void write_slots() const {
    const std::int32_t nodes = shape_.n_nodes();
    for (std::int32_t token = begin_; token < end_; ++token) {
      std::int32_t* const slots = all_.plan.slots + static_cast<std::int64_t>(token) * n_;
      std::int32_t* const crossing =
          all_.plan.crossing_slots + static_cast<std::int64_t>(token) * nodes;
      for (std::int32_t rank = 0; rank < n_; ++rank)
        slots[rank] = -1;
      for (std::int32_t node = 0; node < nodes; ++node)
        crossing[node] = -1;
      each_column(token, [&](std::int32_t column) {
        const std::int32_t slot = of_thread(thread_, column)++;
        if (column < n_) {
          slots[column] = slot;
        } else {
          crossing[column - n_] = slot;
          all_.plan.crossing_tokens[shape_.crossing_row(column - n_, slot)] = token;
        }
      });
    }
  }
  __device__ void write_messages() const {
    const std::int32_t words = shape_.message_words(), local = shape_.shape.local_experts();
    for (std::int32_t i = thread_; i < n_ * words; i += threads_) {
      const std::int32_t rank = i / words, word = i % words, expert = word - columns_;
      all_.memory.counts_out[shape_.message_at(half_, rank) + word] =
          expert < 0        ? of_segment(segments_, word)
          : expert < local ? chosen_[shape_.shape.first_expert(rank) + expert]
                            : 0;
    }
    device::Block::sync();
  }
  /// Why two halves of messages on both sides: who begins notification e + 2 has heard e + 1 from
  /// all, and who has sent e + 1 has read all of e, so that nothing of it is on its way.
  __device__ void publish() const {
    const std::int32_t warps = threads_ / device::Warp::size();
    for (std::int32_t i = thread_ / device::Warp::size(); i < n_; i += warps) {
      const std::int32_t rank = (job_.pe + 1 + i) % n_;
      device::put_signal_nbi<device::Warp>(
          job_, all_.memory.counts_in + shape_.message_at(half_, job_.pe),
          all_.memory.counts_out + shape_.message_at(half_, rank),
          static_cast<std::size_t>(shape_.message_words()) * sizeof(std::int32_t),
          &all_.memory.rails->counts[job_.pe], epoch_, rank);
    }
  }
  __device__ void receive() const {
    bool all_came = true;
    for (std::int32_t source = thread_; source < n_; source += threads_) {
      bool came = true;
      const std::uint64_t begin_ns = device::global_time_ns();
      device::wait_at_least(job_, &all_.memory.rails->counts[source], epoch_, source, came);
      add_wait(shape_, all_.memory, job_.pe, 0, source, device::global_time_ns() - begin_ns);
      all_came = all_came && came;
    }
    // Without all messages: a plan by which nothing crosses, and nothing leaves its memory.
    const std::int32_t known = device::Block::all(all_came) ? 1 : 0;
    const auto told = [&](std::int32_t source, std::int32_t word) {
      return known * all_.memory.counts_in[shape_.message_at(half_, source) + word];
    };
    const std::int32_t nodes = shape_.n_nodes();
    for (std::int32_t i = thread_; i < n_ * n_; i += threads_)
      all_.plan.counts[i] = told(i / n_, i % n_);
    for (std::int32_t i = thread_; i < n_ * nodes; i += threads_)
      all_.plan.crossing_counts[i] = told(i / nodes, n_ + i % nodes);
    for (std::int32_t expert = thread_; expert < shape_.shape.local_experts(); expert += threads_) {
      std::int32_t count = 0;
      for (std::int32_t source = 0; source < n_; ++source)
        count += told(source, columns_ + expert);
      all_.plan.expert_counts[expert] = aligned_count(count, shape_.shape.expert_alignment);
    }
    device::Block::sync();
    for (std::int32_t i = thread_; i < n_ * n_; i += threads_)
      all_.plan.bases[i] = base_of(all_.plan.counts, n_, i / n_, i % n_);
  }

  const DeviceJob& job_;
  const HybridNotify& all_;
  const HybridShape& shape_;
  std::uint64_t epoch_;
  std::int32_t half_, n_, columns_, thread_, threads_, segments_;
  std::int32_t *mine_, *sums_, *chosen_;
  std::int32_t begin_ = 0, end_ = 0;
};

} // namespace shmemctl::moe
