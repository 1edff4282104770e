// Internode notify: each rank counts its rows for each rank and node, sends one counts message to
// every rank, and computes the plan from all received counts. One block.
#pragma once

#include "kernels/device/signal.cuh"
#include "kernels/device/wait.cuh"
#include "kernels/moe/high_throughput_internode.h"
#include "kernels/moe/rails.cuh"
#include "kernels/moe/token_counts.cuh"

namespace shmemctl::moe {

/// Counts by column: a column for each rank, then one for each node, to which rows are sent.
class InternodeCounts {
public:
  __device__ InternodeCounts(const DeviceJob& job, const InternodeNotify& all, std::int32_t* shared)
      : job_(job), all_(all), shape_(all.shape),
        epoch_(device::load_relaxed(&all.memory.rails->notification) + 1),
        failed_(has_failed(device::load_relaxed(&all.memory.node.flags->call))),
        buffer_(buffer_of_epoch(epoch_)), n_(shape_.shape.n_ranks), columns_(shape_.columns()),
        thread_(device::Block::rank()), threads_(device::Block::size()),
        counts_(all.tokens, columns_, shared),
        chosen_(shared + TokenCounts::words(columns_, threads_)) {}

  __device__ void run() {
    count_choices();
    const auto each_column = [&](std::int32_t token, const auto& act) { columns_of(token, act); };
    counts_.count(each_column);
    clear_slots();
    counts_.each(each_column, [&](std::int32_t token, std::int32_t column, std::int32_t slot) {
      write_slot(token, column, slot);
    });
    write_messages();
    publish();
    const bool ok = receive();
    device::Block::sync();
    if (thread_ == 0)
      device::store_relaxed(&all_.memory.rails->notification, epoch_);
    if (!ok)
      fail();
  }

private:
  /// Calls act(column) for each column that the token is sent to.
  template <class Act>
  __device__ void columns_of(std::int32_t token, const Act& act) const {
    const RankMask ranks = ranks_of_token(
        shape_.shape, all_.experts + static_cast<std::int64_t>(token) * shape_.shape.top_k);
    for (std::int32_t rank = 0; rank < n_; ++rank)
      if (goes_to(ranks, rank))
        act(rank);
    for (std::int32_t node = 0; node < shape_.n_nodes(); ++node)
      if (node != shape_.node_of_rank(job_.pe) &&
          ranks_on_node(ranks, node, shape_.node_ranks) != 0)
        act(n_ + node);
  }
  __device__ void count_choices() const {
    for (std::int32_t expert = thread_; expert < shape_.shape.n_experts; expert += threads_)
      chosen_[expert] = 0;
    device::Block::sync();
    const std::int32_t choices = all_.tokens * shape_.shape.top_k;
    for (std::int32_t i = thread_; i < choices; i += threads_)
      if (const std::int32_t expert = all_.experts[i]; expert >= 0)
        add_shared(chosen_ + expert);
  }
  /// Clears the slots of this thread's tokens.
  __device__ void clear_slots() const {
    for (std::int64_t i = std::int64_t{counts_.begin()} * n_; i < std::int64_t{counts_.end()} * n_;
         ++i)
      all_.plan.slots[i] = -1;
    const std::int64_t nodes = shape_.n_nodes();
    for (std::int64_t i = counts_.begin() * nodes; i < counts_.end() * nodes; ++i)
      all_.plan.crossing_slots[i] = -1;
  }
  __device__ void write_slot(std::int32_t token, std::int32_t column, std::int32_t slot) const {
    if (column < n_) {
      all_.plan.slots[static_cast<std::int64_t>(token) * n_ + column] = slot;
      return;
    }
    const std::int32_t node = column - n_;
    all_.plan.crossing_slots[static_cast<std::int64_t>(token) * shape_.n_nodes() + node] = slot;
    all_.plan.crossing_tokens[shape_.crossing_row(node, slot)] = token;
  }
  __device__ void write_messages() const {
    const std::int32_t words = shape_.message_words(), local = shape_.shape.local_experts();
    for (std::int32_t i = thread_; i < n_ * words; i += threads_) {
      const std::int32_t rank = i / words, word = i % words, expert = word - columns_;
      all_.memory.counts_out[shape_.message_at(buffer_, rank) + word] =
          expert < 0       ? counts_.total(word)
          : expert < local ? chosen_[shape_.shape.first_expert(rank) + expert]
                           : 0;
    }
    device::Block::sync();
  }
  /// Counts messages are double buffered at both ends. Rank S overwrites its send buffer, and the
  /// receive buffer at R, of notify e when it begins e + 2. By then it has received the counts of e
  /// + 1 from R, which R sends only after it has read all counts of e: no put of e is still in
  /// flight.
  __device__ void publish() const {
    const std::int32_t warps = threads_ / device::Warp::size();
    for (std::int32_t i = thread_ / device::Warp::size(); i < n_; i += warps) {
      const std::int32_t rank = (job_.pe + 1 + i) % n_;
      device::put_signal_nbi<device::Warp>(
          job_, all_.memory.counts_in + shape_.message_at(buffer_, job_.pe),
          all_.memory.counts_out + shape_.message_at(buffer_, rank),
          static_cast<std::size_t>(shape_.message_words()) * sizeof(std::int32_t),
          &all_.memory.rails->counts[turn_of_call(epoch_)][job_.pe], epoch_, rank);
    }
  }
  /// @return whether the plan is valid, the same in all threads; if not, the plan is empty: a
  /// dispatch by it sends nothing
  __device__ bool receive() const {
    bool all_arrived = !failed_;
    for (std::int32_t source = thread_; source < n_ && !failed_; source += threads_) {
      bool arrived = true;
      const std::uint64_t begin_ns = device::global_time_ns();
      device::wait_at_least(job_, &all_.memory.rails->counts[turn_of_call(epoch_)][source], epoch_,
                            source, arrived);
      add_wait(shape_, all_.memory, job_.pe, 0, source, device::global_time_ns() - begin_ns);
      if (!arrived)
        record_failure(job_, all_.memory.node.flags, epoch_, source);
      all_arrived = all_arrived && arrived;
    }
    all_arrived = device::Block::all(all_arrived);
    if (!all_arrived)
      clear_slots();
    // After a timeout no counts are used: those that are late may be arriving now.
    const auto received = [&](std::int32_t source, std::int32_t word) {
      return all_arrived ? all_.memory.counts_in[shape_.message_at(buffer_, source) + word] : 0;
    };
    const std::int32_t nodes = shape_.n_nodes();
    for (std::int32_t i = thread_; i < n_ * n_; i += threads_)
      all_.plan.counts[i] = received(i / n_, i % n_);
    for (std::int32_t i = thread_; i < n_ * nodes; i += threads_)
      all_.plan.crossing_counts[i] = received(i / nodes, n_ + i % nodes);
    for (std::int32_t expert = thread_; expert < shape_.shape.local_experts(); expert += threads_) {
      std::int32_t count = 0;
      for (std::int32_t source = 0; source < n_; ++source)
        count += received(source, columns_ + expert);
      all_.plan.expert_counts[expert] = aligned_count(count, shape_.shape.expert_alignment);
    }
    device::Block::sync();
    for (std::int32_t i = thread_; i < n_ * n_; i += threads_)
      all_.plan.bases[i] = base_of(all_.plan.counts, n_, i / n_, i % n_);
    return all_arrived;
  }
  /// Called by all threads: all later calls fail, on this rank and on those that it stores the
  /// failure to.
  __device__ void fail() const {
    const Call calls(job_, all_.memory.node.flags, shape_.node_ranks,
                     shape_.first_rank_of_node(job_.pe));
    const Rails rails(job_, shape_, all_.memory, calls.epoch());
    device::Block::sync(); // all threads have read the number of the last call
    if (thread_ == 0)
      calls.fail();
    device::Block::sync();
    rails.announce_failure(device::load_relaxed(&all_.memory.node.flags->failure));
  }

  const DeviceJob& job_;
  const InternodeNotify& all_;
  const InternodeShape& shape_;
  std::uint64_t epoch_;
  bool failed_; ///< a call of this rank has failed: do not wait for other ranks
  std::int32_t buffer_, n_, columns_, thread_, threads_;
  TokenCounts counts_;
  std::int32_t* chosen_;
};

} // namespace shmemctl::moe
