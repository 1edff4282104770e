// The choices that operations of kernels and of streams have. For host and device.
#pragma once

#include <cstdint>

#include "src/base/choices.h"
#include "src/base/host_device.h"

namespace shmemctl::device {

using shmemctl::Compare;
using shmemctl::SignalOp;

/// Sums and products of whole numbers wrap around; the last three are of whole numbers only.
enum class ReduceOp : std::uint8_t { sum, min, max, prod, bit_and, bit_or, bit_xor };
SHMEMCTL_HOST_DEVICE constexpr bool is_bitwise(ReduceOp op) {
  return op == ReduceOp::bit_and || op == ReduceOp::bit_or || op == ReduceOp::bit_xor;
}

} // namespace shmemctl::device
