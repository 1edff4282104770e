// One atomic operation for the host, on a word of GPU memory.
#pragma once

#include "kernels/device/atomics.cuh"

namespace shmemctl::device {

/// By one thread, in a stream: who acquires at the word behind it sees what the stream did before.
/// The old value is the caller's to hand on; the end of its kernel brings it to the host.
__device__ inline std::uint64_t word_atomic(void* word, AtomicOp op, unsigned size_bytes,
                                            std::uint64_t operand, std::uint64_t compare) {
#ifndef SHMEMCTL_MUTATE_WORD_ATOMIC
  fence_system(); // a put's data, which this word may be the signal of
#endif
  if (size_bytes == 4)
    return detail::apply_atomic(static_cast<std::uint32_t*>(word), op,
                                static_cast<std::uint32_t>(operand),
                                static_cast<std::uint32_t>(compare));
  return detail::apply_atomic(static_cast<std::uint64_t*>(word), op, operand, compare);
}

} // namespace shmemctl::device
