#include "src/runtime/gpu/cuda_fabric.h"

#include "src/memory/cuda_vmm_backing.h"
#include "src/topo/readers/nvml.h"

namespace shmemctl {

namespace {

/// What NVML knows of the device; "" with the reason.
std::string domain_of(const std::string& uuid, const std::string& nvml_library, std::string& why) {
  const auto nvml = Nvml::open(nvml_library, why);
  if (!nvml)
    return "";
  const Fact<int> count = nvml->device_count();
  for (int index = 0; index < count.value.value_or(0); ++index) {
    const NvmlGpu gpu = nvml->gpu(index);
    if (!gpu.uuid || *gpu.uuid != uuid)
      continue;
    const NvmlHealth health = nvml->health(index);
    why = health.fabric_domain.origin;
    return health.fabric_domain.value.value_or("");
  }
  why = "NVML shows no GPU " + uuid;
  return "";
}

} // namespace

std::string fabric_domain(const std::shared_ptr<const cuda::Device>& device,
                          const std::string& nvml_library, std::string& why) {
  if (!device->info().fabric_handles) {
    why = "the driver has no fabric handles for it";
    return "";
  }
  std::string domain = domain_of(device->info().uuid, nvml_library, why);
  if (domain.empty())
    return "";
  try {
    // Without a channel of the IMEX service, committing or exporting such memory is refused.
    const auto backing = make_cuda_vmm_backing(device, VmmHandles::fabric);
    backing->create(backing->granularity_bytes());
  } catch (const Error& error) {
    why = "memory with a fabric handle cannot be made (is the nvidia-imex service up, and has this "
          "process a channel in /dev/nvidia-caps-imex-channels?): " +
          error.message();
    return "";
  }
  return domain;
}

} // namespace shmemctl
