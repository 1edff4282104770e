#include "kernels/moe/launching.cuh"
#include "kernels/moe/notify_kernel.cuh"

namespace shmemctl::moe {

std::string launch_notify(const DeviceJob& job, const NotifyArguments& arguments, void* stream) {
  const Tuning blocks{2, notify_warps};
  return launch(notify, job, arguments, blocks,
                static_cast<std::size_t>(arguments.shape.n_experts) * sizeof(std::int32_t), stream);
}

} // namespace shmemctl::moe
