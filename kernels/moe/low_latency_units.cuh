// Low-latency dispatch and combine by units that carry data and flag together (row_units.h), for
// few tokens. A dispatch's senders are those of low_latency_dispatch.cuh; its receivers, and both
// sides of a combine, are here.
//
// Memory order. A unit is one aligned 64-bit word, stored and loaded by relaxed accesses of system
// scope, which are single-copy atomic: a load that returns the number of this dispatch returns the
// 32 bits that were stored with it. Each unit of a row is waited for by itself, so nothing is said,
// or assumed, about the order of two units, of units and the count, or of different senders.
//
// A unit that has this dispatch's number cannot be an older one: its place was last written in
// dispatch e - 2, with that number, or never (zero). Numbers have 32 bits here, so a unit that was
// not written for exactly 2^32 dispatches would be taken for a new one; a place of a slot that is
// used once in four thousand million dispatches does not occur in practice, and costs a wrong row,
// not a hang.
//
// A unit of dispatch e is not overwritten before it has been read: the sender writes there again in
// e + 2, which it begins only after it has received e + 1 from this rank, and this rank has begun
// e + 1 after the kernel that received e has ended (low_latency.h).
//
// Receivers store rows and records to this rank's own memory, by plain stores; kernels that follow
// on the stream see them.
//
// A combine's units have the number of the combine. Outputs are those of earlier kernels on the
// stream, so its senders load them plainly; what they store needs no order, as above. Why one
// buffer suffices: LowLatencyMemory::returned.
//
// What receives, and both sides of a combine, also compiles for the host, where tests run it on
// threads; the kernels are in low_latency_unit_kernels.cuh.
#pragma once

#include "kernels/device/scope.cuh"
#include "kernels/device/symmetric_address.cuh"
#include "kernels/moe/low_latency_common.cuh"
#include "kernels/moe/row_units.h"
#include "kernels/moe/vector_cast.cuh"

namespace shmemctl::moe {

class UnitReceiver {
public:
  __device__ UnitReceiver(const LowLatencyDispatch& all, std::uint64_t epoch)
      : all_(all), units_(all.shape, all.scales), epoch_(epoch),
        buffer_(buffer_of_dispatch(epoch)) {}

  /// Called by all threads of receiving block `block` of `blocks`.
  __device__ void run(std::int32_t block, std::int32_t blocks) {
    LowLatencyFlags* const flags = all_.memory.flags;
    for (std::int32_t item = block; item < expected_slots(all_.shape); item += blocks) {
      const ExpectedSlot expected = expected_slot(all_.shape, item);
      std::uint64_t begin_ns = 0, begun_ns = 0;
      std::int32_t found = 0;
      if (device::Block::rank() == 0) {
        begin_ns = device::global_time_ns();
        found = wait_for_count(expected.source);
        begun_ns = device::global_time_ns();
      }
      const auto rows = static_cast<std::int32_t>(
          device::Block::broadcast(static_cast<std::uint64_t>(static_cast<std::int64_t>(found))));
      if (expected.slot < rows)
        receive_row(expected);
      device::Block::sync(); // the whole row has arrived
      // (A source that is masked meanwhile may be counted by two blocks.)
      if (device::Block::rank() == 0 && expected.slot == slot_that_counts(rows)) {
        flags->begin_wait_ns[expected.source] += begun_ns - begin_ns;
        count_wait(flags, 0, expected.source, begin_ns);
      }
    }
  }

