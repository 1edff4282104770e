#include "kernels/bench/launching.cuh"
#include "kernels/bench/pingpong_kernel.cuh"

namespace shmemctl::bench {

std::string launch_ring(const KernelLaunch& how, const RingArguments& arguments) {
  return launch_by_scope<RingBody>(how, arguments);
}

} // namespace shmemctl::bench
