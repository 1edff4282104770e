#include "src/bootstrap/base64.h"

#include <array>
#include <cstdint>

namespace shmemctl {

namespace {

constexpr std::string_view alphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint8_t no_digit = 0xFF;

constexpr std::array<std::uint8_t, 256> digits = [] {
  std::array<std::uint8_t, 256> table{};
  table.fill(no_digit);
  for (std::size_t at = 0; at < alphabet.size(); ++at)
    table[static_cast<std::uint8_t>(alphabet[at])] = static_cast<std::uint8_t>(at);
  return table;
}();

} // namespace

std::string base64(const void* data, std::size_t size_bytes) {
  const auto* bytes = static_cast<const std::uint8_t*>(data);
  std::string text;
  text.reserve(base64_length(size_bytes));
  std::uint32_t bits = 0;
  int count = 0;
  for (std::size_t at = 0; at < size_bytes; ++at) {
    bits = bits << 8 | bytes[at];
    for (count += 8; count >= 6; count -= 6)
      text += alphabet[bits >> (count - 6) & 63];
  }
  if (count > 0)
    text += alphabet[bits << (6 - count) & 63];
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 == 1)
    return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3 + 2);
  std::uint32_t bits = 0;
  int count = 0;
  for (const char letter : text) {
    const std::uint8_t digit = digits[static_cast<std::uint8_t>(letter)];
    if (digit == no_digit)
      return std::nullopt;
    bits = bits << 6 | digit;
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes += static_cast<char>(bits >> count & 255);
    }
  }
  const bool left_over = (bits & ((1U << count) - 1)) != 0;
  return left_over ? std::nullopt : std::optional(bytes);
}

} // namespace shmemctl
