#include "kernels/moe/launching.cuh"
#include "kernels/moe/pack_kernel.cuh"

namespace shmemctl::moe {

std::string launch_pack(const DeviceJob& job, const PackArguments& arguments, void* stream) {
  if (arguments.shape.local_experts() > most_packed_experts)
    return "rows of " + std::to_string(most_packed_experts) +
           " experts of a rank at most are packed";
  Tuning tuning;
  tuning.sms = arguments.sms;
  tuning.warps = pack_threads / 32;
  return launch(
      pack, job, arguments, tuning,
      2 * static_cast<std::size_t>(arguments.shape.local_experts()) * sizeof(std::int32_t), stream);
}

} // namespace shmemctl::moe
