// The arithmetic of counting rows by rank in parallel. For host and device.
#pragma once

#include <cstdint>

#include "src/base/host_device.h"

namespace shmemctl::moe {

/// Counts by rank, 16 bits each, so that a scan adds eight at once.
struct PackedCounts {
  static constexpr std::int32_t most = 0xffff;
  std::uint64_t low, high; ///< ranks 0 to 3, 4 to 7

  /// 1 for each rank of the mask.
  SHMEMCTL_HOST_DEVICE static constexpr PackedCounts of(std::uint32_t ranks) {
    return {spread(ranks & 0xf), spread(ranks >> 4 & 0xf)};
  }
  SHMEMCTL_HOST_DEVICE constexpr std::int32_t of_rank(int rank) const {
    return static_cast<std::int32_t>((rank < 4 ? low : high) >> (rank % 4 * 16) & 0xffff);
  }
  SHMEMCTL_HOST_DEVICE constexpr PackedCounts operator+(PackedCounts other) const {
    return {low + other.low, high + other.high};
  }
  SHMEMCTL_HOST_DEVICE constexpr PackedCounts operator-(PackedCounts other) const {
    return {low - other.low, high - other.high};
  }

private:
  /// Moves bit i to bit 16 * i.
  SHMEMCTL_HOST_DEVICE static constexpr std::uint64_t spread(std::uint64_t bits) {
    return (bits | bits << 15 | bits << 30 | bits << 45) & 0x0001000100010001u;
  }
};

/// Division of a number below 65536 by a divisor of at most 65536 that is known in advance: a
/// multiplication.
class QuickDivision {
public:
  SHMEMCTL_HOST_DEVICE constexpr explicit QuickDivision(std::int32_t divisor)
      : factor_((std::uint64_t{1} << 32) / static_cast<std::uint32_t>(divisor) + 1) {}
  SHMEMCTL_HOST_DEVICE constexpr std::uint32_t operator()(std::uint32_t number) const {
    return static_cast<std::uint32_t>(number * factor_ >> 32);
  }

private:
  std::uint64_t factor_;
};

/// Threads whose counts are added up by one thread.
inline constexpr std::int32_t token_segment_threads = 32;

/// The 32-bit words that a block of `threads` needs: counts by thread, and sums by segment.
SHMEMCTL_HOST_DEVICE constexpr std::int32_t token_count_words(std::int32_t columns,
                                                              std::int32_t threads) {
  return columns * (threads + (threads + token_segment_threads - 1) / token_segment_threads + 1);
}

} // namespace shmemctl::moe
