// GPU memory as seen by transports: what they need to register it with a NIC. Uses no CUDA header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "src/base/file_descriptor.h"

namespace shmemctl {

/// A dma-buf that holds whole pages of device memory.
struct DmaBuf {
  FileDescriptor file;
  std::uint64_t offset_bytes = 0; ///< offset of the requested range in it
};

/// The memory of one device. Thread safe.
class DeviceMemory {
public:
  virtual ~DeviceMemory() = default;
  virtual std::string text() const = 0; ///< "GPU 0"
  /// Why the driver cannot export the memory as a dma-buf, as a clause; "" if it can.
  virtual std::string why_no_dma_buf() const = 0;
  /// Exports a mapped, page-aligned range as a dma-buf. If the driver refuses, returns empty and
  /// sets `why`.
  virtual std::optional<DmaBuf> export_dma_buf(std::uintptr_t address, std::size_t size_bytes,
                                               std::string& why) const = 0;

  /// Why a kernel that sees one write of a NIC may not see earlier ones, as a clause; "" if it sees
  /// them. If this is not "", the GPU heap is not registered with NICs: its transfers are staged.
  virtual std::string why_unordered() const = 0;
  /// Whether flush() has anything to do.
  virtual bool needs_flush() const = 0;
  /// Makes earlier writes of NICs visible to running and later kernels of all devices. Call it
  /// between a NIC completion that the host has seen and the flag by which the host signals a
  /// kernel, because the two take different paths. Throws Error (unavailable).
  virtual void flush() const = 0;
  virtual int ordinal() const { return 0; } ///< the driver's number of the device in this process
};

} // namespace shmemctl
