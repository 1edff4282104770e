#include "src/runtime/reduce_kernels.h"

#include <array>
#include <complex>
#include <cstdint>
#include <type_traits>

namespace shmemctl {

namespace {

template <class T>
inline constexpr bool is_complex =
    std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;

/// Integers are added and multiplied as unsigned numbers of at least the size of int, so that they
/// wrap around as users expect: signed overflow is undefined.
template <class T>
using Arithmetic = std::make_unsigned_t<decltype(T{} + T{})>;

template <class T>
T add(T left, T right) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<Arithmetic<T>>(left) + static_cast<Arithmetic<T>>(right));
  else
    return left + right;
}

template <class T>
T multiply(T left, T right) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<Arithmetic<T>>(left) * static_cast<Arithmetic<T>>(right));
  else
    return left * right;
}

template <ReduceOp op, class T>
T apply(T left, T right) {
  if constexpr (op == ReduceOp::bit_and)
    return static_cast<T>(left & right);
  else if constexpr (op == ReduceOp::bit_or)
    return static_cast<T>(left | right);
  else if constexpr (op == ReduceOp::bit_xor)
    return static_cast<T>(left ^ right);
  else if constexpr (op == ReduceOp::minimum)
    return right < left ? right : left;
  else if constexpr (op == ReduceOp::maximum)
    return left < right ? right : left;
  else if constexpr (op == ReduceOp::sum)
    return add(left, right);
  else
    return multiply(left, right);
}

/// The compiler vectorises inner loops of fixed length over arrays that do not overlap, even at
/// -O2.
template <ReduceOp op, class T>
void accumulate(void* into, const void* from, std::size_t elements) {
  constexpr std::size_t lanes = 256 / sizeof(T);
  T* __restrict to = static_cast<T*>(into);
  const T* __restrict right = static_cast<const T*>(from);
  for (; elements >= lanes; elements -= lanes, to += lanes, right += lanes)
    for (std::size_t lane = 0; lane < lanes; ++lane)
      to[lane] = apply<op>(to[lane], right[lane]);
  for (std::size_t i = 0; i < elements; ++i)
    to[i] = apply<op>(to[i], right[i]);
}

template <ReduceOp op, class T>
constexpr ReduceKernel kernel() {
  constexpr bool of_bits =
      op == ReduceOp::bit_and || op == ReduceOp::bit_or || op == ReduceOp::bit_xor;
  constexpr bool of_order = op == ReduceOp::minimum || op == ReduceOp::maximum;
  if constexpr ((of_bits && !std::is_integral_v<T>) || (of_order && is_complex<T>))
    return nullptr;
  else
    return accumulate<op, T>;
}

constexpr std::size_t n_ops = 7;

/// Kernels of a type, in ReduceOp's order.
template <class T>
constexpr std::array<ReduceKernel, n_ops> kernels() {
  return {kernel<ReduceOp::bit_and, T>(), kernel<ReduceOp::bit_or, T>(),
          kernel<ReduceOp::bit_xor, T>(), kernel<ReduceOp::minimum, T>(),
          kernel<ReduceOp::maximum, T>(), kernel<ReduceOp::sum, T>(),
          kernel<ReduceOp::product, T>()};
}

struct TypeRow {
  std::size_t size_bytes;
  std::array<ReduceKernel, n_ops> by_op;
};

template <class T>
constexpr TypeRow row() {
  return {sizeof(T), kernels<T>()};
}

/// Types in ElementType's order.
constexpr std::array<TypeRow, 13> table = {row<std::int8_t>(),
                                           row<std::int16_t>(),
                                           row<std::int32_t>(),
                                           row<std::int64_t>(),
                                           row<std::uint8_t>(),
                                           row<std::uint16_t>(),
                                           row<std::uint32_t>(),
                                           row<std::uint64_t>(),
                                           row<float>(),
                                           row<double>(),
                                           row<long double>(),
                                           row<std::complex<float>>(),
                                           row<std::complex<double>>()};

const TypeRow& row_of(ElementType type) {
  return table[static_cast<std::size_t>(type)];
}

} // namespace

std::size_t element_bytes(ElementType type) {
  return row_of(type).size_bytes;
}

ReduceKernel reduce_kernel(ElementType type, ReduceOp op) {
  return row_of(type).by_op[static_cast<std::size_t>(op)];
}

} // namespace shmemctl
