// Threads that post to a queue together: one reservation, one turn and one doorbell for all. For
// host and device.
//
// A group has
//   rank(), size()       of this thread, and of all; rank 0 leads
//   from_leader(value)   the leader's value, at all
//   last_with(flag)      the highest rank whose flag is true; -1 if there is none
//   sync()               what each has done before is before what any does behind it
// and every member calls the same of them in the same order.
#pragma once

#include <cstdint>

#include "src/base/host_device.h"

namespace shmemctl::mlx5 {

/// A thread that posts for itself.
struct Alone {
  SHMEMCTL_HOST_DEVICE static constexpr std::uint32_t rank() { return 0; }
  SHMEMCTL_HOST_DEVICE static constexpr std::uint32_t size() { return 1; }
  SHMEMCTL_HOST_DEVICE static constexpr std::uint64_t from_leader(std::uint64_t value) {
    return value;
  }
  SHMEMCTL_HOST_DEVICE static constexpr std::int32_t last_with(bool flag) { return flag ? 0 : -1; }
  SHMEMCTL_HOST_DEVICE static constexpr void sync() {}
};

} // namespace shmemctl::mlx5
