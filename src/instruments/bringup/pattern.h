// Bytes that can be told from each other: every transfer of the pair check has its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace shmemctl {

/// What a pattern depends on, besides the offset.
struct PatternKey {
  int source = 0, target = 0;
  int transport = 0;
  int operation = 0;
  std::uint64_t size_bytes = 0;
};

/// What untouched memory holds. A pattern's first byte is never this.
inline constexpr std::byte sentinel{0xA5};
inline constexpr std::uint64_t sentinel_word = 0xA5A5A5A5A5A5A5A5U;

/// Word `index` of a counter-based hash (splitmix64): any word can be had without those before it.
std::uint64_t pattern_word(const PatternKey& key, std::uint64_t index);
void fill_pattern(const PatternKey& key, std::byte* to, std::size_t size_bytes);
std::byte pattern_byte(const PatternKey& key, std::size_t offset_bytes);
/// Offset of the first byte that is not the pattern's; nothing if all are.
std::optional<std::size_t> pattern_difference(const PatternKey& key, const std::byte* found,
                                              std::size_t size_bytes);
/// Offset of the first byte that is not the sentinel.
std::optional<std::size_t> sentinel_difference(const std::byte* found, std::size_t size_bytes);

} // namespace shmemctl
