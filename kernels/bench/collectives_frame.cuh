// The loop of a kernel that makes one collective after the other.
#pragma once

#include "kernels/bench/collectives.h"
#include "kernels/bench/frame.cuh"
#include "kernels/bench/pattern.h"

namespace shmemctl::bench {

/// Of collective number `number`.
__device__ inline std::byte* collective_source(const CollectiveArguments& a, std::uint64_t number) {
  return a.memory + number % variants * variant_step_bytes;
}

/// Call: static bool run(job, arguments, dest, source), by all blocks.
template <class Call>
__global__ void __launch_bounds__(1024)
    collective(const __grid_constant__ DeviceJob job, KernelControl* control, KernelScope,
               const __grid_constant__ CollectiveArguments a) {
  Frame frame(job, control);
  if (!frame.begin())
    return;
  bool ok = true;
  for (std::uint64_t number = a.first; ok && number < a.first + a.count; ++number) {
    ok = Call::run(job, a, a.memory + a.dest_offset_bytes, collective_source(a, number));
    // Every block comes, whatever it has seen: a wait that gives up ends the others' too.
    ok = frame.meet() && ok;
    ok = __syncthreads_and(ok) != 0;
  }
  frame.end(ok);
}

} // namespace shmemctl::bench
