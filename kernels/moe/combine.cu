#include "kernels/moe/high_throughput_combine.cuh"
#include "kernels/moe/launch.cuh"

namespace shmemctl::moe {

std::string launch_combine(const DeviceJob& job, const CombineArguments& arguments, void* stream) {
  const std::size_t shared =
      gather_shared_bytes(gather_shape(arguments), arguments.tuning.warps, false);
  const auto with = [&](auto kernel) {
    return launch(kernel, job, arguments, arguments.tuning, shared, stream);
  };
  if (arguments.shape.n_ranks <= 2)
    return with(combine<2>);
  return arguments.shape.n_ranks <= 4 ? with(combine<4>) : with(combine<8>);
}

} // namespace shmemctl::moe
