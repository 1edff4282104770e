#include "kernels/moe/launching.cuh"
#include "kernels/moe/pack_kernel.cuh"

namespace shmemctl::moe {

std::string launch_pack(const DeviceJob& job, const PackArguments& arguments, void* stream) {
  if (arguments.shape.local_experts() > most_packed_experts)
    return "rows of " + std::to_string(most_packed_experts) +
           " experts of a rank at most are packed";
  Tuning tuning;
  tuning.sms = arguments.sms * pack_blocks_per_sm;
  tuning.warps = pack_threads / 32;
  return launch(pack, job, arguments, tuning, pack_shared_bytes(arguments.shape.local_experts()),
                stream);
}

} // namespace shmemctl::moe
