// Pseudo-random payload that depends on the sender and the iteration, without cost in the timed
// loop: the source area is filled once, and iteration i sends from an offset in it that depends on
// i.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "kernels/bench/pattern.h"

namespace shmemctl::bench {

/// The size of a source area for messages of that size.
inline constexpr std::size_t source_bytes(std::size_t size_bytes) {
  return (size_bytes + variants * variant_step_bytes + 63) / 64 * 64;
}

/// Fills `size_bytes` (a multiple of 8) with the pattern of a PE.
void fill_pattern(std::byte* area, std::size_t size_bytes, std::uint64_t seed, int pe);

struct Difference {
  std::size_t offset_bytes = 0; ///< offset in the compared data
  std::uint8_t expected = 0, found = 0;
};
/// Where `data` first differs from bytes [from, from + size_bytes) of a PE's pattern.
std::optional<Difference> compare_pattern(const std::byte* data, std::size_t size_bytes,
                                          std::uint64_t seed, int pe, std::size_t from);
/// The first byte that is not 0.
std::optional<Difference> compare_zero(const std::byte* data, std::size_t size_bytes);

} // namespace shmemctl::bench
