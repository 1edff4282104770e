// Memory that kernels of a PE use beside its heap, as the host sees to it. No CUDA header: tests
// have one of plain memory, and "kernels" that are threads.
#pragma once

#include <cstddef>

namespace shmemctl {

/// Thread safe. All throw Error (unavailable) that names the device.
class KernelMemory {
public:
  virtual ~KernelMemory() = default;

  /// Zeroed memory of the device, aligned to 256 bytes; the host cannot load from it.
  virtual void* allocate(std::size_t size_bytes) = 0;
  virtual void free(void* memory) noexcept = 0;

  enum class HostPart {
    memory,
    registers ///< a page of a device's registers
  };
  /// Lets kernels use host memory, until unmap(): whole pages. Returns kernels' address of it.
  virtual void* map(void* base, std::size_t size_bytes, HostPart part) = 0;
  virtual void unmap(void* base) noexcept = 0;

  /// Any memory of the host and of the device, either way; done on return.
  virtual void copy(void* to, const void* from, std::size_t size_bytes) = 0;
};

} // namespace shmemctl
