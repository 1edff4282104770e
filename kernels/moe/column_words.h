// The shared memory that counting tokens by column takes. For host and device.
#pragma once

#include <cstdint>

#include "src/base/host_device.h"

namespace shmemctl::moe {

/// Threads whose counts are added up by one thread.
inline constexpr std::int32_t column_segment_threads = 32;

/// Of a block of `threads`, in words: counts by thread, and sums by segment.
SHMEMCTL_HOST_DEVICE constexpr std::int32_t column_count_words(std::int32_t columns,
                                                               std::int32_t threads) {
  return columns * (threads + (threads + column_segment_threads - 1) / column_segment_threads + 1);
}

} // namespace shmemctl::moe
