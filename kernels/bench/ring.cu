#include "kernels/bench/launch.cuh"
#include "kernels/bench/launchers.h"
#include "kernels/bench/pingpong.cuh"

namespace shmemctl::bench::SHMEMCTL_BUILD_VARIANT {

std::string launch_ring(const KernelLaunch& how, const RingArguments& arguments) {
  return launch_by_scope<RingBody>(how, arguments);
}

} // namespace shmemctl::bench::SHMEMCTL_BUILD_VARIANT
