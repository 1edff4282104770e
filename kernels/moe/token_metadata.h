// The metadata of a received row. For host and device.
#pragma once

#include <cstdint>

#include "src/model/moe/shape.h"

namespace shmemctl::moe {

/// Format of the scales of FP8 rows.
enum class Scales : std::int32_t {
  none,    ///< BF16
  float32, ///< any number
  power,   ///< float32, but powers of two only
  ue8m0 ///< powers of two as exponents (UE8M0), four per 32-bit word, the first in the lowest byte
};
SHMEMCTL_HOST_DEVICE constexpr Format format_of(Scales scales) {
  return scales == Scales::none ? Format::bf16 : Format::fp8;
}
SHMEMCTL_HOST_DEVICE constexpr bool are_powers(Scales scales) {
  return scales == Scales::power || scales == Scales::ue8m0;
}

/// Offsets, in 32-bit words: scales (FP8 only), top_k local experts (no_expert for those of other
/// ranks), top_k weights (0 for those), source rank and token index; padded to 16 bytes.
struct MetadataLayout {
  std::int32_t scale_words, top_k;

  SHMEMCTL_HOST_DEVICE constexpr MetadataLayout(const Shape& shape, Scales scales)
      : scale_words(scales == Scales::none    ? 0
                    : scales == Scales::ue8m0 ? (shape.scales_per_row() + 3) / 4
                                              : shape.scales_per_row()),
        top_k(shape.top_k) {}
  SHMEMCTL_HOST_DEVICE constexpr std::int32_t experts() const { return scale_words; }
  SHMEMCTL_HOST_DEVICE constexpr std::int32_t weights() const { return scale_words + top_k; }
  SHMEMCTL_HOST_DEVICE constexpr std::int32_t source() const { return scale_words + 2 * top_k; }
  SHMEMCTL_HOST_DEVICE constexpr std::int32_t token() const { return source() + 1; }
  SHMEMCTL_HOST_DEVICE constexpr std::int32_t words() const { return (token() + 1 + 3) / 4 * 4; }
  SHMEMCTL_HOST_DEVICE constexpr std::int32_t bytes() const { return words() * 4; }
};

} // namespace shmemctl::moe
