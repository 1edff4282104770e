// How kernels reach PEs whose memory is not mapped here. For host and device.
#pragma once

#include <cstdint>

#include "src/runtime/proxy/proxy_layout.h"

namespace shmemctl {

namespace direct {
class QueueTable;
}

/// By what a kernel reaches a PE.
enum class DevicePath : std::uint8_t { none, load_store, proxy, ibgda };

/// Pointers that kernels can follow. All null in a job where every PE is mapped.
struct DeviceNetwork {
  const std::uint8_t* path_of_pe;   ///< DevicePath, by PE; nullptr: load_store to all
  ProxyRings rings;                 ///< of the kernels' own proxy; `issued` is device memory
  const direct::QueueTable* queues; ///< of ibgda
  std::uint32_t* result_tags;       ///< device memory, by ring and result: the last tag in use
  std::uint32_t* result_locks;      ///< device memory, by ring and result: who uses it
};

} // namespace shmemctl
