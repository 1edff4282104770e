// Launches the collectives that add up: reduce and reducescatter.
#include "kernels/bench/collectives.cuh"
#include "kernels/bench/launch.cuh"

namespace shmemctl::bench::SHMEMCTL_BUILD_VARIANT {

namespace {

template <template <class> class Call>
std::string launch_of(const KernelLaunch& how, const CollectiveArguments& arguments) {
  switch (arguments.number) {
  case CollectiveNumber::int64:
    return launch_together<CollectiveBody<Call<std::int64_t>>>(how, arguments);
  case CollectiveNumber::float32:
    return launch_together<CollectiveBody<Call<float>>>(how, arguments);
  case CollectiveNumber::bf16:
    return launch_together<CollectiveBody<Call<Bf16>>>(how, arguments);
  case CollectiveNumber::fp16:
    return launch_together<CollectiveBody<Call<Fp16>>>(how, arguments);
  }
  return "no such number";
}

template <template <class> class Call>
int max_blocks_with(CollectiveNumber number, int device, int threads) {
  switch (number) {
  case CollectiveNumber::int64:
    return max_blocks_of<CollectiveBody<Call<std::int64_t>>, CollectiveArguments>(device, threads);
  case CollectiveNumber::float32:
    return max_blocks_of<CollectiveBody<Call<float>>, CollectiveArguments>(device, threads);
  case CollectiveNumber::bf16:
    return max_blocks_of<CollectiveBody<Call<Bf16>>, CollectiveArguments>(device, threads);
  case CollectiveNumber::fp16:
    return max_blocks_of<CollectiveBody<Call<Fp16>>, CollectiveArguments>(device, threads);
  }
  return 0;
}

} // namespace

std::string launch_reduction(const KernelLaunch& how, const CollectiveArguments& arguments) {
  return arguments.kernel == CollectiveKernel::reduce ? launch_of<Reduce>(how, arguments)
                                                      : launch_of<ReduceScatter>(how, arguments);
}

int max_reduction_blocks(CollectiveKernel kernel, CollectiveNumber number, int device,
                         int threads) {
  return kernel == CollectiveKernel::reduce
             ? max_blocks_with<Reduce>(number, device, threads)
             : max_blocks_with<ReduceScatter>(number, device, threads);
}

} // namespace shmemctl::bench::SHMEMCTL_BUILD_VARIANT
