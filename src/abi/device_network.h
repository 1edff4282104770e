// How kernels reach PEs to which they do not load and store: the proxy's FIFOs and the kernels'
// QPs. For host and device.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/abi/proxy_layout.h"

namespace shmemctl {

namespace mlx5 {
class QpTable;
}

/// The path by which a kernel reaches a PE.
enum class DevicePath : std::uint8_t { none, load_store, proxy, ibgda };

/// Marks of a kernel QP. A mark is the first WQEBB of a WQE plus one; it only grows.
struct QpMarks {
  std::uint64_t answers; ///< the last READ or atomic, for whose response a fence must wait
  std::uint64_t fenced;  ///< the last WQE with a fence, started after all earlier responses
};

/// Where the HCA writes a value that a kernel waits for: registered host memory.
struct alignas(64) QpResult {
  std::byte bytes[64];
};

/// Pointers that kernels can dereference. All are null if kernels reach every PE by loads and
/// stores. "Device memory" is GPU memory of this PE that only its kernels change.
struct DeviceNetwork {
  const std::uint8_t* path_of_pe; ///< DevicePath, by PE; nullptr: load_store to all

  // The kernels' proxy. See docs/explanation/proxy.md.
  ProxyFifos rings;               ///< `issued` is device memory
  std::uint64_t* known_completed; ///< device memory, by FIFO: cached `completed`
  /// Device memory, by FIFO and result: bit 0 is set while a thread uses the result; bits from 8 on
  /// hold the tag of its last request.
  std::uint64_t* result_words;
  std::uint32_t context; ///< the transports' context that requests use

  // ibgda. See docs/explanation/mlx5.md.
  /// The first QP set that belongs to kernels, and the number of these sets: the host never posts
  /// to their QPs.
  std::uint32_t first_qp_set, n_kernel_qp_sets;
  std::uint32_t qps_per_pe;    ///< `marks` has room for this many QPs per PE
  std::uint32_t qp_per_warp;   ///< 1: a QP per warp; 0: a QP per block
  const mlx5::QpTable* queues; ///< nullptr: none
  QpMarks* marks;              ///< device memory, by PE and QP
  /// results[0] is a sink for unused values.
  QpResult* results;
  std::uint64_t* qp_result_locks; ///< device memory, by result; 0 is free
  std::uint32_t n_qp_results;
};

} // namespace shmemctl
