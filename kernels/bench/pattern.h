// The data of measurements, the same function on host and device.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/base/host_device.h"

namespace shmemctl::bench {

/// Source offsets that operations alternate between, one cache line apart.
inline constexpr std::uint64_t variants = 64;
inline constexpr std::size_t variant_step_bytes = 64;

/// The 8 bytes of a PE's pattern at 8 * index.
SHMEMCTL_HOST_DEVICE inline std::uint64_t pattern_word(std::uint64_t seed, int pe,
                                                       std::uint64_t index) {
  std::uint64_t x = seed + 0x9e3779b97f4a7c15ULL * (index + 1) +
                    0xd1342543de82ef95ULL * (static_cast<std::uint64_t>(pe) + 1);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// Byte `at` of a PE's pattern (little endian).
SHMEMCTL_HOST_DEVICE inline std::uint8_t pattern_byte(std::uint64_t seed, int pe,
                                                      std::uint64_t at) {
  return static_cast<std::uint8_t>(pattern_word(seed, pe, at / 8) >> (8 * (at % 8)));
}

/// The slots of one writer, each of `slot_bytes`: operation j goes to slot j % slots, and sends
/// from another place of the source than the slot's last one did.
struct PatternSlots {
  std::uint64_t slots, slot_bytes, size_bytes;
  std::uint64_t operations; ///< operations that have been made
  std::uint64_t seed;
  int writer;

  SHMEMCTL_HOST_DEVICE static std::uint64_t source_offset_bytes(std::uint64_t operation,
                                                                std::uint64_t slots) {
    return (operation % slots + operation / slots) % variants * variant_step_bytes;
  }
  /// What byte `at` of the area must be: of the slot's last operation; 0 in gaps and where there
  /// was none.
  SHMEMCTL_HOST_DEVICE std::uint8_t expected(std::uint64_t at) const {
    const std::uint64_t slot = at / slot_bytes, in_slot = at % slot_bytes;
    if (in_slot >= size_bytes || operations <= slot)
      return 0;
    const std::uint64_t last = slot + (operations - slot - 1) / slots * slots;
    return pattern_byte(seed, writer, source_offset_bytes(last, slots) + in_slot);
  }
};

} // namespace shmemctl::bench
