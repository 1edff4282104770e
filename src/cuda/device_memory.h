// A CUDA device's memory for NICs: dma-bufs of it, and the order in which kernels see their writes.
#pragma once

#include <memory>

#include "src/base/device_memory.h"
#include "src/cuda/device.h"

namespace shmemctl::cuda {

std::shared_ptr<const DeviceMemory> make_device_memory(std::shared_ptr<const Device> device);

} // namespace shmemctl::cuda
