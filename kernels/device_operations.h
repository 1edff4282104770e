// The choices that operations of kernels and of streams have. For host and device.
#pragma once

#include <cstdint>

#include "src/base/choices.h"

namespace shmemctl::device {

using shmemctl::Compare;
using shmemctl::SignalOp;

/// Sums and products of whole numbers wrap around.
enum class ReduceOp : std::uint8_t { sum, min, max, prod };

} // namespace shmemctl::device
