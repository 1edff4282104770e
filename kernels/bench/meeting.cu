#include "kernels/bench/meeting.h"

#include "kernels/bench/frame.cuh"

namespace shmemctl::bench {

namespace {

template <class Scope>
__device__ bool meet(const DeviceJob& job, MeetingKernel kernel) {
  return kernel == MeetingKernel::barrier
             ? device::barrier<typename Scope::Api>(job, device::team_world)
             : device::sync<typename Scope::Api>(job, device::team_world);
}

/// Tells every PE that I come, meets, and looks whether all have come.
template <class Scope>
__device__ bool meet_and_look(const DeviceJob& job, const MeetingArguments& a,
                              KernelControl* control, std::uint64_t number) {
  for (int pe = Scope::rank(); pe < job.n_pes; pe += Scope::size())
    device::put_value(job, a.cells + job.pe, number, pe);
  // A sync completes nothing: what was put for this look is completed here.
  device::quiet<typename Scope::Api>(job);
  if (!meet<Scope>(job, a.kernel))
    return false;
  for (int pe = Scope::rank(); pe < job.n_pes; pe += Scope::size()) {
    const std::uint64_t seen = device::load_acquire(a.cells + pe);
    if (seen < number && control->wrong_at == UINT64_MAX) {
      control->wrong_at = static_cast<std::uint64_t>(pe) * sizeof(std::uint64_t);
      control->expected = number;
      control->found = seen;
    }
  }
  return true;
}

template <class Scope>
__global__ void __launch_bounds__(1024)
    meeting(const __grid_constant__ DeviceJob job, KernelControl* control, KernelScope,
            const __grid_constant__ MeetingArguments a) {
  Frame frame(job, control);
  if (!frame.begin())
    return;
  bool ok = true;
  for (std::uint64_t i = 0; ok && i < a.count; ++i)
    ok = meet<Scope>(job, a.kernel);
  frame.end(ok);
}

template <class Scope>
__global__ void __launch_bounds__(1024)
    watched_meeting(const __grid_constant__ DeviceJob job, KernelControl* control, KernelScope,
                    const __grid_constant__ MeetingArguments a) {
  Frame frame(job, control);
  if (threadIdx.x == 0)
    control->wrong_at = UINT64_MAX;
  if (!frame.begin())
    return;
  bool ok = true;
  for (std::uint64_t i = 1; ok && i <= a.count; ++i)
    ok = meet_and_look<Scope>(job, a, control, a.first + i);
  frame.end(ok);
}

} // namespace

std::string launch_meeting(const KernelLaunch& how, const MeetingArguments& arguments) {
  if (arguments.looks)
    return launch_together(SHMEMCTL_KERNEL_OF(watched_meeting, how.scope), how, arguments);
  return launch_together(SHMEMCTL_KERNEL_OF(meeting, how.scope), how, arguments);
}

} // namespace shmemctl::bench
