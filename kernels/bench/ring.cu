#include "kernels/bench/launchers.h"
#include "kernels/bench/launching.cuh"
#include "kernels/bench/pingpong_kernel.cuh"

namespace shmemctl::bench::SHMEMCTL_WAYS {

std::string launch_ring(const KernelLaunch& how, const RingArguments& arguments) {
  return launch_by_scope<RingBody>(how, arguments);
}

} // namespace shmemctl::bench::SHMEMCTL_WAYS
