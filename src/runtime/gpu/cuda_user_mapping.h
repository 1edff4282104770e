// Another PE's registered GPU memory, mapped for this PE's device.
#pragma once

#include <memory>
#include <string>

#include "src/cuda/device.h"
#include "src/runtime/buffers/gpu_side.h"

namespace shmemctl {

/// Throws Error (unavailable) that names PE, device and call.
std::unique_ptr<buffers::GpuMapping> map_user_memory(std::shared_ptr<const cuda::Device> device,
                                                     const buffers::GpuImport& import);

} // namespace shmemctl
