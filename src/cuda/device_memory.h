// Export of a CUDA device's memory to NICs: dma-bufs, and the order in which kernels see NIC
// writes.
#pragma once

#include <memory>

#include "src/base/device_memory.h"
#include "src/cuda/device.h"

namespace shmemctl::cuda {

std::shared_ptr<const DeviceMemory> make_device_memory(std::shared_ptr<const Device> device);

} // namespace shmemctl::cuda
