// What the runtime asks of a transport whose NICs may access GPU memory (GPUDirect RDMA).
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "src/base/device_memory.h"

namespace shmemctl {

/// Whether and how a transport's NICs reach memory of a device.
struct DeviceReach {
  std::string method; ///< "dma-buf", "peer memory"; "" if the NICs cannot access it
  std::string reason; ///< why not: one clause
};

/// Second interface of transports whose NICs may access GPU memory. Used after connect(), and
/// before such regions are set.
class DeviceMemoryUser {
public:
  virtual ~DeviceMemoryUser() = default;
  /// Tries to register [base, base + size_bytes), whole pages, and deregisters it again.
  virtual DeviceReach try_device_memory(const std::shared_ptr<const DeviceMemory>& memory,
                                        std::byte* base, std::size_t size_bytes) = 0;
  /// Only if all PEs can: from now on that region is GPU memory on all PEs. Local memory of
  /// operations may be in it. The caller requests no atomics on it, and no signals with
  /// SignalOp::add.
  virtual void set_device_region(int region, std::shared_ptr<const DeviceMemory> memory) = 0;
  /// Deregisters the region before its memory is freed. No operation is in flight.
  virtual void drop_device_region(int region) = 0;
  /// Whether its NICs order a signal after its payload in GPU memory by themselves. Otherwise the
  /// caller requests no signals there.
  virtual bool signals_device_memory() const { return true; }
};

inline constexpr const char* host_memory_only = "reaches memory of the host only";

} // namespace shmemctl
