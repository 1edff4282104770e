// The arithmetic of reductions on 8 or 16 bytes of numbers at a time.
#pragma once

#include <cstddef>
#include <cstring>

#include "kernels/device/numbers.cuh"

namespace shmemctl::device {

/// Sums and products of whole numbers wrap around.
enum class ReduceOp : std::uint8_t { sum, min, max, prod };

namespace detail {

/// As what a number is added up.
template <class T>
struct WideOf {
  using Type = T;
  static __device__ Type widen(T value) { return value; }
  static __device__ T narrow(Type value) { return value; }
};
template <class T>
struct Wide16 {
  using Type = float;
  static __device__ float widen(T value) { return to_float(value); }
  static __device__ T narrow(float wide) {
    T value;
    from_float(wide, value);
    return value;
  }
};
template <>
struct WideOf<Bf16> : Wide16<Bf16> {};
template <>
struct WideOf<Fp16> : Wide16<Fp16> {};

__device__ inline std::int32_t plus(std::int32_t a, std::int32_t b) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
}
__device__ inline std::int64_t plus(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
template <class T>
__device__ inline T plus(T a, T b) {
  return a + b;
}
__device__ inline std::int32_t times(std::int32_t a, std::int32_t b) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) * static_cast<std::uint32_t>(b));
}
__device__ inline std::int64_t times(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}
template <class T>
__device__ inline T times(T a, T b) {
  return a * b;
}
template <class Wide>
__device__ inline Wide combine(ReduceOp op, Wide a, Wide b) {
  switch (op) {
  case ReduceOp::sum:
    return plus(a, b);
  case ReduceOp::min:
    return b < a ? b : a;
  case ReduceOp::max:
    return a < b ? b : a;
  case ReduceOp::prod:
    return times(a, b);
  }
  return a;
}

/// As many numbers as fit `Raw` (8 or 16 bytes, or one number), in the order of the calls.
template <class T, class Raw>
class Accumulator {
public:
  __device__ explicit Accumulator(Raw first) {
    T numbers[count];
    memcpy(numbers, &first, sizeof first);
#pragma unroll
    for (int i = 0; i < count; ++i)
      wide_[i] = WideOf<T>::widen(numbers[i]);
  }
  __device__ void take(ReduceOp op, Raw next) {
    T numbers[count];
    memcpy(numbers, &next, sizeof next);
#pragma unroll
    for (int i = 0; i < count; ++i)
      wide_[i] = combine(op, wide_[i], WideOf<T>::widen(numbers[i]));
  }
  __device__ Raw result() const {
    T numbers[count];
#pragma unroll
    for (int i = 0; i < count; ++i)
      numbers[i] = WideOf<T>::narrow(wide_[i]);
    Raw raw;
    memcpy(&raw, numbers, sizeof raw);
    return raw;
  }

private:
  static constexpr int count = sizeof(Raw) / sizeof(T);
  typename WideOf<T>::Type wide_[count];
};

} // namespace detail
} // namespace shmemctl::device
