// What the runtime asks of a transport whose NICs may access GPU memory (GPUDirect RDMA).
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "src/base/device_memory.h"

namespace shmemctl {

/// Whether and how a transport's NICs reach memory of a device.
struct DeviceReach {
  std::string way;    ///< "dma-buf", "peer memory"; "" if they do not
  std::string reason; ///< why not: one clause
};

/// What a transport is besides whose NICs may reach memory of devices: connected, and before such
/// regions are set.
class DeviceMemoryUser {
public:
  virtual ~DeviceMemoryUser() = default;
  /// Tries to register [base, base + size_bytes), whole pages, and takes it back.
  virtual DeviceReach try_device_memory(const std::shared_ptr<const DeviceMemory>& memory,
                                        std::byte* base, std::size_t size_bytes) = 0;
  /// Only where all PEs can: from now on that region is a device's memory, on all PEs. Local memory
  /// of operations may lie in it. Atomics on it are not asked for, and signals are set, not added.
  virtual void set_device_region(int region, std::shared_ptr<const DeviceMemory> memory) = 0;
  /// Takes back what was registered of it: the memory goes. No operation is in flight.
  virtual void drop_device_region(int region) = 0;
  /// Whether its NICs write a signal behind its payload there by themselves. Otherwise signals on
  /// such memory are not asked for either.
  virtual bool signals_device_memory() const { return true; }
};

inline constexpr const char* host_memory_only = "reaches memory of the host only";

} // namespace shmemctl
