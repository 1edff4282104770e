// Builds without CUDA.
#include "src/base/error.h"
#include "src/runtime/gpu/gpu_runtime.h"

namespace shmemctl {

std::unique_ptr<GpuSeat> open_gpu(const Options&, const GpuWish&, std::string& why) {
  why = "this build of shmemctl has no CUDA";
  return nullptr;
}

std::unique_ptr<GpuPart> make_gpu_part(std::unique_ptr<GpuSeat>, GpuSetup) {
  throw Error(ExitCode::unavailable, "the GPU", "use", "this build of shmemctl has no CUDA",
              "use a build with CUDA (shmemctl --version)");
}

} // namespace shmemctl
