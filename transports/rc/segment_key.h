// Encoding of what a PE's peers need to access its memory. Whatever a peer sends, decoding gives a
// value within the limits, or nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shmemctl::rc {

/// Memory that a PE has registered: a part of a region.
struct SegmentKey {
  std::uint64_t offset_bytes = 0;  ///< in the region
  std::uint64_t size_bytes = 0;    ///< 0: there is nothing new
  std::uint64_t address = 0;       ///< there, of the segment's first byte
  std::vector<std::uint32_t> keys; ///< rkeys, by port of that PE
  std::string below = {};          ///< the key of a transport below; "" if there is none
  bool operator==(const SegmentKey&) const = default;
};

inline constexpr std::size_t max_below_bytes = 4096; ///< of SegmentKey::below

std::string encode(const SegmentKey& key);
/// @param max_keys ports that a PE has at most
std::optional<SegmentKey> decode_segment_key(const std::string& bytes, std::size_t max_keys);

} // namespace shmemctl::rc
