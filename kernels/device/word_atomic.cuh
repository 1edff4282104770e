// A single atomic on GPU memory on behalf of the host.
#pragma once

#include "kernels/device/atomics.cuh"

namespace shmemctl::device {

/// Called by one thread, in stream order: an observer that acquires at the word sees what the
/// stream did before. Returns the old value, which the caller stores for the host; the host sees it
/// when the kernel has ended.
__device__ inline std::uint64_t word_atomic(void* word, AtomicOp op, unsigned size_bytes,
                                            std::uint64_t operand, std::uint64_t compare) {
  fence_system(); // the word may be the signal of a put's data
  if (size_bytes == 4)
    return detail::apply_atomic(static_cast<std::uint32_t*>(word), op,
                                static_cast<std::uint32_t>(operand),
                                static_cast<std::uint32_t>(compare));
  return detail::apply_atomic(static_cast<std::uint64_t*>(word), op, operand, compare);
}

} // namespace shmemctl::device
