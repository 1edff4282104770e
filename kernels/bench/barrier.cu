#include "kernels/bench/barrier.cuh"
#include "kernels/bench/launch.cuh"

namespace shmemctl::bench::SHMEMCTL_BUILD_VARIANT {

std::string launch_barrier(const KernelLaunch& how, const BarrierArguments& arguments) {
  return arguments.checks ? launch_by_scope<CheckedBarrierBody>(how, arguments)
                          : launch_by_scope<BarrierBody>(how, arguments);
}

} // namespace shmemctl::bench::SHMEMCTL_BUILD_VARIANT
