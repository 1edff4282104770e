// Stands in for kernels/device/numeric_types.cuh: the same conversions by arithmetic. Fp16 only for
// the small whole numbers that tests use.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/device/scope.cuh"

namespace shmemctl::device {

struct Bf16 {
  std::uint16_t bits;
};
struct Fp16 {
  std::uint16_t bits;
};

inline float to_float(Bf16 value) {
  const std::uint32_t bits = static_cast<std::uint32_t>(value.bits) << 16;
  float wide = 0;
  std::memcpy(&wide, &bits, sizeof wide);
  return wide;
}
inline void from_float(float wide, Bf16& value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &wide, sizeof bits);
  // To the nearest, to even where two are equally near.
  value.bits = static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
inline float to_float(Fp16 value) {
  if ((value.bits & 0x7fff) == 0)
    return 0;
  const std::uint32_t bits = static_cast<std::uint32_t>(value.bits & 0x8000) << 16 |
                             (static_cast<std::uint32_t>(value.bits & 0x7fff) + (112u << 10)) << 13;
  float wide = 0;
  std::memcpy(&wide, &bits, sizeof wide);
  return wide;
}
inline void from_float(float wide, Fp16& value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &wide, sizeof bits);
  const std::uint32_t sign = bits >> 16 & 0x8000;
  bits &= 0x7fffffff;
  value.bits = static_cast<std::uint16_t>(
      sign | (bits == 0 ? 0 : (bits + 0xfff + (bits >> 13 & 1) - (112u << 23)) >> 13));
}

} // namespace shmemctl::device
