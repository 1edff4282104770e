// Characters that a terminal does not show but acts on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace shmemctl {

/// The character that the valid UTF-8 sequence of `length` bytes at `at` stands for.
constexpr std::uint32_t utf8_character(std::string_view text, std::size_t at, std::size_t length) {
  const auto byte = [text](std::size_t i) {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i]));
  };
  if (length == 1)
    return byte(at);
  std::uint32_t character = byte(at) & (0xffu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i)
    character = character << 6 | (byte(at + i) & 0x3f);
  return character;
}

/// Controls (U+009B begins an escape sequence on some terminals), marks that change the direction
/// of writing, line separators, the byte order mark.
constexpr bool is_hostile(std::uint32_t character) {
  return character < 0x20 || (character >= 0x7f && character <= 0x9f) || character == 0x61c ||
         character == 0x200e || character == 0x200f ||
         (character >= 0x2028 && character <= 0x202e) ||
         (character >= 0x2066 && character <= 0x2069) || character == 0xfeff;
}

} // namespace shmemctl
