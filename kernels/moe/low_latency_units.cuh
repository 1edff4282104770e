// Low-latency dispatch by units that carry data and flag together (row_units.h), for few tokens:
// the receiving side. Senders are those of low_latency_dispatch.cuh.
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
#pragma once

#include "kernels/moe/low_latency_dispatch.cuh"

namespace shmemctl::moe {

class UnitReceiver {
public:
  __device__ UnitReceiver(const LowLatencyDispatch& all, std::uint64_t epoch)
      : all_(all), units_(all.shape, all.scales), epoch_(epoch),
        buffer_(buffer_of_dispatch(epoch)) {}

  /// Called by all threads of receiving block `block` of `blocks`.
  __device__ void run(std::int32_t block, std::int32_t blocks) {
    __shared__ std::int32_t shared_rows;
    LowLatencyFlags* const flags = all_.memory.flags;
    for (std::int32_t item = block; item < expected_slots(all_.shape); item += blocks) {
      const ExpectedSlot expected = expected_slot(all_.shape, item);
      std::uint64_t begin_ns = 0, begun_ns = 0;
      if (threadIdx.x == 0) {
        begin_ns = device::global_time_ns();
        shared_rows = wait_for_count(expected.source);
        begun_ns = device::global_time_ns();
      }
      __syncthreads();
      const std::int32_t rows = shared_rows;
      if (expected.slot < rows)
        receive_row(expected);
      __syncthreads(); // the row is there, and shared_rows may be written again
      if (threadIdx.x == 0 && expected.slot == slot_that_counts(rows)) {
        flags->begin_wait_ns[expected.source] += begun_ns - begin_ns;
        count_wait(flags, 0, expected.source, begin_ns);
      }
    }
  }

  /// Called by all threads of a receiving block at its end: the last block knows which sources any
  /// of them has masked, and stores the counts.
  __device__ void finish(std::uint32_t blocks) const {
    __syncthreads();
    if (threadIdx.x != 0)
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
  /// What is left of a row whose source is masked meanwhile is not received: nobody uses it.
  __device__ void receive_row(ExpectedSlot expected) const {
    const auto* const from = reinterpret_cast<const std::uint64_t*>(
        all_.memory.units + units_.offset(all_.shape, buffer_, expected.source, expected.slot));
    const std::int64_t row = static_cast<std::int64_t>(buffer_) * all_.shape.max_rows() +
                             fixed_slot(all_.shape, expected.source, expected.slot);
    auto* const values = reinterpret_cast<uint4*>(all_.memory.rows) + row * units_.value_groups;
    auto* const record = reinterpret_cast<uint4*>(all_.memory.records) + row * units_.record_groups;
    for (auto group = static_cast<std::int32_t>(threadIdx.x); group < units_.groups();
         group += static_cast<std::int32_t>(blockDim.x)) {
      device::WordPair first, second;
      const bool arrived =
          wait_or_mask(all_.memory.flags, expected.source, all_.rank_timeout_ns, [&] {
            first = device::load_pair_relaxed(from + units_.pair(group, 0));
            second = device::load_pair_relaxed(from + units_.pair(group, 1));
            return has_come(first.first, epoch_) && has_come(first.second, epoch_) &&
                   has_come(second.first, epoch_) && has_come(second.second, epoch_);
          });
      if (!arrived)
        return;
      const uint4 value = make_uint4(data_of(first.first), data_of(first.second),
                                     data_of(second.first), data_of(second.second));
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

/// Sending blocks, then those that receive; a single phase has only one kind.
__global__ void __launch_bounds__(send_threads, 1)
    low_latency_dispatch_by_units(const __grid_constant__ DeviceJob job,
                                  const __grid_constant__ LowLatencyDispatch all,
                                  std::int32_t senders) {
  __shared__ LowLatencySenderShared shared;
  LowLatencyFlags* const flags = all.memory.flags;
  const auto block = static_cast<std::int32_t>(blockIdx.x);
  if (block < senders) {
    const std::uint64_t epoch = device::load_relaxed(&flags->sent) + 1;
    LowLatencySender<true>(job, all, shared, senders, epoch).run();
    count_call(&flags->blocks_done[0], static_cast<std::uint32_t>(senders), &flags->sent, epoch);
  } else {
    const std::uint64_t epoch = device::load_relaxed(&flags->received) + 1;
    const auto blocks = static_cast<std::int32_t>(gridDim.x) - senders;
    UnitReceiver receiver(all, epoch);
    receiver.run(block - senders, blocks);
    receiver.finish(static_cast<std::uint32_t>(blocks));
  }
}

} // namespace shmemctl::moe
