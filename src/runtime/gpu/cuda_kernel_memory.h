// KernelMemory over the CUDA driver.
#pragma once

#include <memory>

#include "src/runtime/gpu/kernel_memory.h"

namespace shmemctl {

namespace cuda {
class Device;
}

/// Throws Error (unavailable). Only in builds with CUDA.
std::shared_ptr<KernelMemory> make_cuda_kernel_memory(std::shared_ptr<const cuda::Device> device);

} // namespace shmemctl
