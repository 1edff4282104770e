#include "kernels/bench/check.h"

#include "kernels/bench/frame.cuh"

namespace shmemctl::bench {

namespace {

struct FillArguments {
  std::uint64_t* words;
  std::uint64_t count, seed;
  int pe;
};
__global__ void fill(const __grid_constant__ DeviceJob, KernelControl*, KernelScope,
                     const __grid_constant__ FillArguments a) {
  for (std::uint64_t i = OfThread::caller(); i < a.count; i += OfThread::callers())
    a.words[i] = pattern_word(a.seed, a.pe, i);
}

struct CheckArguments {
  const std::byte* area;
  PatternSlots slots;
};
__global__ void check(const __grid_constant__ DeviceJob job, KernelControl* control, KernelScope,
                      const __grid_constant__ CheckArguments a) {
  Frame frame(job, control);
  if (OfThread::caller() == 0)
    control->wrong_at = UINT64_MAX;
  if (!frame.meet())
    return;
  const std::uint64_t size_bytes = a.slots.slots * a.slots.slot_bytes;
  std::uint64_t wrong = UINT64_MAX;
  for (std::uint64_t at = OfThread::caller(); at < size_bytes && wrong == UINT64_MAX;
       at += OfThread::callers())
    if (static_cast<std::uint8_t>(a.area[at]) != a.slots.expected(at))
      wrong = at;
  if (wrong != UINT64_MAX)
    atomicMin(reinterpret_cast<unsigned long long*>(&control->wrong_at),
              static_cast<unsigned long long>(wrong));
  if (!frame.meet() || OfThread::caller() != 0)
    return;
  const std::uint64_t first =
      atomicAdd(reinterpret_cast<unsigned long long*>(&control->wrong_at), 0);
  if (first == UINT64_MAX)
    return;
  control->expected = a.slots.expected(first);
  control->found = static_cast<std::uint8_t>(a.area[first]);
}

struct Nothing {};
__global__ void timer_step(const __grid_constant__ DeviceJob, KernelControl* control, KernelScope,
                           const __grid_constant__ Nothing) {
  constexpr int readings = 4096;
  std::uint64_t smallest = UINT64_MAX, last = device::global_time_ns();
  for (int i = 0; i < readings; ++i) {
    const std::uint64_t now = device::global_time_ns();
    if (now > last && now - last < smallest)
      smallest = now - last;
    last = now;
  }
  control->step_ns = smallest;
}

__global__ void empty(const __grid_constant__ DeviceJob job, KernelControl* control, KernelScope,
                      const __grid_constant__ Nothing) {
  Frame frame(job, control);
  if (frame.begin())
    frame.end();
}

} // namespace

std::string launch_fill(const KernelLaunch& how, std::byte* area, std::size_t size_bytes,
                        std::uint64_t seed, int pe) {
  return launch_together(
      fill, how, FillArguments{reinterpret_cast<std::uint64_t*>(area), size_bytes / 8, seed, pe});
}

std::string launch_check(const KernelLaunch& how, const std::byte* area,
                         const PatternSlots& slots) {
  return launch_together(check, how, CheckArguments{area, slots});
}

std::string launch_timer_step(const KernelLaunch& how) {
  return launch_together(timer_step, how, Nothing{});
}

std::string launch_empty(const KernelLaunch& how) {
  return launch_together(empty, how, Nothing{});
}

} // namespace shmemctl::bench
