// Encoding of the data that peers need to access a PE's memory. For any bytes that a peer sends,
// decoding gives a value within the limits, or nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/base/archive.h"

namespace shmemctl::rc {

/// The remote address of a work request.
struct RdmaAddress {
  std::uint64_t address = 0;
  std::uint32_t rkey = 0;
};

/// Memory that a PE has registered: a part of a region.
struct SegmentKey {
  std::uint64_t offset_bytes = 0;  ///< in the region
  std::uint64_t size_bytes = 0;    ///< 0 if nothing new was registered
  std::uint64_t address = 0;       ///< address of the segment's first byte at that PE
  std::vector<std::uint32_t> keys; ///< rkeys, by port of that PE
  std::string below = {};          ///< key of the transport below; "" if there is none
  bool operator==(const SegmentKey&) const = default;

  bool holds(std::uint64_t offset) const {
    return offset >= offset_bytes && offset - offset_bytes < size_bytes;
  }
  /// Bytes from an offset in the segment to the segment's end.
  std::uint64_t left_at(std::uint64_t offset) const { return offset_bytes + size_bytes - offset; }
  RdmaAddress at(std::uint64_t offset, std::size_t peer_port) const {
    return {address + (offset - offset_bytes), keys[peer_port]};
  }
};

inline constexpr std::size_t max_below_bytes = 4096; ///< limit of SegmentKey::below

inline void serialize(Archive& archive, SegmentKey& key) {
  archive(key.offset_bytes, key.size_bytes, key.address, key.keys);
  archive.text(key.below, max_below_bytes);
  archive.require(key.offset_bytes + key.size_bytes >= key.size_bytes &&
                  key.address + key.size_bytes >= key.size_bytes);
}

} // namespace shmemctl::rc
