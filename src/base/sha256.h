// SHA-256, and what is made of it: keyed hashes and keys from passwords.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace shmemctl {

using Sha256Digest = std::array<std::uint8_t, 32>;

/// FIPS 180-4.
Sha256Digest sha256(std::string_view text);
/// RFC 2104.
Sha256Digest hmac_sha256(std::string_view key, std::string_view text);
/// The first 32 bytes of PBKDF2 with HMAC-SHA-256 (RFC 8018).
/// @param rounds how often a guess of the password has to be hashed; at least 1
Sha256Digest pbkdf2_sha256(std::string_view password, std::string_view salt, std::uint32_t rounds);

} // namespace shmemctl
