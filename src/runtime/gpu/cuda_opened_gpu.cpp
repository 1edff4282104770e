#include <algorithm>
#include <cstdlib>

#include "src/base/cuda_release.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/model/topo/readers/nvml.h"
#include "src/model/topo/readers/nvml_events.h"
#include "src/runtime/gpu/cuda_opened_gpu.h"
#include "src/runtime/gpu/cuda_runtime_gpu.h"
#include "src/runtime/memory/cuda_backing.h"

namespace shmemctl {

namespace {

/// CUDA's number of the device; -1 if it is not visible.
int ordinal_of(const cuda::Driver& driver, const std::string& pci_address) {
  for (const cuda::DeviceInfo& info : driver.devices())
    if (info.pci_address == lower(pci_address))
      return info.ordinal;
  return -1;
}

/// The number of the device to open; -1 if it does not exist, and `why` then receives the reason.
int choose_device(const cuda::Driver& driver, const GpuPreference& preference, std::string& why) {
  const auto count = static_cast<int>(driver.devices().size());
  if (preference.device >= count) {
    why = "GPU " + std::to_string(preference.device) +
          ", which the program names, does not exist: CUDA shows " + std::to_string(count);
    return -1;
  }
  if (preference.device >= 0)
    return preference.device;
  if (preference.pci_address.empty())
    return cuda::device_of_pe(preference.machine_pe, count, {});
  const int ordinal = ordinal_of(driver, preference.pci_address);
  if (ordinal < 0)
    why = "the GPU at " + preference.pci_address + ", which GPUS names, is not visible to CUDA";
  return ordinal;
}

/// From now on the device's errors include the events that the driver has reported meanwhile, if
/// NVML is available.
void listen_to_nvml(cuda::Device& device, const std::string& nvml_library) {
  // CUDA's errors and the driver's Xid events arrive independently, so wait briefly for the event.
  constexpr unsigned xid_timeout_ms = 100;
  std::string why;
  const std::string address = device.info().pci_address;
  const std::shared_ptr<NvmlEvents> events = NvmlEvents::listen(nvml_library, address, why);
  if (!events) {
    log(LogLevel::info, "gpu", "errors of " + device.text() + " will have no Xids: " + why);
    return;
  }
  device.listen([events, address](bool fails) {
    const std::vector<NvmlEvent> seen = events->seen(fails ? xid_timeout_ms : 0);
    return cuda::DriverReport{describe_events(seen, address), fix_of(seen)};
  });
}

} // namespace

std::unique_ptr<OpenedGpu> open_gpu(const Options& options, const GpuPreference& preference,
                                    std::string& why) {
  // A kernel that waits for another PE would never end if that PE's next kernel could only be
  // loaded after this one (lazy loading). Must be set before the first driver call; a user's
  // setting is kept.
  ::setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  const std::shared_ptr<const cuda::Driver> driver =
      cuda::Driver::open(options.text("CUDA_LIBRARY"), why);
  if (!driver)
    return nullptr;
  const int ordinal = choose_device(*driver, preference, why);
  if (ordinal < 0)
    return nullptr;
  try {
    const auto opened = std::make_shared<cuda::Device>(driver, ordinal);
    listen_to_nvml(*opened, options.text("NVML_LIBRARY"));
    std::shared_ptr<const cuda::Device> device = opened;
    GpuCapabilities capabilities;
    capabilities.there = true;
    capabilities.uuid = device->info().uuid;
    capabilities.shareable = device->info().virtual_memory && device->info().descriptors;
    capabilities.no_kernels = why_no_kernels(driver->version(), CUDA_VERSION);
    std::string no_fabric;
    capabilities.fabric = fabric_domain(device, options.text("NVML_LIBRARY"), no_fabric);
    if (capabilities.fabric.empty())
      log(LogLevel::info, "gpu",
          device->text() + " shares no memory with other machines: " + no_fabric);
    return std::make_unique<CudaOpenedGpu>(std::move(device), std::move(capabilities));
  } catch (const Error& error) {
    why = error.message();
    return nullptr;
  }
}

std::string install_driver_for_kernels() {
  return install_newer_driver(CUDA_VERSION);
}

std::unique_ptr<GpuRuntime> make_gpu_runtime(std::unique_ptr<OpenedGpu> opened, GpuSetup setup) {
  return std::make_unique<CudaGpuRuntime>(static_cast<const CudaOpenedGpu&>(*opened).device(),
                                          std::move(setup));
}

namespace {

/// The device's NVLink domain according to NVML; "" if there is none. `why` receives the reason.
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
    // Without a channel of the IMEX service, the driver refuses to commit or export such memory.
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
