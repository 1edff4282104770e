// Collectives that add up.
#include "kernels/bench/collectives_kernel.cuh"
#include "kernels/bench/launchers.h"
#include "kernels/bench/launching.cuh"

namespace shmemctl::bench::SHMEMCTL_WAYS {

std::string launch_reduction(const KernelLaunch& how, const CollectiveArguments& arguments) {
  if (arguments.kernel == CollectiveKernel::reduce)
    return arguments.floats ? launch_together<CollectiveBody<Reduce<float>>>(how, arguments)
                            : launch_together<CollectiveBody<Reduce<std::int64_t>>>(how, arguments);
  return arguments.floats
             ? launch_together<CollectiveBody<ReduceScatter<float>>>(how, arguments)
             : launch_together<CollectiveBody<ReduceScatter<std::int64_t>>>(how, arguments);
}

int most_reduction_blocks(CollectiveKernel kernel, bool floats, int device, int threads) {
  if (kernel == CollectiveKernel::reduce)
    return floats
               ? most_blocks_of<CollectiveBody<Reduce<float>>, CollectiveArguments>(device, threads)
               : most_blocks_of<CollectiveBody<Reduce<std::int64_t>>, CollectiveArguments>(device,
                                                                                           threads);
  return floats ? most_blocks_of<CollectiveBody<ReduceScatter<float>>, CollectiveArguments>(device,
                                                                                            threads)
                : most_blocks_of<CollectiveBody<ReduceScatter<std::int64_t>>, CollectiveArguments>(
                      device, threads);
}

} // namespace shmemctl::bench::SHMEMCTL_WAYS
