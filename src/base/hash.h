// Hash functions: FNV-1a and SHA-256.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace shmemctl {

inline constexpr std::uint64_t fnv1a_start = 0xcbf29ce484222325U;

/// @param start the hash so far, to continue it; or another start value for an independent hash
constexpr std::uint64_t fnv1a(std::string_view bytes, std::uint64_t start = fnv1a_start) {
  std::uint64_t hash = start;
  for (const char byte : bytes) {
    hash ^= static_cast<unsigned char>(byte);
    hash *= 0x100000001b3U;
  }
  return hash;
}

using Sha256Digest = std::array<std::uint8_t, 32>;

/// FIPS 180-4.
Sha256Digest sha256(std::string_view text);
/// RFC 2104.
Sha256Digest hmac_sha256(std::string_view key, std::string_view text);
/// The first 32 bytes of PBKDF2 with HMAC-SHA-256 (RFC 8018).
/// @param rounds number of iterations, at least 1; the cost of each guess of the password
Sha256Digest pbkdf2_sha256(std::string_view password, std::string_view salt, std::uint32_t rounds);

} // namespace shmemctl
