// The atomic operations that transports have. For host and device.
#pragma once

#include <cstdint>

namespace shmemctl {

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

} // namespace shmemctl
