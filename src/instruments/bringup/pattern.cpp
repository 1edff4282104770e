#include "src/instruments/bringup/pattern.h"

#include <algorithm>
#include <cstring>

namespace shmemctl {

namespace {

constexpr std::uint64_t golden = 0x9E3779B97F4A7C15U;

/// The output function of splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
/// generators, 2014).
std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9U;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBU;
  return value ^ (value >> 31);
}

std::uint64_t seed_of(const PatternKey& key) {
  std::uint64_t seed = golden;
  for (const std::uint64_t part :
       {static_cast<std::uint64_t>(key.source), static_cast<std::uint64_t>(key.target),
        static_cast<std::uint64_t>(key.transport), static_cast<std::uint64_t>(key.operation),
        key.size_bytes})
    seed = mixed(seed + golden + part);
  return seed;
}

std::uint64_t word_at(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t word = mixed(seed + (index + 1) * golden);
  if (index == 0) {
    std::byte first{};
    std::memcpy(&first, &word, 1);
    if (first == sentinel) {
      first = ~first;
      std::memcpy(&word, &first, 1);
    }
  }
  return word;
}

} // namespace

std::uint64_t pattern_word(const PatternKey& key, std::uint64_t index) {
  return word_at(seed_of(key), index);
}

void fill_pattern(const PatternKey& key, std::byte* to, std::size_t size_bytes) {
  const std::uint64_t seed = seed_of(key);
  for (std::size_t at = 0; at < size_bytes; at += 8) {
    const std::uint64_t word = word_at(seed, at / 8);
    std::memcpy(to + at, &word, std::min<std::size_t>(8, size_bytes - at));
  }
}

std::byte pattern_byte(const PatternKey& key, std::size_t offset_bytes) {
  const std::uint64_t word = pattern_word(key, offset_bytes / 8);
  std::byte bytes[8];
  std::memcpy(bytes, &word, 8);
  return bytes[offset_bytes % 8];
}

std::optional<std::size_t> pattern_difference(const PatternKey& key, const std::byte* found,
                                              std::size_t size_bytes) {
  const std::uint64_t seed = seed_of(key);
  for (std::size_t at = 0; at < size_bytes; at += 8) {
    const std::uint64_t word = word_at(seed, at / 8);
    const std::size_t length = std::min<std::size_t>(8, size_bytes - at);
    if (std::memcmp(found + at, &word, length) == 0)
      continue;
    std::byte expected[8];
    std::memcpy(expected, &word, 8);
    for (std::size_t i = 0; i < length; ++i)
      if (found[at + i] != expected[i])
        return at + i;
  }
  return std::nullopt;
}

std::optional<std::size_t> sentinel_difference(const std::byte* found, std::size_t size_bytes) {
  std::size_t at = 0;
  for (; at + 8 <= size_bytes; at += 8)
    if (std::memcmp(found + at, &sentinel_word, 8) != 0)
      break;
  for (; at < size_bytes; ++at)
    if (found[at] != sentinel)
      return at;
  return std::nullopt;
}

} // namespace shmemctl
