#include "kernels/bench/check.cuh"
#include "kernels/bench/launch.cuh"

namespace shmemctl::bench {

using namespace SHMEMCTL_BUILD_VARIANT;

std::string launch_fill(const KernelLaunch& how, std::byte* area, std::size_t size_bytes,
                        std::uint64_t seed, int pe) {
  return launch_together<FillBody>(
      how, FillArguments{reinterpret_cast<std::uint64_t*>(area), size_bytes / 8, seed, pe});
}

std::string launch_check(const KernelLaunch& how, const std::byte* area,
                         const PatternSlots& slots) {
  return launch_together<CheckBody>(how, CheckArguments{area, slots});
}

std::string launch_timer_step(const KernelLaunch& how) {
  return launch_together<TimerStepBody>(how, Nothing{});
}

std::string launch_empty(const KernelLaunch& how) {
  return launch_together<EmptyBody>(how, Nothing{});
}

} // namespace shmemctl::bench
