// The kernels of barrier and sync.
#pragma once

#include "kernels/bench/barrier.h"
#include "kernels/bench/timed_region.cuh"

namespace shmemctl::bench {

template <class Scope>
__device__ bool run_barrier(const DeviceJob& job, BarrierKernel kernel) {
  return kernel == BarrierKernel::barrier ? barrier<typename Scope::Api>(job, team_world)
                                          : sync<typename Scope::Api>(job, team_world);
}

/// Stores this PE's call number at every PE, runs the barrier, and checks that all have entered.
template <class Scope>
__device__ bool barrier_and_check(const DeviceJob& job, const BarrierArguments& a,
                                  KernelControl* control, std::uint64_t number) {
  for (int pe = Scope::rank(); pe < job.n_pes; pe += Scope::size())
    put_value(job, a.cells + job.pe, number, pe);
  // A sync completes nothing: the put of this check is completed here.
  quiet<typename Scope::Api>(job);
  if (!run_barrier<Scope>(job, a.kernel))
    return false;
  for (int pe = Scope::rank(); pe < job.n_pes; pe += Scope::size()) {
    const std::uint64_t seen = load_acquire(a.cells + pe);
    if (seen < number && control->wrong_at == UINT64_MAX) {
      control->wrong_at = static_cast<std::uint64_t>(pe) * sizeof(std::uint64_t);
      control->expected = number;
      control->found = seen;
    }
  }
  return true;
}

template <class Scope>
struct BarrierBody {
  static __device__ void run(const DeviceJob& job, KernelControl* control,
                             const BarrierArguments& a) {
    TimedRegion region(job, control);
    if (!region.begin())
      return;
    bool ok = true;
    for (std::uint64_t i = 0; ok && i < a.count; ++i)
      ok = run_barrier<Scope>(job, a.kernel);
    region.end(ok);
  }
};

template <class Scope>
struct CheckedBarrierBody {
  static __device__ void run(const DeviceJob& job, KernelControl* control,
                             const BarrierArguments& a) {
    TimedRegion region(job, control);
    if (Block::rank() == 0)
      control->wrong_at = UINT64_MAX;
    if (!region.begin())
      return;
    bool ok = true;
    for (std::uint64_t i = 1; ok && i <= a.count; ++i)
      ok = barrier_and_check<Scope>(job, a, control, a.first + i);
    region.end(ok);
  }
};

} // namespace shmemctl::bench
