// The device that a PE has opened, and its NVLink domain.
#pragma once

#include <memory>
#include <string>

#include "src/runtime/cuda/device.h"
#include "src/runtime/gpu/gpu_runtime.h"

namespace shmemctl {

class CudaOpenedGpu final : public OpenedGpu {
public:
  CudaOpenedGpu(std::shared_ptr<const cuda::Device> device, GpuCapabilities capabilities)
      : device_(std::move(device)), capabilities_(std::move(capabilities)) {}
  const GpuCapabilities& capabilities() const override { return capabilities_; }
  const std::shared_ptr<const cuda::Device>& device() const { return device_; }

private:
  std::shared_ptr<const cuda::Device> device_;
  GpuCapabilities capabilities_;
};

/// "<cluster>.<clique>" of the device's NVLink domain, if the device supports fabric handles, which
/// other machines of the domain can import, and the driver lets this process create them. Otherwise
/// "", and `why` receives the reason: one clause.
std::string fabric_domain(const std::shared_ptr<const cuda::Device>& device,
                          const std::string& nvml_library, std::string& why);

} // namespace shmemctl
