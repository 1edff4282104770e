#include "kernels/bench/frame.cuh"
#include "kernels/bench/pattern.h"
#include "kernels/bench/pingpong.h"

namespace shmemctl::bench {

namespace {

template <class Scope>
__device__ bool pass_on(const DeviceJob& job, const RingArguments& a) {
  const int next = (job.pe + 1) % job.n_pes, before = (job.pe + job.n_pes - 1) % job.n_pes;
  auto* const flag = reinterpret_cast<std::uint64_t*>(a.memory + a.flag_offset_bytes);
  std::byte* const slot = a.memory + a.slot_offset_bytes;
  for (std::uint64_t number = a.first; number < a.first + a.count; ++number) {
    if (job.pe == 0)
      device::put_signal_nbi<typename Scope::Api>(job, slot,
                                                  a.memory + number % variants * variant_step_bytes,
                                                  a.size_bytes, flag, number + 1, next);
    bool ok = true;
    if (Scope::rank() == 0)
      ok = wait_masked(job, flag, ~std::uint64_t{0}, number + 1, before);
    if (!Scope::all(ok))
      return false;
    if (job.pe != 0)
      device::put_signal_nbi<typename Scope::Api>(job, slot, slot, a.size_bytes, flag, number + 1,
                                                  next);
  }
  return true;
}

template <class Scope>
__global__ void __launch_bounds__(1024)
    ring(const __grid_constant__ DeviceJob job, KernelControl* control, KernelScope,
         const __grid_constant__ RingArguments a) {
  Frame frame(job, control);
  if (frame.begin())
    frame.end(pass_on<Scope>(job, a));
}

} // namespace

std::string launch_ring(const KernelLaunch& how, const RingArguments& arguments) {
  return launch_together(SHMEMCTL_KERNEL_OF(ring, how.scope), how, arguments);
}

} // namespace shmemctl::bench
