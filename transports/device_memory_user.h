// Interface of transports whose NICs may access GPU memory (GPUDirect RDMA).
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "src/base/device_memory.h"

namespace shmemctl {

/// Whether and how a transport's NICs access the memory of a GPU.
struct DeviceReach {
  std::string method; ///< "dma-buf", "peer memory", "FI_HMEM"; "" if the NICs cannot access it
  std::string reason; ///< why they cannot, in one clause
};

/// A second interface, besides Transport. The runtime uses it after connect(), before it sets
/// regions of GPU memory.
class DeviceMemoryUser {
public:
  virtual ~DeviceMemoryUser() = default;
  /// Tests whether [base, base + size_bytes), which must be whole pages, can be registered; leaves
  /// nothing registered.
  virtual DeviceReach try_device_memory(const std::shared_ptr<const DeviceMemory>& memory,
                                        std::byte* base, std::size_t size_bytes) = 0;
  /// Declares that the region is GPU memory on all PEs from now on; called only if every PE can
  /// register its part, or its HCA is emulated. Local memory of operations may be in the region.
  /// The caller requests no atomics on the region, no signals with SignalOp::add in it, and no
  /// put_signal() with only one of payload and signal in GPU memory (Rma::put_signal()).
  virtual void set_device_region(int region, std::shared_ptr<const DeviceMemory> memory) = 0;
  /// Deregisters the region before its memory is freed. No operation on it may be in flight. Other
  /// regions of GPU memory stay usable.
  virtual void drop_device_region(int region) = 0;
  /// Whether the NICs order a signal after its payload in GPU memory without help. If not, the
  /// caller requests no signals in GPU memory.
  virtual bool signals_device_memory() const { return true; }
};

inline constexpr const char* host_memory_only = "reaches memory of the host only";

} // namespace shmemctl
