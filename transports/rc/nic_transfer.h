// A put or get that is striped over NICs in pieces. Shared by the transports that post to QPs.
#pragma once

#include <algorithm>
#include <cstddef>

#include "src/base/round_up.h"
#include "transports/transport.h"

namespace shmemctl::rc {

/// A transfer, or the part of it that one NIC carries.
struct NicTransfer {
  enum class Direction { put, get };
  /// Up to here a blocking put copies the data and returns; beyond, waiting costs less than
  /// copying.
  static constexpr std::size_t copied_bytes = 8192;

  Direction direction = Direction::put;
  RemoteAddress remote;
  std::byte* local = nullptr; ///< only read from if it is a put's
  std::size_t size_bytes = 0;
  bool stage = false; ///< copy at once: the caller wants its memory back
  bool await = false; ///< will be waited for

  /// @param of_gpu whether CPUs must not access `source`
  static NicTransfer put(const RemoteAddress& target, const void* source, std::size_t size_bytes,
                         bool blocking, bool of_gpu) {
    const bool stage = blocking && size_bytes <= copied_bytes && !of_gpu;
    return {Direction::put, target, static_cast<std::byte*>(const_cast<void*>(source)),
            size_bytes,     stage,  blocking && !stage};
  }
  static NicTransfer get(void* target, const RemoteAddress& source, std::size_t size_bytes,
                         bool blocking) {
    return {Direction::get, source, static_cast<std::byte*>(target), size_bytes, false, blocking};
  }

  /// From `offset_bytes` of this one on.
  NicTransfer part(std::size_t offset_bytes, std::size_t part_bytes) const {
    NicTransfer part = *this;
    part.remote.offset_bytes += offset_bytes;
    part.local += offset_bytes;
    part.size_bytes = part_bytes;
    return part;
  }
};

/// From here on a transfer uses all NICs: then each part is still long enough for its own message.
inline constexpr std::size_t striped_bytes = 32768;

/// Calls each(path, part) for the paths that carry a part of `whole`, in order.
template <class Each>
void for_each_stripe(const NicTransfer& whole, std::size_t paths, Each&& each) {
  constexpr std::size_t granularity_bytes = 4096;
  const std::size_t share_bytes =
      round_up((whole.size_bytes + paths - 1) / paths, granularity_bytes);
  std::size_t done = 0;
  for (std::size_t path = 0; path < paths && done < whole.size_bytes; ++path) {
    const NicTransfer part = whole.part(done, std::min(share_bytes, whole.size_bytes - done));
    done += part.size_bytes;
    each(path, part);
  }
}

} // namespace shmemctl::rc
