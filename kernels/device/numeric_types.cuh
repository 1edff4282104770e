// 16-bit floating-point types; arithmetic is done in FP32.
#pragma once

#include <cstdint>

namespace shmemctl::device {

struct Bf16 {
  std::uint16_t bits;
};
struct Fp16 {
  std::uint16_t bits;
};

__device__ inline float to_float(Bf16 value) {
  return __uint_as_float(static_cast<std::uint32_t>(value.bits) << 16);
}
__device__ inline float to_float(Fp16 value) {
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(value.bits));
  return wide;
}
/// Rounds to nearest even.
__device__ inline void from_float(float wide, Bf16& value) {
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(value.bits) : "f"(wide));
}
__device__ inline void from_float(float wide, Fp16& value) {
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(value.bits) : "f"(wide));
}

} // namespace shmemctl::device
