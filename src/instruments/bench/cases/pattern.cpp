#include "src/instruments/bench/cases/pattern.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace shmemctl::bench {

namespace {

std::optional<Difference> compare_bytes(const std::byte* data, const std::byte* expected,
                                        std::size_t size_bytes) {
  if (std::memcmp(data, expected, size_bytes) == 0)
    return std::nullopt;
  const auto [found, wanted] = std::mismatch(data, data + size_bytes, expected);
  return Difference{static_cast<std::size_t>(found - data), std::to_integer<std::uint8_t>(*wanted),
                    std::to_integer<std::uint8_t>(*found)};
}

} // namespace

void fill_pattern(std::byte* area, std::size_t size_bytes, std::uint64_t seed, int pe) {
  for (std::size_t at = 0; at < size_bytes; at += sizeof(std::uint64_t)) {
    const std::uint64_t word = pattern_word(seed, pe, at / sizeof word);
    std::memcpy(area + at, &word, sizeof word);
  }
}

std::optional<Difference> compare_pattern(const std::byte* data, std::size_t size_bytes,
                                          std::uint64_t seed, int pe, std::size_t from) {
  constexpr std::size_t word_bytes = sizeof(std::uint64_t);
  std::array<std::uint64_t, 512> words;
  for (std::size_t done = 0; done < size_bytes;) {
    const std::size_t at = from + done, skip = at % word_bytes;
    const std::size_t length = std::min(size_bytes - done, sizeof words - skip);
    for (std::size_t i = 0; i < (skip + length + word_bytes - 1) / word_bytes; ++i)
      words[i] = pattern_word(seed, pe, at / word_bytes + i);
    const auto* expected = reinterpret_cast<const std::byte*>(words.data()) + skip;
    if (auto difference = compare_bytes(data + done, expected, length)) {
      difference->offset_bytes += done;
      return difference;
    }
    done += length;
  }
  return std::nullopt;
}

std::optional<Difference> compare_zero(const std::byte* data, std::size_t size_bytes) {
  const auto* found =
      std::find_if(data, data + size_bytes, [](std::byte byte) { return byte != std::byte{0}; });
  if (found == data + size_bytes)
    return std::nullopt;
  return Difference{static_cast<std::size_t>(found - data), 0,
                    std::to_integer<std::uint8_t>(*found)};
}

} // namespace shmemctl::bench
