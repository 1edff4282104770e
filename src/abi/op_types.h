// Operation types of one-sided communication, used on the host, in kernels and on streams.
#pragma once

#include <cstdint>

#include "src/base/host_device.h"

namespace shmemctl {

/// An atomic operation on a 32- or 64-bit word.
enum class AtomicOp : std::uint8_t {
  fetch,
  set,
  swap,
  compare_swap,
  add,
  bit_and,
  bit_or,
  bit_xor
};

/// How a signal is updated.
enum class SignalOp : std::uint8_t { set, add };

/// Comparison of a wait or test (SHMEM_CMP_EQ, ...).
enum class Compare : std::uint8_t { equal, not_equal, greater, greater_equal, less, less_equal };

template <class Word>
SHMEMCTL_HOST_DEVICE SHMEMCTL_ALWAYS_INLINE constexpr bool compares(Compare compare, Word left,
                                                                    Word right) {
  switch (compare) {
  case Compare::equal:
    return left == right;
  case Compare::not_equal:
    return left != right;
  case Compare::greater:
    return left > right;
  case Compare::greater_equal:
    return left >= right;
  case Compare::less:
    return left < right;
  case Compare::less_equal:
    return left <= right;
  }
  return false;
}

} // namespace shmemctl

namespace shmemctl::device {

using shmemctl::Compare;
using shmemctl::SignalOp;

/// Sums and products of integers wrap around. The last three operations are for integers only.
enum class ReduceOp : std::uint8_t { sum, min, max, prod, bit_and, bit_or, bit_xor };
SHMEMCTL_HOST_DEVICE constexpr bool is_bitwise(ReduceOp op) {
  return op == ReduceOp::bit_and || op == ReduceOp::bit_or || op == ReduceOp::bit_xor;
}

} // namespace shmemctl::device
