// Splits payloads of any length into chunks that fit buffers of limited length.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace shmemctl {

/// Calls `chunk(offset, bytes)` for consecutive chunks of at most `chunk_bytes`. If `total_bytes`
/// is 0, calls it once with 0 bytes, so that all PEs still take part in a collective.
template <class Piece>
void for_each_chunk(std::size_t total_bytes, std::size_t chunk_bytes, const Piece& chunk) {
  std::size_t offset = 0;
  do {
    const std::size_t bytes = std::min(chunk_bytes, total_bytes - offset);
    chunk(offset, bytes);
    offset += bytes;
  } while (offset < total_bytes);
}

/// memcpy that allows null pointers if `bytes` is 0.
inline void copy_bytes(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0)
    std::memcpy(to, from, bytes);
}

/// Copies `count` blocks of `bytes` each, which are `from_stride` and `to_stride` bytes apart.
inline void copy_blocks(void* to, std::size_t to_stride, const void* from, std::size_t from_stride,
                        std::size_t bytes, std::size_t count) {
  for (std::size_t block = 0; block < count && bytes > 0; ++block)
    std::memcpy(static_cast<std::byte*>(to) + block * to_stride,
                static_cast<const std::byte*>(from) + block * from_stride, bytes);
}

} // namespace shmemctl
