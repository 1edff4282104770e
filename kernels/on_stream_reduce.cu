#include "kernels/on_stream_launch.h"

namespace shmemctl::on_stream {

namespace {

std::size_t bytes_of(NumberType type) {
  switch (type) {
  case NumberType::int64:
  case NumberType::uint64:
  case NumberType::float64:
    return 8;
  case NumberType::bf16:
  case NumberType::fp16:
  case NumberType::int16:
  case NumberType::uint16:
    return 2;
  case NumberType::int8:
  case NumberType::uint8:
    return 1;
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
  on_stream::launch(all_mapped(job.device()) ? mapped::reduce_kernel(type)
                                             : with_network::reduce_kernel(type),
                    blocks, block_threads, stream, "launch a reduction", job.device(), team, dest,
                    source, count, op, scatter);
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
