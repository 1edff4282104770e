// How kernels reach PEs whose memory is not mapped here. For host and device.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/runtime/proxy/proxy_layout.h"

namespace shmemctl {

namespace direct {
class QueueTable;
}

/// By what a kernel reaches a PE.
enum class DevicePath : std::uint8_t { none, load_store, proxy, ibgda };

/// Of the kernels' queue to a PE, in entries' first blocks plus one. They only grow.
struct QueueMarks {
  std::uint64_t answers; ///< the last READ or atomic: what comes behind a fence waits for it
  std::uint64_t fenced;  ///< the last entry that began when all before it were answered
};

/// Where a queue brings what a kernel waits for: host memory that the HCA has keys of.
struct alignas(64) QueueResult {
  std::byte bytes[64];
};

/// Pointers that kernels can follow. All null in a job where every PE is mapped. "Device memory"
/// is that of this PE's GPU, which only kernels of this PE change.
struct DeviceNetwork {
  const std::uint8_t* path_of_pe; ///< DevicePath, by PE; nullptr: load_store to all

  // The kernels' own proxy. See docs/explanation/proxy.md.
  ProxyRings rings;               ///< `issued` is device memory
  std::uint64_t* known_completed; ///< device memory, by ring: a value that `completed` has had
  /// Device memory, by ring and result: bit 0 says that a thread uses it; from bit 8 on the tag of
  /// its last request.
  std::uint64_t* result_words;
  std::uint32_t context; ///< of the transports, for requests

  // ibgda. See docs/explanation/mlx5.md.
  /// The first of the kernels' own lanes, and how many: the host never posts to their queues.
  std::uint32_t queue_lane, n_queue_lanes;
  std::uint32_t queues_per_pe;      ///< room for `marks` of so many queues to each PE
  std::uint32_t queue_by_warp;      ///< 1: each warp has its queue; 0: each block
  const direct::QueueTable* queues; ///< nullptr: none
  QueueMarks* marks;                ///< device memory, by PE and queue
  /// Number 0 takes what nobody wants to see.
  QueueResult* results;
  std::uint64_t* queue_result_locks; ///< device memory, by result; 0 is free
  std::uint32_t n_queue_results;
};

} // namespace shmemctl
