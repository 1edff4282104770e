// Code that the kernels of low_latency_internode.h share.
#pragma once

#include "kernels/device/signal.cuh"
#include "kernels/moe/low_latency_common.cuh"
#include "kernels/moe/low_latency_internode.h"

namespace shmemctl::moe {

using namespace device; // tests define blockIdx and the like in that namespace

/// Positions in the buffers of a call, and how this rank reaches the others.
class InternodeBuffers {
public:
  __device__ InternodeBuffers(const DeviceJob& job, const Shape& shape,
                              const LowLatencyInternodeMemory& memory)
      : job_(job), shape_(shape), memory_(memory) {}

  __device__ bool is_remote(std::int32_t rank) const {
    return device::pointer_to(job_, memory_.mapped.flags, rank) == nullptr;
  }
  __device__ bool is_masked(std::int32_t rank) const {
    return device::load_relaxed(&memory_.mapped.flags->masked[rank]) != 0;
  }
  /// Index of slot `index` of `source` in that buffer at the receiving rank, for rows and metadata;
  /// row_signals has two words per slot.
  __device__ std::int64_t slot(std::int32_t buffer, std::int32_t source, std::int32_t index) const {
    return static_cast<std::int64_t>(buffer) * shape_.max_rows() +
           fixed_slot(shape_, source, index);
  }
  /// Index of output `which` of slot `index` of `rank`, with `of_row` outputs per slot: for outputs
  /// by source rank, and for returned outputs and their signals by the rank that returns them.
  __device__ std::int64_t output_slot(std::int32_t rank, std::int32_t index, std::int32_t of_row,
                                      std::int32_t which) const {
    return static_cast<std::int64_t>(fixed_slot(shape_, rank, index)) * of_row + which;
  }

private:
  const DeviceJob& job_;
  const Shape& shape_;
  const LowLatencyInternodeMemory& memory_;
};

/// As count_call(), for internode kernels; also compiles for host threads.
__device__ inline void count_internode_call(std::uint32_t* blocks_done, std::uint32_t blocks,
                                            std::uint64_t* counter, std::uint64_t epoch) {
  device::Block::sync();
  if (device::Block::rank() != 0)
    return;
  if (device::atomic_word_add(blocks_done, 1u) + 1 == blocks) {
    device::store_relaxed(blocks_done, 0u);
    device::store_relaxed(counter, epoch);
  }
}

} // namespace shmemctl::moe
