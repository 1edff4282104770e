// Builds without CUDA.
#include "src/base/error.h"
#include "src/runtime/gpu/gpu_runtime.h"

namespace shmemctl {

std::unique_ptr<OpenedGpu> open_gpu(const Options&, const GpuPreference&, std::string& why) {
  why = "this build of shmemctl has no CUDA";
  return nullptr;
}

std::string install_driver_for_kernels() {
  return "use a build with CUDA; shmemctl --version shows what a build has";
}

std::unique_ptr<GpuRuntime> make_gpu_runtime(std::unique_ptr<OpenedGpu>, GpuSetup) {
  throw Error(ExitCode::unavailable, "GPU", "use", "this shmemctl was built without CUDA",
              "use a build with CUDA; shmemctl --version shows what a build has");
}

} // namespace shmemctl