  /// Called by all threads of a receiving block at its end: the last block knows which sources any
  /// of them has masked, and stores the counts.
  __device__ void finish(std::uint32_t blocks) const {
    device::Block::sync();
    if (device::Block::rank() != 0)
      return;
    LowLatencyFlags* const flags = all_.memory.flags;
    // Acquire and release: masks that other blocks have set are seen by the last one.
    if (blocks > 1 && device::atomic_word_add_ordered(&flags->blocks_done[1], 1u) + 1 != blocks)
      return;
    for (std::int32_t source = 0; source < all_.shape.n_ranks; ++source)
      all_.counts[source] = device::load_relaxed(&flags->masked[source]) != 0
                                ? -1
                                : rows_of_count(count_of(device::load_relaxed(count_at(source))));
    flags->blocks_done[1] = 0;
    device::store_relaxed(&flags->received, epoch_);
  }

private:
  __device__ const std::uint64_t* count_at(std::int32_t source) const {
    return all_.memory.flags->block_counts[buffer_][source];
  }
  /// Called by one thread. @return -1 if the source is masked
  __device__ std::int32_t wait_for_count(std::int32_t source) const {
    std::uint64_t word = 0;
    const bool arrived = wait_or_mask(all_.memory.flags, source, all_.rank_timeout_ns, [&] {
      word = device::load_relaxed(count_at(source));
      return has_come(word, epoch_);
    });
    return arrived ? rows_of_count(count_of(word)) : -1;
  }
  /// The rest of a row whose source is masked meanwhile is not received: no kernel uses it.
  __device__ void receive_row(ExpectedSlot expected) const {
    const auto* const from = reinterpret_cast<const std::uint64_t*>(
        all_.memory.units + units_.offset(all_.shape, buffer_, expected.source, expected.slot));
    const std::int64_t row = static_cast<std::int64_t>(buffer_) * all_.shape.max_rows() +
                             fixed_slot(all_.shape, expected.source, expected.slot);
    auto* const values = reinterpret_cast<uint4*>(all_.memory.rows) + row * units_.value_groups;
    auto* const record = reinterpret_cast<uint4*>(all_.memory.records) + row * units_.record_groups;
    for (auto group = device::Block::rank(); group < units_.groups;
         group += device::Block::size()) {
      device::WordPair first{}, second{};
      const bool arrived =
          wait_or_mask(all_.memory.flags, expected.source, all_.rank_timeout_ns, [&] {
            first = device::load_pair_relaxed(from + units_.pair(group, 0));
            second = device::load_pair_relaxed(from + units_.pair(group, 1));
            return has_come(first.first, epoch_) && has_come(first.second, epoch_) &&
                   has_come(second.first, epoch_) && has_come(second.second, epoch_);
          });
      if (!arrived)
        return;
      const uint4 value = uint4{data_of(first.first), data_of(first.second), data_of(second.first),
                                data_of(second.second)};
      if (group < units_.value_groups)
        values[group] = value;
      else
        record[group - units_.value_groups] = value;
    }
  }
  __device__ static std::uint32_t data_of(std::uint64_t unit) {
    return static_cast<std::uint32_t>(unit);
  }

  const LowLatencyDispatch& all_;
  UnitLayout units_;
  std::uint64_t epoch_;
  std::int32_t buffer_;
};

/// The sending side of a combine: outputs of received rows go to their tokens' sources.
class UnitReturner {
public:
  __device__ UnitReturner(const DeviceJob& job, const LowLatencyCombine& all, std::uint64_t epoch)
      : job_(job), all_(all), units_(all.shape, all.weighted), layout_(all.shape, all.scales),
        epoch_(epoch) {}

