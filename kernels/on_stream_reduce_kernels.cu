// Reductions on streams. They are in a separate file because they take long to compile.
#include "kernels/on_stream_kernels.h"
#include "kernels/shmem_device.cuh"
#include "kernels/stream_wait.cuh"

namespace shmemctl::on_stream::SHMEMCTL_BUILD_VARIANT {

namespace {

/// One kernel per type, so that what it needs of the job comes from kernel parameters.
template <class T>
__global__ void __launch_bounds__(block_threads)
    reduce_in_team(const __grid_constant__ DeviceJob job, int team, void* dest, const void* source,
                   std::size_t count, device::ReduceOp op, bool scatter) {
  wait_for_stream();
  let_next_come();
  device::detail::reduce<device::Block>(job, team, static_cast<T*>(dest),
                                        static_cast<const T*>(source), count, op, scatter,
                                        device::detail::share_of_grid());
}

} // namespace

ReduceKernel reduce_kernel(NumberType type) {
  switch (type) {
  case NumberType::int32:
    return reduce_in_team<std::int32_t>;
  case NumberType::int64:
    return reduce_in_team<std::int64_t>;
  case NumberType::float64:
    return reduce_in_team<double>;
  case NumberType::bf16:
    return reduce_in_team<device::Bf16>;
  case NumberType::fp16:
    return reduce_in_team<device::Fp16>;
  case NumberType::int8:
    return reduce_in_team<std::int8_t>;
  case NumberType::int16:
    return reduce_in_team<std::int16_t>;
  case NumberType::uint8:
    return reduce_in_team<std::uint8_t>;
  case NumberType::uint16:
    return reduce_in_team<std::uint16_t>;
  case NumberType::uint32:
    return reduce_in_team<std::uint32_t>;
  case NumberType::uint64:
    return reduce_in_team<std::uint64_t>;
  default:
    return reduce_in_team<float>;
  }
}

} // namespace shmemctl::on_stream::SHMEMCTL_BUILD_VARIANT
