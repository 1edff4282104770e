#include "kernels/moe/high_throughput_notify.cuh"
#include "kernels/moe/launch.cuh"

namespace shmemctl::moe {

std::string launch_notify(const DeviceJob& job, const NotifyArguments& arguments, void* stream) {
  if (arguments.shape.n_experts > most_notified_experts)
    return "notify knows " + std::to_string(most_notified_experts) + " experts at most";
  const Tuning blocks{notify_blocks, notify_warps};
  return launch(notify, job, arguments, blocks,
                static_cast<std::size_t>(arguments.shape.n_experts) * sizeof(std::int32_t), stream);
}

} // namespace shmemctl::moe