  /// Called by all threads of sending block `block` of `blocks`.
  __device__ void run(std::int32_t block, std::int32_t blocks) const {
    if (block == 0)
      signal_begin();
    LowLatencyFlags* const flags = all_.memory.flags;
    const std::int32_t buffer = buffer_of_dispatch(device::load_relaxed(&flags->received));
    for (std::int32_t item = block; item < returned_rows(all_.shape, all_.weighted);
         item += blocks) {
      const ReturnedRow row = returned_row(all_.shape, all_.weighted, item);
      // A masked rank does not get its outputs: its rows were not taken.
      if (row.slot < all_.counts[row.source] &&
          device::load_relaxed(&flags->masked[row.source]) == 0)
        send(row, buffer);
    }
  }

private:
  /// For the wait matrix only: says that this rank has begun, ordered with nothing.
  __device__ void signal_begin() const {
    LowLatencyFlags* const flags = all_.memory.flags;
    for (std::int32_t rank = device::Block::rank(); rank < all_.shape.n_ranks;
         rank += device::Block::size())
      if (device::load_relaxed(&flags->masked[rank]) == 0)
        device::store_relaxed(device::pointer_to(job_, &flags->ready[job_.pe], rank), epoch_);
  }
  __device__ void send(ReturnedRow row, std::int32_t buffer) const {
    const Shape& shape = all_.shape;
    const std::int32_t slot = fixed_slot(shape, row.source, row.slot);
    const auto* const record =
        reinterpret_cast<const std::int32_t*>(all_.memory.records) +
        (static_cast<std::int64_t>(buffer) * shape.max_rows() + slot) * layout_.words();
    if (all_.weighted && record[layout_.experts() + row.choice] == no_expert)
      return;
    const std::int64_t output =
        all_.weighted ? static_cast<std::int64_t>(slot) * shape.top_k + row.choice : slot;
    const auto* const from =
        reinterpret_cast<const uint4*>(all_.memory.outputs) + output * units_.groups;
    auto* const to = reinterpret_cast<std::uint64_t*>(
        device::pointer_to(job_, all_.memory.returned, row.source) +
        units_.offset(record[layout_.token()], all_.weighted ? row.choice : job_.pe));
    for (auto group = device::Block::rank(); group < units_.groups;
         group += device::Block::size()) {
      const uint4 value = from[group];
      device::store_pair_relaxed(to + units_.pair(group, 0), {unit_of(value.x), unit_of(value.y)});
      device::store_pair_relaxed(to + units_.pair(group, 1), {unit_of(value.z), unit_of(value.w)});
    }
  }
  __device__ std::uint64_t unit_of(std::uint32_t value) const {
    return count_word(epoch_, static_cast<std::int32_t>(value));
  }

  const DeviceJob& job_;
  const LowLatencyCombine& all_;
  ReturnLayout units_;
  MetadataLayout layout_;
  std::uint64_t epoch_;
};

/// The receiving side of a combine: a thread adds up 16 bytes of a token's rows as they come, in
/// the same order and by the same arithmetic as CombineReducer.
template <bool weighted>
class UnitAdder {
public:
  __device__ UnitAdder(const LowLatencyCombine& all, std::uint64_t epoch)
      : all_(all), units_(all.shape, weighted), epoch_(epoch) {
    for (std::int32_t rank = 0; rank < all.shape.n_ranks; ++rank)
      masked_ |= device::load_relaxed(&all.memory.flags->masked[rank]) != 0 ? 1u << rank : 0u;
  }

  /// Called by all threads of adding block `block` of `blocks`.
  __device__ void run(std::int32_t block, std::int32_t blocks) const {
    if (block == 0)
      count_waits();
    const auto threads = device::Block::size();
    const std::int32_t chunks = (units_.groups + threads - 1) / threads;
    for (std::int32_t item = block; item < all_.tokens * chunks; item += blocks) {
      const std::int32_t group = item % chunks * threads + device::Block::rank();
      if (group < units_.groups)
        add_up(item / chunks, group);
    }
  }

private:
  static constexpr int at_once = 8; ///< rows whose loads are in flight together

  /// Called by the first block: since when each rank is known to have begun this combine. A rank
  /// that does not begin in time is masked.
  __device__ void count_waits() const {
    LowLatencyFlags* const flags = all_.memory.flags;
    for (std::int32_t rank = device::Block::rank(); rank < all_.shape.n_ranks;
         rank += device::Block::size()) {
      const std::uint64_t begin_ns = device::global_time_ns();
      wait_or_mask(flags, rank, all_.rank_timeout_ns,
                   [&] { return device::load_relaxed(&flags->ready[rank]) >= epoch_; });
      count_wait(flags, 1, rank, begin_ns);
    }
  }

