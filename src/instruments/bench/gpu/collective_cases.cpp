// Collectives of kernels.
#include <algorithm>
#include <cstring>

#include "src/instruments/bench/cases/case_makers.h"
#include "src/instruments/bench/gpu/collective_buffers.h"
#include "src/instruments/bench/gpu/gpu_case.h"

namespace shmemctl::bench {

namespace {

on_stream::NumberType stream_type_of(CollectiveNumber number) {
  switch (number) {
  case CollectiveNumber::int64:
    return on_stream::NumberType::int64;
  case CollectiveNumber::float32:
    return on_stream::NumberType::float32;
  case CollectiveNumber::bf16:
    return on_stream::NumberType::bf16;
  case CollectiveNumber::fp16:
    return on_stream::NumberType::fp16;
  }
  return on_stream::NumberType::int64;
}

template <CollectiveKernel kernel, CollectiveNumber number_type = CollectiveNumber::int64>
class GpuCollective final : public GpuCase {
public:
  using GpuCase::GpuCase;

  std::size_t bytes_for(int n_pes) const override { return places_for(n_pes).total_bytes(); }
  bool measures() const override { return true; }
  std::uint64_t bytes_per_iteration() const override { return places().payload_bytes(pe()); }
  std::optional<LeastTraffic> min_traffic(const std::vector<int>& gpu_of_pe) const override {
    return places().min_traffic(gpu_of_pe);
  }

  std::optional<WrongByte> verify(std::uint64_t iterations) override {
    if (iterations == 0)
      return std::nullopt;
    const CollectiveBuffers at = places();
    const std::uint64_t last = iterations - 1;
    const std::vector<std::byte> dest = fetched(at.dest_offset_bytes(), at.dest_bytes());
    std::optional<WrongByte> wrong =
        is_reduction ? verify_numbers(dest, last) : verify_blocks(dest, last);
    if (wrong)
      return wrong;
    const std::size_t end = at.dest_data_bytes();
    if (const auto stray = compare_zero(dest.data() + end, dest.size() - end))
      return wrong_at(end + stray->offset_bytes, 0, stray->found, last, "after the result");
    return std::nullopt;
  }

protected:
  void set_up() override {
    const CollectiveBuffers at = places();
    if (number_type != CollectiveNumber::int64)
      fill_numbers(at.dest_offset_bytes());
    else
      fill(memory(), at.dest_offset_bytes(), pe());
    if (kernel == CollectiveKernel::alltoallv) {
      const std::vector<std::uint64_t> lists = at.lists(pe());
      gpu().copy(memory() + at.lists_offset_bytes(), lists.data(), lists.size() * sizeof lists[0]);
    }
  }
  std::string launch(const KernelLaunch& how, std::uint64_t first, std::uint64_t count) override {
    const CollectiveBuffers at = places();
    return launch_collective(how,
                             {kernel, number_type, first, count, memory(), at.dest_offset_bytes(),
                              point().size_bytes, at.lists_offset_bytes()});
  }
  void enqueue(const on_stream::Job& job, std::uint64_t number, void* stream) override {
    const std::size_t width = width_of(number_type);
    const on_stream::NumberType type = stream_type_of(number_type);
    const std::size_t size = point().size_bytes;
    std::byte* const dest = memory() + places().dest_offset_bytes();
    std::byte* const source = memory() + variant_offset_bytes(number);
    if (kernel == CollectiveKernel::broadcast)
      on_stream::broadcast(job, team_world, dest, source, size, 0, stream);
    else if (kernel == CollectiveKernel::fcollect)
      on_stream::fcollect(job, team_world, dest, source, size, stream);
    else if (kernel == CollectiveKernel::alltoall)
      on_stream::alltoall(job, team_world, dest, source, size, stream);
    else if (kernel == CollectiveKernel::alltoallv)
      on_stream::alltoallv(job, team_world, dest, source, lists(), stream);
    else if (kernel == CollectiveKernel::reduce)
      on_stream::reduce(job, team_world, dest, source, size / width, type, device::ReduceOp::sum,
                        stream);
    else if (kernel == CollectiveKernel::reducescatter)
      on_stream::reducescatter(job, team_world, dest, source, size / width, type,
                               device::ReduceOp::sum, stream);
  }
  // Collectives on a stream complete by themselves, without a quiet.
  void enqueue_end(const on_stream::Job&, void*) override {}

  int max_resident_blocks(int device) const override {
    return max_collective_blocks(kernel, number_type, device, point().launch.threads);
  }

private:
  static constexpr bool is_reduction =
      kernel == CollectiveKernel::reduce || kernel == CollectiveKernel::reducescatter;

