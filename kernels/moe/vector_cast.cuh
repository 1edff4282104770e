// Casts of several numbers at a time by the GPU's instructions, with bitwise the same results as
// src/model/moe/number_formats.h.
#pragma once

#include "src/model/moe/number_formats.h"
#include "src/model/moe/shape.h"

namespace shmemctl::moe {

/// Two numbers as e4m3, the first one in the lower byte.
__device__ inline std::uint32_t e4m3_pair(float first, float second) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  std::uint16_t pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(second), "f"(first));
  return pair;
#else
  return e4m3_of_float(first) | static_cast<std::uint32_t>(e4m3_of_float(second)) << 8;
#endif
}

/// Eight numbers in FP32, from and to 16 bytes of BF16.
struct EightFloats {
  float values[8];

  __device__ void set(float value) {
#pragma unroll
    for (float& one : values)
      one = value;
  }
  __device__ void take(uint4 bf16) {
    const std::uint32_t words[4] = {bf16.x, bf16.y, bf16.z, bf16.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      values[2 * i] = __uint_as_float(words[i] << 16);
      values[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
    }
  }
  __device__ void add(uint4 bf16) {
    EightFloats other;
    other.take(bf16);
#pragma unroll
    for (int i = 0; i < 8; ++i)
      values[i] = moe::add(values[i], other.values[i]);
  }
  /// += weight * numbers, rounded once.
  __device__ void add_weighted(float weight, uint4 bf16) {
    EightFloats other;
    other.take(bf16);
#pragma unroll
    for (int i = 0; i < 8; ++i)
      values[i] = multiply_add(weight, other.values[i], values[i]);
  }
  __device__ uint4 rounded() const {
    std::uint32_t words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      asm("cvt.rn.bf16x2.f32 %0, %1, %2;"
          : "=r"(words[i])
          : "f"(values[2 * i + 1]), "f"(values[2 * i]));
    return make_uint4(words[0], words[1], words[2], words[3]);
  }
  __device__ float largest() const {
    float most = 0;
#pragma unroll
    for (const float value : values)
      most = fmaxf(most, fabsf(value));
    return most;
  }
  /// The products value * factor as e4m3; those that are too large become the largest number, 448.
  __device__ uint2 as_e4m3(float factor) const {
    std::uint32_t phases[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      phases[i] = e4m3_pair(multiply(values[2 * i], factor), multiply(values[2 * i + 1], factor));
    return make_uint2(phases[0] | phases[1] << 16, phases[2] | phases[3] << 16);
  }
};

/// Number of lanes that together hold a group of channels with one scale, eight channels each.
inline constexpr int lanes_per_scale = channels_per_scale / 8;

/// The largest value in the calling lane's group of lanes; called by whole groups.
__device__ inline float largest_of_group(float value, std::uint32_t lanes = 0xffffffffu) {
#pragma unroll
  for (int distance = lanes_per_scale / 2; distance > 0; distance /= 2)
    value = fmaxf(value, __shfl_xor_sync(lanes, value, distance));
  return value;
}
__device__ inline Fp8Scale scale_of(float largest, bool power_scales) {
  return power_scales ? fp8_power_scale(largest) : fp8_scale(largest);
}

} // namespace shmemctl::moe
