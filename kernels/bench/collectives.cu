// Launches the collectives. Reductions, which take longest to compile, are in reduce.cu.
#include "kernels/bench/collectives.cuh"
#include "kernels/bench/launch.cuh"

namespace shmemctl::bench::SHMEMCTL_BUILD_VARIANT {

std::string launch_collective(const KernelLaunch& how, const CollectiveArguments& arguments) {
  switch (arguments.kernel) {
  case CollectiveKernel::broadcast:
    return launch_together<CollectiveBody<Broadcast>>(how, arguments);
  case CollectiveKernel::fcollect:
    return launch_together<CollectiveBody<Fcollect>>(how, arguments);
  case CollectiveKernel::alltoall:
    return launch_together<CollectiveBody<Alltoall>>(how, arguments);
  case CollectiveKernel::alltoallv:
    return launch_together<CollectiveBody<Alltoallv>>(how, arguments);
  default:
    return launch_reduction(how, arguments);
  }
}

int max_collective_blocks(CollectiveKernel kernel, CollectiveNumber number, int device,
                          int threads) {
  switch (kernel) {
  case CollectiveKernel::broadcast:
    return max_blocks_of<CollectiveBody<Broadcast>, CollectiveArguments>(device, threads);
  case CollectiveKernel::fcollect:
    return max_blocks_of<CollectiveBody<Fcollect>, CollectiveArguments>(device, threads);
  case CollectiveKernel::alltoall:
    return max_blocks_of<CollectiveBody<Alltoall>, CollectiveArguments>(device, threads);
  case CollectiveKernel::alltoallv:
    return max_blocks_of<CollectiveBody<Alltoallv>, CollectiveArguments>(device, threads);
  default:
    return max_reduction_blocks(kernel, number, device, threads);
  }
}

} // namespace shmemctl::bench::SHMEMCTL_BUILD_VARIANT
