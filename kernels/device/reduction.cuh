// Reduction arithmetic on 8 or 16 bytes at a time.
#pragma once

#include <cstddef>
#include <cstring>
#include <type_traits>

#include "kernels/device/numeric_types.cuh"
#include "src/abi/op_types.h"

namespace shmemctl::device {

namespace detail {

/// The type in which elements are accumulated.
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

/// The type in which integers are added and multiplied, so that they wrap around: at least 32 bits,
/// because smaller unsigned types would be promoted to int.
template <class T>
using Wrapping = typename std::conditional<sizeof(T) <= 4, std::uint32_t, std::uint64_t>::type;
template <class T>
__device__ inline T plus(T a, T b) {
  if constexpr (std::is_integral<T>::value)
    return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
  else
    return a + b;
}
template <class T>
__device__ inline T times(T a, T b) {
  if constexpr (std::is_integral<T>::value)
    return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
  else
    return a * b;
}

/// Accumulates as many elements as fit into `Raw` (8 or 16 bytes, or one element), in call order.
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
    Wide wide[count];
#pragma unroll
    for (int i = 0; i < count; ++i)
      wide[i] = WideOf<T>::widen(numbers[i]);
    // One branch for all numbers; all threads take the same one.
    if (op == ReduceOp::sum)
      each([&](int i) { return plus(wide_[i], wide[i]); });
    else if (op == ReduceOp::min)
      each([&](int i) { return wide[i] < wide_[i] ? wide[i] : wide_[i]; });
    else if (op == ReduceOp::max)
      each([&](int i) { return wide_[i] < wide[i] ? wide[i] : wide_[i]; });
    else if (op == ReduceOp::prod)
      each([&](int i) { return times(wide_[i], wide[i]); });
    else if constexpr (std::is_integral<Wide>::value)
      take_bits(op, wide);
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
  using Wide = typename WideOf<T>::Type;
  static constexpr int count = sizeof(Raw) / sizeof(T); // NOLINT(bugprone-sizeof-expression)

  __device__ void take_bits(ReduceOp op, const Wide* wide) {
    if (op == ReduceOp::bit_and)
      each([&](int i) { return static_cast<Wide>(wide_[i] & wide[i]); });
    else if (op == ReduceOp::bit_or)
      each([&](int i) { return static_cast<Wide>(wide_[i] | wide[i]); });
    else
      each([&](int i) { return static_cast<Wide>(wide_[i] ^ wide[i]); });
  }
  template <class Combine>
  __device__ void each(const Combine& combine) {
#pragma unroll
    for (int i = 0; i < count; ++i)
      wide_[i] = combine(i);
  }

  Wide wide_[count];
};

} // namespace detail
} // namespace shmemctl::device
