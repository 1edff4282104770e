// Collectives that add up.
#include "kernels/bench/collectives_frame.cuh"
#include "kernels/bench/collectives_reducing.h"

namespace shmemctl::bench {

namespace {

template <class T>
struct Reduce {
  static __device__ bool run(const DeviceJob& job, const CollectiveArguments& a, std::byte* dest,
                             const std::byte* source) {
    return device::reduce_grid<T>(job, device::team_world, reinterpret_cast<T*>(dest),
                                  reinterpret_cast<const T*>(source), a.size_bytes / sizeof(T),
                                  device::ReduceOp::sum);
  }
};
template <class T>
struct ReduceScatter {
  static __device__ bool run(const DeviceJob& job, const CollectiveArguments& a, std::byte* dest,
                             const std::byte* source) {
    return device::reducescatter_grid<T>(job, device::team_world, reinterpret_cast<T*>(dest),
                                         reinterpret_cast<const T*>(source),
                                         a.size_bytes / sizeof(T), device::ReduceOp::sum);
  }
};

} // namespace

std::string launch_reduction(const KernelLaunch& how, const CollectiveArguments& arguments) {
  if (arguments.kernel == CollectiveKernel::reduce)
    return arguments.floats ? launch_together(collective<Reduce<float>>, how, arguments)
                            : launch_together(collective<Reduce<std::int64_t>>, how, arguments);
  return arguments.floats
             ? launch_together(collective<ReduceScatter<float>>, how, arguments)
             : launch_together(collective<ReduceScatter<std::int64_t>>, how, arguments);
}

int most_reduction_blocks(CollectiveKernel kernel, bool floats, int device, int threads) {
  if (kernel == CollectiveKernel::reduce)
    return floats ? most_blocks_of(collective<Reduce<float>>, device, threads)
                  : most_blocks_of(collective<Reduce<std::int64_t>>, device, threads);
  return floats ? most_blocks_of(collective<ReduceScatter<float>>, device, threads)
                : most_blocks_of(collective<ReduceScatter<std::int64_t>>, device, threads);
}

} // namespace shmemctl::bench
