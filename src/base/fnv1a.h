// FNV-1a, the 64-bit hash of texts that need no secret: the same on all machines.
#pragma once

#include <cstdint>
#include <string_view>

namespace shmemctl {

inline constexpr std::uint64_t fnv1a_start = 0xcbf29ce484222325U;

/// @param start the hash so far, to go on with; or another start for an independent hash
constexpr std::uint64_t fnv1a(std::string_view bytes, std::uint64_t start = fnv1a_start) {
  std::uint64_t hash = start;
  for (const char byte : bytes) {
    hash ^= static_cast<unsigned char>(byte);
    hash *= 0x100000001b3U;
  }
  return hash;
}

} // namespace shmemctl
