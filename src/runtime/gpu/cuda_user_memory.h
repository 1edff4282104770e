// What CUDA says of memory that a program has allocated, and its export.
#pragma once

#include <string>
#include <vector>

#include "src/cuda/device.h"
#include "src/memory/buffers/gpu_share.h"

namespace shmemctl {

/// The allocations that hold these bytes, in order. The device's context is current. Throws Error
/// (usage) if a part is not allocated.
std::vector<GpuPiece> pieces_of(const cuda::Device& device, const void* address,
                                std::size_t size_bytes);

/// What is to be told to others. The device's context is current. Throws Error (usage) for memory
/// that is not this device's own, or not all allocated.
GpuShare share_user_memory(const cuda::Device& device, const void* address, std::size_t size_bytes);

} // namespace shmemctl
