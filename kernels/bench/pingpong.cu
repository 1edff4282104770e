#include "kernels/bench/launch.cuh"
#include "kernels/bench/pingpong.cuh"

namespace shmemctl::bench::SHMEMCTL_BUILD_VARIANT {

std::string launch_pingpong(const KernelLaunch& how, const PingPongArguments& arguments) {
  return launch_by_scope<PingPongBody>(how, arguments);
}

} // namespace shmemctl::bench::SHMEMCTL_BUILD_VARIANT
