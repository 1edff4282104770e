// Bytes as text, for places that only take printable characters.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace shmemctl {

/// RFC 4648 section 4, without padding: letters, digits, '+' and '/'.
std::string base64(const void* data, std::size_t size_bytes);
/// The bytes; nothing if `text` is not what base64() writes for some bytes.
std::optional<std::string> from_base64(std::string_view text);
/// Characters that base64() writes for so many bytes.
constexpr std::size_t base64_length(std::size_t size_bytes) {
  return size_bytes / 3 * 4 + (size_bytes % 3 == 0 ? 0 : size_bytes % 3 + 1);
}

} // namespace shmemctl
