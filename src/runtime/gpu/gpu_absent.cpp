// Builds without CUDA.
#include "src/base/error.h"
#include "src/runtime/gpu/gpu_part.h"

namespace shmemctl {

std::unique_ptr<GpuSeat> open_gpu(const Options&, const GpuWish&, std::string& why) {
  why = "this build of shmemctl has no CUDA";
  return nullptr;
}

std::unique_ptr<GpuPart> make_gpu_part(std::unique_ptr<GpuSeat>, GpuSetup) {
  throw Error(ExitCode::unavailable, "GPU", "use", "this shmemctl was built without CUDA",
              "use a build with CUDA; shmemctl --version shows what a build has");
}

} // namespace shmemctl
