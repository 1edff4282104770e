// What kernels know of the job: plain structs for host and device, handed to a kernel by value.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shmemctl {

/// The first wait of a kernel that took too long. In memory that the host reads while the kernel
/// runs.
struct WaitReport {
  static constexpr std::uint64_t none = 0, being_written = 1, written = 2;
  std::uint64_t state; ///< who makes `being_written` of `none` writes the rest
  std::int32_t peer;   ///< the PE that was waited for; -1 if it is not known
  std::int32_t block;
  std::uint64_t expected, seen;
  std::uint64_t offset_bytes; ///< of the word, in the heap
};

/// Words at the start of the device's internal region, the same on all PEs.
struct DeviceCells {
  static constexpr int most_pes = 1024;
  std::uint64_t arrived[most_pes]; ///< barrier: by PE, the epoch that it has reached
  std::uint64_t epoch;             ///< this PE's own
};

/// Device memory only: kernels cannot reach the host's structures of the runtime.
struct DeviceJob {
  static constexpr std::int64_t unreachable = INT64_MIN;

  std::int32_t pe, n_pes;
  std::byte* heap;
  std::uint64_t heap_bytes;
  /// By PE: that PE's heap here is my own address plus this.
  const std::int64_t* heap_delta_bytes;
  DeviceCells* cells;
  const std::int64_t* cells_delta_bytes; ///< by PE
  WaitReport* report;
  std::uint64_t timeout_ns; ///< of every wait
};

} // namespace shmemctl
