// The operands of measured atomics and the values that they leave, as functions of the operation's
// number. For host and device.
#pragma once

#include <cstdint>

#include "src/base/host_device.h"

namespace shmemctl::bench {

enum class AtomicKernel : std::int32_t { fetch, set, swap, compare_swap, fetch_add, add };

/// The value of the word after `count` operations; a 32-bit word has the low half of it. Fetches
/// leave the word at zero.
SHMEMCTL_HOST_DEVICE inline std::uint64_t atomic_after(AtomicKernel kernel, std::uint64_t count) {
  constexpr std::uint64_t step = 0x100000001b3ULL;
  switch (kernel) {
  case AtomicKernel::fetch:
    return 0;
  case AtomicKernel::set:
  case AtomicKernel::swap:
  case AtomicKernel::compare_swap: // values that differ from one operation to the next
    return count * 0x9e3779b97f4a7c15ULL;
  case AtomicKernel::fetch_add:
  case AtomicKernel::add:
    return count * step;
  }
  return 0;
}
/// What operation number `number` adds or stores. A compare-swap expects the value that the
/// previous operation left.
SHMEMCTL_HOST_DEVICE inline std::uint64_t atomic_operand(AtomicKernel kernel,
                                                         std::uint64_t number) {
  const bool adds = kernel == AtomicKernel::fetch_add || kernel == AtomicKernel::add;
  return adds ? atomic_after(kernel, 1) : atomic_after(kernel, number + 1);
}
/// Whether the operation returns the old value of the word.
SHMEMCTL_HOST_DEVICE inline bool atomic_fetches(AtomicKernel kernel) {
  return kernel != AtomicKernel::set && kernel != AtomicKernel::add;
}

} // namespace shmemctl::bench