  /// The rank that returns the row; -1: there is no such row.
  __device__ std::int32_t rank_of(std::int32_t token, std::int32_t row) const {
    const Shape& shape = all_.shape;
    std::int32_t rank = -1;
    if (weighted) {
      const std::int32_t expert =
          all_.experts[static_cast<std::int64_t>(token) * shape.top_k + row];
      rank = expert < 0 ? -1 : shape.rank_of_expert(expert);
    } else if (all_.slots[static_cast<std::int64_t>(token) * shape.n_ranks + row] >= 0) {
      rank = row;
    }
    return rank >= 0 && (masked_ >> rank & 1) != 0 ? -1 : rank;
  }

  __device__ void add_up(std::int32_t token, std::int32_t group) const {
    EightFloats total;
    total.set(0);
    for (std::int32_t first = 0; first < units_.rows; first += at_once) {
      std::uint32_t wanted = 0;
#pragma unroll
      for (int i = 0; i < at_once; ++i)
        if (first + i < units_.rows && rank_of(token, first + i) >= 0)
          wanted |= 1u << i;
      uint4 values[at_once] = {};
      const std::uint32_t arrived = wait_for(token, group, first, wanted, values);
#pragma unroll
      for (int i = 0; i < at_once; ++i) {
        if ((arrived >> i & 1) == 0)
          continue;
        if (weighted)
          total.add_weighted(
              all_.weights[static_cast<std::int64_t>(token) * all_.shape.top_k + first + i],
              values[i]);
        else
          total.add(values[i]);
      }
    }
    reinterpret_cast<uint4*>(
        all_.results)[static_cast<std::int64_t>(token) * units_.groups + group] = total.rounded();
  }

  /// Waits for this group of the wanted rows. Ranks whose rows do not come in time are masked.
  /// @return a bit for each row that came
  __device__ std::uint32_t wait_for(std::int32_t token, std::int32_t group, std::int32_t first,
                                    std::uint32_t wanted, uint4 (&values)[at_once]) const {
    const auto* const from =
        reinterpret_cast<const std::uint64_t*>(all_.memory.returned + units_.offset(token, first));
    std::uint32_t pending = wanted;
    const auto poll = [&] {
      device::WordPair low[at_once] = {}, high[at_once] = {};
#pragma unroll
      for (int i = 0; i < at_once; ++i) // all loads first
        if ((pending >> i & 1) != 0) {
          low[i] = device::load_pair_relaxed(from + i * units_.units() + units_.pair(group, 0));
          high[i] = device::load_pair_relaxed(from + i * units_.units() + units_.pair(group, 1));
        }
#pragma unroll
      for (int i = 0; i < at_once; ++i)
        if ((pending >> i & 1) != 0 && have_come(low[i]) && have_come(high[i])) {
          values[i] = uint4{static_cast<std::uint32_t>(low[i].first),
                            static_cast<std::uint32_t>(low[i].second),
                            static_cast<std::uint32_t>(high[i].first),
                            static_cast<std::uint32_t>(high[i].second)};
          pending &= ~(1u << i);
        }
      return pending == 0;
    };
    const auto expired = [&](std::uint64_t waited_ns) { return waited_ns > all_.rank_timeout_ns; };
    if (!device::poll_or_expire(poll, expired))
      for (int i = 0; i < at_once; ++i)
        if ((pending >> i & 1) != 0)
          device::store_relaxed(&all_.memory.flags->masked[rank_of(token, first + i)], 1);
    return wanted & ~pending;
  }
  __device__ bool have_come(const device::WordPair& units) const {
    return has_come(units.first, epoch_) && has_come(units.second, epoch_);
  }

  const LowLatencyCombine& all_;
  ReturnLayout units_;
  std::uint64_t epoch_;
  std::uint32_t masked_ = 0; ///< a bit for each rank that was masked when this kernel began
};

} // namespace shmemctl::moe
