// The device that a PE has opened.
#pragma once

#include "src/cuda/device.h"
#include "src/runtime/gpu/gpu_part.h"

namespace shmemctl {

class CudaSeat final : public GpuSeat {
public:
  CudaSeat(std::shared_ptr<const cuda::Device> device, GpuOffer offer)
      : device_(std::move(device)), offer_(std::move(offer)) {}
  const GpuOffer& offer() const override { return offer_; }
  const std::shared_ptr<const cuda::Device>& device() const { return device_; }

private:
  std::shared_ptr<const cuda::Device> device_;
  GpuOffer offer_;
};

} // namespace shmemctl
