// Why an operation of a kernel over the network did not go well. For host and device.
#pragma once

#include "kernels/device_job.h"
#include "src/base/host_device.h"

namespace shmemctl::device {

/// What WaitReport says, by its kind.
struct NetworkProblem {
  WaitKind kind;
  std::uint64_t expected, seen, offset_bytes;
};

} // namespace shmemctl::device
