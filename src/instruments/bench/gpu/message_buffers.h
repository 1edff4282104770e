// Memory of kernels' cases in which PEs send each other one message at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "src/instruments/bench/case.h"
#include "src/instruments/bench/cases/pattern.h"

namespace shmemctl::bench {

/// The layout of such a case's memory: the source, a slot for the message that arrives, and its
/// flag. If data and flag are one store (messages of 8 bytes), the flag follows the data directly.
struct MessageBuffers {
  explicit MessageBuffers(std::size_t size) : size_bytes(size) {}
  std::size_t size_bytes;
  static constexpr std::size_t flag_line_bytes = 64;

  bool side_by_side() const { return size_bytes == 8; }
  std::size_t slot_offset_bytes() const { return source_bytes(size_bytes); }
  std::size_t flag_offset_bytes() const {
    return slot_offset_bytes() + (side_by_side() ? 8 : (size_bytes + 63) / 64 * 64);
  }
  std::size_t total_bytes() const { return flag_offset_bytes() + flag_line_bytes; }
};

/// Compares a slot and its flag with what `messages` messages must leave there.
inline std::optional<WrongByte> verify_message(const std::vector<std::byte>& seen,
                                               const MessageBuffers& places, int pe, int writer,
                                               std::uint64_t seed, std::uint64_t messages,
                                               std::uint64_t flag_value, bool has_payload) {
  const std::size_t slot = places.slot_offset_bytes(), flag = places.flag_offset_bytes();
  std::uint64_t found = 0;
  std::memcpy(&found, seen.data() + flag - slot, sizeof found);
  if (found != flag_value)
    return WrongByte{pe, flag, flag_value, found,
                     "flag of the messages from PE " + std::to_string(writer)};
  if (!has_payload || messages == 0)
    return std::nullopt;
  const std::uint64_t last = messages - 1;
  auto difference = compare_pattern(seen.data(), places.size_bytes, seed, writer,
                                    last % variants * variant_step_bytes);
  if (!difference) {
    difference = compare_zero(seen.data() + places.size_bytes, flag - slot - places.size_bytes);
    if (difference)
      difference->offset_bytes += places.size_bytes;
  }
  if (!difference)
    return std::nullopt;
  return WrongByte{pe, slot + difference->offset_bytes, difference->expected, difference->found,
                   "payload of iteration " + std::to_string(last) + " from PE " +
                       std::to_string(writer)};
}

} // namespace shmemctl::bench
