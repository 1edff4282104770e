// Conversions to and from BF16 and FP8 (e4m3), and FP8 scales. Results are bit-exact and equal on
// host and device; kernels that convert with hardware instructions must give exactly these results.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "src/base/host_device.h"

namespace shmemctl::moe {

SHMEMCTL_HOST_DEVICE inline std::uint32_t bits_of(float value) {
#if defined(__CUDA_ARCH__)
  return __float_as_uint(value);
#else
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
#endif
}
SHMEMCTL_HOST_DEVICE inline float float_of(std::uint32_t bits) {
#if defined(__CUDA_ARCH__)
  return __uint_as_float(bits);
#else
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
#endif
}

SHMEMCTL_HOST_DEVICE inline float float_of_bf16(std::uint16_t bf16) {
  return float_of(static_cast<std::uint32_t>(bf16) << 16);
}
/// Rounds to nearest, ties to even; NaN becomes 0x7fff, as with cvt.rn.bf16.f32.
SHMEMCTL_HOST_DEVICE inline std::uint16_t bf16_of_float(float value) {
  const std::uint32_t bits = bits_of(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U)
    return 0x7fff;
  return static_cast<std::uint16_t>((bits + 0x7fffU + (bits >> 16 & 1)) >> 16);
}

/// Rounds to nearest, ties to even; saturates to +-448; NaN becomes 0x7f: as with
/// cvt.rn.satfinite.e4m3x2.f32.
SHMEMCTL_HOST_DEVICE inline std::uint8_t e4m3_of_float(float value) {
  const std::uint32_t bits = bits_of(value), magnitude = bits & 0x7fffffffU;
  const std::uint32_t sign = bits >> 24 & 0x80U;
  if (magnitude > 0x7f800000U)
    return 0x7f;
  if (magnitude >= bits_of(448.0F))
    return static_cast<std::uint8_t>(sign | 0x7eU);
  if (magnitude < bits_of(0.015625F)) { // below 2^-6: multiples of 2^-9
    // FP32 values from 2^14 to 2^15 are multiples of 2^-9, so the addition rounds as required.
    const float rounded = float_of(magnitude) + 16384.0F;
    return static_cast<std::uint8_t>(sign | (bits_of(rounded) - bits_of(16384.0F)));
  }
  const std::uint32_t rounded = magnitude + 0x7ffffU + (magnitude >> 20 & 1);
  return static_cast<std::uint8_t>(sign | ((rounded >> 20) - (120U << 3)));
}
SHMEMCTL_HOST_DEVICE inline float float_of_e4m3(std::uint8_t e4m3) {
  const std::uint32_t sign = static_cast<std::uint32_t>(e4m3 & 0x80U) << 24;
  const std::uint32_t magnitude = e4m3 & 0x7fU;
  if (magnitude == 0x7f)
    return float_of(sign | 0x7fc00000U);
  if (magnitude < 8)
    return float_of(sign | bits_of(static_cast<float>(magnitude) * 0.001953125F));
  return float_of(sign | ((magnitude << 20) + (120U << 23)));
}

/// The scaling of 128 values for FP8: value * factor is cast to e4m3, and the cast value times
/// scale is the value again, with the rounding error of the cast.
struct Fp8Scale {
  float factor, scale;
};
/// @param largest the largest magnitude of the values
SHMEMCTL_HOST_DEVICE inline Fp8Scale fp8_scale(float largest) {
  const float at_least = largest > 1e-4F ? largest : 1e-4F;
#if defined(__CUDA_ARCH__)
  return {__fdiv_rn(448.0F, at_least), __fdiv_rn(at_least, 448.0F)};
#else
  return {448.0F / at_least, at_least / 448.0F};
#endif
}
/// As fp8_scale(), but with a scale that is a power of two (UE8M0): the smallest one that is not
/// below that of fp8_scale().
SHMEMCTL_HOST_DEVICE inline Fp8Scale fp8_power_scale(float largest) {
  const std::uint32_t bits = bits_of(fp8_scale(largest).scale);
  const std::uint32_t exponent = (bits >> 23) + ((bits & 0x7fffffU) != 0 ? 1 : 0);
  return {float_of((254U - exponent) << 23), float_of(exponent << 23)};
}
/// The UE8M0 byte of a scale, which is a power of two.
SHMEMCTL_HOST_DEVICE inline std::uint8_t ue8m0_of_scale(float scale) {
  return static_cast<std::uint8_t>(bits_of(scale) >> 23);
}
SHMEMCTL_HOST_DEVICE inline float scale_of_ue8m0(std::uint8_t ue8m0) {
  return float_of(static_cast<std::uint32_t>(ue8m0) << 23);
}

/// a * b, which is not fused with a following addition on the device.
SHMEMCTL_HOST_DEVICE inline float multiply(float a, float b) {
#if defined(__CUDA_ARCH__)
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}
SHMEMCTL_HOST_DEVICE inline float add(float a, float b) {
#if defined(__CUDA_ARCH__)
  return __fadd_rn(a, b);
#else
  return a + b;
#endif
}
/// a * b + c, rounded once.
SHMEMCTL_HOST_DEVICE inline float multiply_add(float a, float b, float c) {
#if defined(__CUDA_ARCH__)
  return __fmaf_rn(a, b, c);
#else
  return std::fma(a, b, c);
#endif
}

SHMEMCTL_HOST_DEVICE inline std::uint8_t fp8_cast(std::uint16_t bf16, const Fp8Scale& scale) {
  return e4m3_of_float(multiply(float_of_bf16(bf16), scale.factor));
}
/// The value that an expert reads: the FP8 value times its scale, as BF16.
SHMEMCTL_HOST_DEVICE inline std::uint16_t fp8_read(std::uint8_t e4m3, float scale) {
  return bf16_of_float(multiply(float_of_e4m3(e4m3), scale));
}

} // namespace shmemctl::moe
