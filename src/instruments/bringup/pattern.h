// Byte patterns that differ between all transfers of the pair check.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace shmemctl {

/// What a pattern depends on, in addition to the offset.
struct PatternKey {
  int source = 0, target = 0;
  int transport = 0;
  int operation = 0;
  std::uint64_t size_bytes = 0;
};

/// The content of memory that nothing was written to. No pattern begins with this byte.
inline constexpr std::byte sentinel{0xA5};
inline constexpr std::uint64_t sentinel_word = 0xA5A5A5A5A5A5A5A5U;

/// Word `index` of a pattern: a counter-based hash (splitmix64), so that any word can be computed
/// directly.
std::uint64_t pattern_word(const PatternKey& key, std::uint64_t index);
void fill_pattern(const PatternKey& key, std::byte* to, std::size_t size_bytes);
std::byte pattern_byte(const PatternKey& key, std::size_t offset_bytes);
/// Offset of the first byte that differs from the pattern; nothing if none does.
std::optional<std::size_t> pattern_difference(const PatternKey& key, const std::byte* found,
                                              std::size_t size_bytes);
/// Offset of the first byte that is not the sentinel; nothing if all are.
std::optional<std::size_t> sentinel_difference(const std::byte* found, std::size_t size_bytes);

} // namespace shmemctl
