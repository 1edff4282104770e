// The bodies of the kernels of collectives.
#pragma once

#include "kernels/bench/collectives.h"
#include "kernels/bench/pattern.h"
#include "kernels/bench/timed_region.cuh"

namespace shmemctl::bench {

/// Runs one collective after the other. All blocks call Call::run(): static bool run(job,
/// arguments, dest, source).
template <class Call>
struct CollectiveBody {
  static __device__ void run(const DeviceJob& job, KernelControl* control,
                             const CollectiveArguments& a) {
    TimedRegion region(job, control);
    if (!region.begin())
      return;
    bool ok = true;
    for (std::uint64_t number = a.first; ok && number < a.first + a.count; ++number) {
      ok = Call::run(job, a, a.memory + a.dest_offset_bytes,
                     a.memory + number % variants * variant_step_bytes);
      // Every block arrives here, even after a failure: a wait that times out also ends the waits
      // of the other blocks.
      ok = region.sync_grid() && ok;
      ok = Block::all(ok);
    }
    region.end(ok);
  }
};

struct Broadcast {
  static __device__ bool run(const DeviceJob& job, const CollectiveArguments& a, std::byte* dest,
                             const std::byte* source) {
    return broadcast_grid(job, team_world, dest, source, a.size_bytes, 0);
  }
};
struct Fcollect {
  static __device__ bool run(const DeviceJob& job, const CollectiveArguments& a, std::byte* dest,
                             const std::byte* source) {
    return fcollect_grid(job, team_world, dest, source, a.size_bytes);
  }
};
struct Alltoall {
  static __device__ bool run(const DeviceJob& job, const CollectiveArguments& a, std::byte* dest,
                             const std::byte* source) {
    return alltoall_grid(job, team_world, dest, source, a.size_bytes);
  }
};
struct Alltoallv {
  static __device__ bool run(const DeviceJob& job, const CollectiveArguments& a, std::byte* dest,
                             const std::byte* source) {
    const auto* const sizes =
        reinterpret_cast<const std::uint64_t*>(a.memory + a.lists_offset_bytes);
    return alltoallv_grid(job, team_world, dest, source, sizes, sizes + job.n_pes,
                          sizes + std::ptrdiff_t{2} * job.n_pes);
  }
};

template <class T>
struct Reduce {
  static __device__ bool run(const DeviceJob& job, const CollectiveArguments& a, std::byte* dest,
                             const std::byte* source) {
    return reduce_grid<T>(job, team_world, reinterpret_cast<T*>(dest),
                          reinterpret_cast<const T*>(source), a.size_bytes / sizeof(T),
                          ReduceOp::sum);
  }
};
template <class T>
struct ReduceScatter {
  static __device__ bool run(const DeviceJob& job, const CollectiveArguments& a, std::byte* dest,
                             const std::byte* source) {
    return reducescatter_grid<T>(job, team_world, reinterpret_cast<T*>(dest),
                                 reinterpret_cast<const T*>(source), a.size_bytes / sizeof(T),
                                 ReduceOp::sum);
  }
};

} // namespace shmemctl::bench
