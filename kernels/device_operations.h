// The choices that operations of kernels and of streams have. For host and device.
#pragma once

#include <cstdint>

namespace shmemctl::device {

enum class SignalOp : std::uint8_t { set, add };

/// What a word is waited for to be, compared with a value.
enum class Compare : std::uint8_t { equal, not_equal, greater, greater_equal, less, less_equal };

/// Sums and products of whole numbers wrap around.
enum class ReduceOp : std::uint8_t { sum, min, max, prod };

} // namespace shmemctl::device