  CollectiveBuffers places_for(int n_pes) const { return {kernel, point().size_bytes, n_pes}; }
  CollectiveBuffers places() const { return places_for(n_pes()); }
  on_stream::ExchangeLists lists() const {
    const auto* const sizes =
        reinterpret_cast<const std::uint64_t*>(memory() + places().lists_offset_bytes());
    return {sizes, sizes + n_pes(), sizes + 2 * n_pes()};
  }
  static std::size_t variant_offset_bytes(std::uint64_t number) {
    return number % variants * variant_step_bytes;
  }
  WrongByte wrong_at(std::size_t in_dest, std::uint64_t expected, std::uint64_t found,
                     std::uint64_t number, const std::string& what) const {
    return {pe(), places().dest_offset_bytes() + in_dest, expected, found,
            what + " in iteration " + std::to_string(number)};
  }

  void fill_numbers(std::size_t size_bytes) {
    const std::size_t width = width_of(number_type);
    std::vector<std::byte> numbers(size_bytes); // size_bytes is a multiple of every width
    for (std::size_t at = 0; at < size_bytes; at += width) {
      const std::uint64_t bits = source_bits(number_type, seed(), pe(), at / width);
      std::memcpy(numbers.data() + at, &bits, width);
    }
    gpu().copy(memory(), numbers.data(), size_bytes);
  }

  std::optional<WrongByte> verify_blocks(const std::vector<std::byte>& dest,
                                         std::uint64_t last) const {
    std::size_t end = 0;
    for (const CollectiveBuffers::Part& part : places().parts(pe())) {
      if (const auto stray = compare_zero(dest.data() + end, part.at - end))
        return wrong_at(end + stray->offset_bytes, 0, stray->found, last, "between the blocks");
      if (const auto difference =
              compare_pattern(dest.data() + part.at, part.size_bytes, seed(), part.writer,
                              variant_offset_bytes(last) + part.from))
        return wrong_at(part.at + difference->offset_bytes, difference->expected, difference->found,
                        last, "block of PE " + std::to_string(part.writer));
      end = part.at + part.size_bytes;
    }
    return std::nullopt;
  }

  /// Compares the numbers bit for bit.
  std::optional<WrongByte> verify_numbers(const std::vector<std::byte>& dest,
                                          std::uint64_t last) const {
    const std::size_t width = width_of(number_type);
    const std::size_t own_offset_bytes = kernel == CollectiveKernel::reducescatter
                                             ? static_cast<std::size_t>(pe()) * point().size_bytes
                                             : 0;
    const std::size_t first = (variant_offset_bytes(last) + own_offset_bytes) / width;
    for (std::size_t i = 0; i < point().size_bytes / width; ++i) {
      const std::uint64_t expected = sum_bits(number_type, seed(), n_pes(), first + i);
      std::uint64_t found = 0;
      std::memcpy(&found, dest.data() + i * width, width);
      if (found != expected)
        return wrong_at(i * width, expected, found, last, "bits of number " + std::to_string(i));
    }
    return std::nullopt;
  }
};

} // namespace

SHMEMCTL_CASE(broadcast_by_gpu, GpuCollective<CollectiveKernel::broadcast>);
SHMEMCTL_CASE(fcollect_by_gpu, GpuCollective<CollectiveKernel::fcollect>);
SHMEMCTL_CASE(alltoall_by_gpu, GpuCollective<CollectiveKernel::alltoall>);
SHMEMCTL_CASE(alltoallv_by_gpu, GpuCollective<CollectiveKernel::alltoallv>);
SHMEMCTL_CASE(reduce_by_gpu, GpuCollective<CollectiveKernel::reduce, CollectiveNumber::int64>);
SHMEMCTL_CASE(reduce_float_by_gpu,
              GpuCollective<CollectiveKernel::reduce, CollectiveNumber::float32>);
SHMEMCTL_CASE(reduce_bf16_by_gpu, GpuCollective<CollectiveKernel::reduce, CollectiveNumber::bf16>);
SHMEMCTL_CASE(reduce_fp16_by_gpu, GpuCollective<CollectiveKernel::reduce, CollectiveNumber::fp16>);
SHMEMCTL_CASE(reducescatter_by_gpu,
              GpuCollective<CollectiveKernel::reducescatter, CollectiveNumber::int64>);
SHMEMCTL_CASE(reducescatter_float_by_gpu,
              GpuCollective<CollectiveKernel::reducescatter, CollectiveNumber::float32>);
SHMEMCTL_CASE(reducescatter_bf16_by_gpu,
              GpuCollective<CollectiveKernel::reducescatter, CollectiveNumber::bf16>);
SHMEMCTL_CASE(reducescatter_fp16_by_gpu,
              GpuCollective<CollectiveKernel::reducescatter, CollectiveNumber::fp16>);

} // namespace shmemctl::bench
