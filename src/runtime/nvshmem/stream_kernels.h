// Operations on streams that are not in on_stream.h, because only NVSHMEM's interface needs them.
// Like those, they run in stream order, may be captured in a CUDA graph, and throw Error if CUDA
// refuses a launch.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/on_stream.h"

namespace shmemctl::nvshmem {

/// Stores one value of 1, 2, 4 or 8 bytes in PE `pe`'s copy of `target`.
/// @param bits the value's bytes, the first one in the lowest byte
void put_value(const on_stream::Job& job, void* target, std::uint64_t bits, std::size_t size_bytes,
               int pe, on_stream::Stream stream);

/// Elements of 1, 2, 4, 8 or 16 bytes; strides in elements.
struct Strided {
  void* target;
  const void* source;
  std::ptrdiff_t target_stride, source_stride;
  std::size_t count, element_bytes;
};
void iput(const on_stream::Job& job, const Strided& elements, int pe, on_stream::Stream stream);
void iget(const on_stream::Job& job, const Strided& elements, int pe, on_stream::Stream stream);

enum class WordType : std::uint8_t { int16, int32, int64, uint16, uint32, uint64 };
/// Words of this PE; `status` and `values` are in memory that the device can read.
struct WordsToAwait {
  WordType type;
  const void* at;
  std::size_t count;
  const int* status; ///< words with a nonzero status are skipped; nullptr: none are
  Compare compare;
  std::uint64_t value;
  const void* values; ///< one for each word; nullptr: `value` for all words
};
/// Later work of the stream waits until all comparisons hold. If they do not within job.timeout_ns,
/// the kernel reports a timeout and the stream continues.
void wait_until_all(const on_stream::Job& job, const WordsToAwait& words, on_stream::Stream stream);

} // namespace shmemctl::nvshmem
