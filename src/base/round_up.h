// Sizes as multiples of a granularity.
#pragma once

#include <concepts>
#include <type_traits>

namespace shmemctl {

/// The smallest multiple of `granularity` (not 0) that is not below `value`. Their sum must fit
/// into the type.
template <std::unsigned_integral T>
constexpr T round_up(T value, std::type_identity_t<T> granularity) {
  return (value + granularity - 1) / granularity * granularity;
}

/// Like round_up(), but without a division, for hot paths; `power` must be a power of two.
template <std::unsigned_integral T>
constexpr T round_up_to_power(T value, std::type_identity_t<T> power) {
  return (value + power - 1) & ~(power - 1);
}

} // namespace shmemctl
