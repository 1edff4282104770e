// The runtime's ElementType of a C type that reductions take.
#pragma once

#include <type_traits>

#include "src/runtime/collectives.h"
#include "src/runtime/shmem/include/shmem.h"

namespace shmemctl::api {

template <class T>
constexpr ElementType integer_type() {
  constexpr bool is_signed = std::is_signed_v<T>;
  switch (sizeof(T)) {
  case 1:
    return is_signed ? ElementType::int8 : ElementType::uint8;
  case 2:
    return is_signed ? ElementType::int16 : ElementType::uint16;
  case 4:
    return is_signed ? ElementType::int32 : ElementType::uint32;
  default:
    static_assert(sizeof(T) <= 8);
    return is_signed ? ElementType::int64 : ElementType::uint64;
  }
}

template <class T>
constexpr ElementType element_type() {
  if constexpr (std::is_integral_v<T>)
    return integer_type<T>();
  else if constexpr (std::is_same_v<T, float>)
    return ElementType::float32;
  else if constexpr (std::is_same_v<T, double>)
    return ElementType::float64;
  else if constexpr (std::is_same_v<T, long double>)
    return ElementType::long_double;
  else if constexpr (std::is_same_v<T, shmemctl_complexf>)
    return ElementType::complex_float;
  else {
    static_assert(std::is_same_v<T, shmemctl_complexd>);
    return ElementType::complex_double;
  }
}

} // namespace shmemctl::api
