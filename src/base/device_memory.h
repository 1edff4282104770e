// Memory of a GPU as transports see it: what they need to register it with a NIC. No CUDA header.
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
  std::uint64_t offset_bytes = 0; ///< where the range that was asked for begins in it
};

/// Of one device. Thread safe.
class DeviceMemory {
public:
  virtual ~DeviceMemory() = default;
  virtual std::string text() const = 0; ///< "GPU 0"
  /// Why the driver makes no dma-bufs of it: one clause; "" if it does.
  virtual std::string why_no_dma_buf() const = 0;
  /// Makes a dma-buf of a page-aligned range that is mapped; nothing, with `why`, if the driver
  /// refuses.
  virtual std::optional<DmaBuf> export_dma_buf(std::uintptr_t address, std::size_t size_bytes,
                                               std::string& why) const = 0;

  /// Why a kernel that sees one write of a NIC may not see those before it: one clause; "" if it
  /// sees them. Such a device cannot take signals from a NIC.
  virtual std::string why_unordered() const = 0;
  /// Whether flush() has anything to do.
  virtual bool needs_flush() const = 0;
  /// Makes what NICs have written so far visible to kernels of all devices, also to such as run
  /// already. To be called between a NIC's completion that the host has seen and the word by which
  /// the host tells a kernel of it: these two take different ways. Throws Error (unavailable).
  virtual void flush() const = 0;
  virtual int ordinal() const { return 0; } ///< the driver's number of it in this process
};

} // namespace shmemctl
