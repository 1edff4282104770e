// Reductions on streams: a file of their own, because they take long to compile.
#include "kernels/on_stream_launch.cuh"

namespace shmemctl::on_stream {

namespace {

template <class T>
__global__ void __launch_bounds__(block_threads)
    reduce_in_team(const __grid_constant__ DeviceJob job, int team, T* dest, const T* source,
                   std::size_t count, device::ReduceOp op, bool scatter) {
  if (scatter)
    device::reducescatter_grid(job, team, dest, source, count, op);
  else
    device::reduce_grid(job, team, dest, source, count, op);
}

struct Arguments {
  const Job& job;
  int team;
  void* dest;
  const void* source;
  std::size_t count;
  device::ReduceOp op;
  bool scatter;
  Stream stream;
};

template <class T>
void launch(const Arguments& all) {
  const std::size_t size_bytes = all.count * sizeof(T);
  const int blocks = plan::is_small(size_bytes, all.job.device().n_pes)
                         ? 1
                         : blocks_for(size_bytes, std::size_t{16} << 10);
  reduce_in_team<T><<<blocks, block_threads, 0, stream_of(all.stream)>>>(
      all.job.device(), all.team, static_cast<T*>(all.dest), static_cast<const T*>(all.source),
      all.count, all.op, all.scatter);
  require_launched("launch of a reduction");
}

void launch_for(NumberType type, const Arguments& all) {
  switch (type) {
  case NumberType::int32:
    return launch<std::int32_t>(all);
  case NumberType::int64:
    return launch<std::int64_t>(all);
  case NumberType::float32:
    return launch<float>(all);
  case NumberType::float64:
    return launch<double>(all);
  case NumberType::bf16:
    return launch<device::Bf16>(all);
  case NumberType::fp16:
    return launch<device::Fp16>(all);
  }
}

} // namespace

void reduce(const Job& job, int team, void* dest, const void* source, std::size_t count,
            NumberType type, device::ReduceOp op, Stream stream) {
  launch_for(type, {job, team, dest, source, count, op, false, stream});
}
void reducescatter(const Job& job, int team, void* dest, const void* source, std::size_t count,
                   NumberType type, device::ReduceOp op, Stream stream) {
  launch_for(type, {job, team, dest, source, count, op, true, stream});
}

} // namespace shmemctl::on_stream
