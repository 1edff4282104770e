// Stands in for kernels/moe/vector_cast.cuh: eight numbers at a time, by arithmetic.
#pragma once

#include <cstring>

#include "kernels/device/scope.cuh"
#include "src/model/moe/number_formats.h"

struct alignas(16) uint4 {
  unsigned x, y, z, w;
};

namespace shmemctl::moe {

struct EightFloats {
  float values[8];

  void set(float value) {
    for (float& one : values)
      one = value;
  }
  void take(uint4 bf16) {
    std::uint16_t numbers[8];
    std::memcpy(numbers, &bf16, sizeof numbers);
    for (int i = 0; i < 8; ++i)
      values[i] = float_of_bf16(numbers[i]);
  }
  void add(uint4 bf16) {
    EightFloats other;
    other.take(bf16);
    for (int i = 0; i < 8; ++i)
      values[i] = moe::add(values[i], other.values[i]);
  }
  void add_weighted(float weight, uint4 bf16) {
    EightFloats other;
    other.take(bf16);
    for (int i = 0; i < 8; ++i)
      values[i] = multiply_add(weight, other.values[i], values[i]);
  }
  uint4 rounded() const {
    std::uint16_t numbers[8];
    for (int i = 0; i < 8; ++i)
      numbers[i] = bf16_of_float(values[i]);
    uint4 bf16;
    std::memcpy(&bf16, numbers, sizeof bf16);
    return bf16;
  }
};

} // namespace shmemctl::moe
