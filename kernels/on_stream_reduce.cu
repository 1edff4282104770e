// Reductions on streams: a file of their own, because they take long to compile.
#include "kernels/on_stream_launch.cuh"

namespace shmemctl::on_stream {

namespace {

template <class T>
__device__ void reduce_as(const DeviceJob& job, int team, void* dest, const void* source,
                          std::size_t count, device::ReduceOp op, bool scatter) {
  auto* const to = static_cast<T*>(dest);
  const auto* const from = static_cast<const T*>(source);
  if (scatter)
    device::reducescatter_grid(job, team, to, from, count, op);
  else
    device::reduce_grid(job, team, to, from, count, op);
}

/// One kernel for all types: each would bring what they have in common once more.
__global__ void __launch_bounds__(block_threads)
    reduce_in_team(const __grid_constant__ DeviceJob job, NumberType type, int team, void* dest,
                   const void* source, std::size_t count, device::ReduceOp op, bool scatter) {
  wait_for_stream();
  let_next_come();
  switch (type) {
  case NumberType::int32:
    return reduce_as<std::int32_t>(job, team, dest, source, count, op, scatter);
  case NumberType::int64:
    return reduce_as<std::int64_t>(job, team, dest, source, count, op, scatter);
  case NumberType::float32:
    return reduce_as<float>(job, team, dest, source, count, op, scatter);
  case NumberType::float64:
    return reduce_as<double>(job, team, dest, source, count, op, scatter);
  case NumberType::bf16:
    return reduce_as<device::Bf16>(job, team, dest, source, count, op, scatter);
  case NumberType::fp16:
    return reduce_as<device::Fp16>(job, team, dest, source, count, op, scatter);
  }
}

std::size_t bytes_of(NumberType type) {
  switch (type) {
  case NumberType::int64:
  case NumberType::float64:
    return 8;
  case NumberType::bf16:
  case NumberType::fp16:
    return 2;
  default:
    return 4;
  }
}

void launch_reduction(const Job& job, int team, void* dest, const void* source, std::size_t count,
                      NumberType type, device::ReduceOp op, bool scatter, Stream stream) {
  const std::size_t size_bytes = count * bytes_of(type);
  const int blocks = plan::is_small(size_bytes, job.device().n_pes)
                         ? 1
                         : blocks_for(size_bytes, std::size_t{16} << 10);
  on_stream::launch(reduce_in_team, blocks, block_threads, stream, "launch of a reduction",
                    job.device(), type, team, dest, source, count, op, scatter);
}

} // namespace

void reduce(const Job& job, int team, void* dest, const void* source, std::size_t count,
            NumberType type, device::ReduceOp op, Stream stream) {
  launch_reduction(job, team, dest, source, count, type, op, false, stream);
}
void reducescatter(const Job& job, int team, void* dest, const void* source, std::size_t count,
                   NumberType type, device::ReduceOp op, Stream stream) {
  launch_reduction(job, team, dest, source, count, type, op, true, stream);
}

} // namespace shmemctl::on_stream
