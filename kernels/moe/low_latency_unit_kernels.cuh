// The kernels of low latency by units.
#pragma once

#include "kernels/moe/low_latency_dispatch.cuh"
#include "kernels/moe/low_latency_units.cuh"

namespace shmemctl::moe {

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

/// Sending blocks, then those that add up; a single phase has only one kind. All read the number of
/// the combine before the last block advances it.
template <bool weighted>
__global__ void __launch_bounds__(unit_combine_threads)
    low_latency_combine_by_units(const __grid_constant__ DeviceJob job,
                                 const __grid_constant__ LowLatencyCombine all,
                                 std::int32_t senders) {
  LowLatencyFlags* const flags = all.memory.flags;
  const std::uint64_t epoch = device::load_relaxed(&flags->combined) + 1;
  const auto block = static_cast<std::int32_t>(blockIdx.x);
  if (block < senders)
    UnitReturner(job, all, epoch).run(block, senders);
  else
    UnitAdder<weighted>(all, epoch)
        .run(block - senders, static_cast<std::int32_t>(gridDim.x) - senders);
  if (all.phases != Phases::send)
    count_call(&flags->blocks_done[0], gridDim.x, &flags->combined, epoch);
}

} // namespace shmemctl::moe
