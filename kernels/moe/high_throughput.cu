#include "kernels/moe/high_throughput_combine.cuh"
#include "kernels/moe/high_throughput_dispatch.cuh"
#include "kernels/moe/high_throughput_notify.cuh"
#include "kernels/moe/launch.cuh"

namespace shmemctl::moe {

std::string launch_notify(const DeviceJob& job, const NotifyArguments& arguments, void* stream) {
  if (arguments.shape.n_experts > max_notified_experts)
    return "notify knows " + std::to_string(max_notified_experts) + " experts at most";
  const Tuning blocks{notify_blocks, notify_warps};
  return launch(notify, job, arguments, blocks,
                static_cast<std::size_t>(arguments.shape.n_experts) * sizeof(std::int32_t), stream);
}

std::string launch_dispatch(const DeviceJob& job, const DispatchArguments& arguments,
                            void* stream) {
  const Tuning& tuning = arguments.tuning;
  const std::size_t shared = dispatch_shared_bytes(arguments);
  const auto with = [&](auto kernel) {
    return launch(kernel, job, arguments, tuning, shared, stream,
                  arguments.after_notify ? Begin::with_last : Begin::after_last);
  };
  switch (tuning.kept) {
  case 1:
    return with(dispatch<1>);
  case 2:
    return with(dispatch<2>);
  default:
    return with(dispatch<0>);
  }
}

std::string launch_combine(const DeviceJob& job, const CombineArguments& arguments, void* stream) {
  const std::size_t shared =
      reduce_shared_bytes(reduce_shape(arguments), arguments.tuning.warps, false);
  const auto with = [&](auto kernel) {
    return launch(kernel, job, arguments, arguments.tuning, shared, stream);
  };
  if (arguments.shape.n_ranks <= 2)
    return with(combine<2>);
  return arguments.shape.n_ranks <= 4 ? with(combine<4>) : with(combine<8>);
}

} // namespace shmemctl::moe
