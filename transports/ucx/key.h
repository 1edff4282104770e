// What a PE tells its peers of a region's memory: pieces, each with the key that UCX packed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shmemctl {

/// A part of a region that was registered at once.
struct UcxPiece {
  std::uint64_t offset_bytes = 0, size_bytes = 0;
  std::uint64_t address = 0; ///< of its first byte, in the process that owns it
  std::string packed;        ///< what ucp_rkey_pack() gave
  bool operator==(const UcxPiece&) const = default;
};

/// At most 16 pieces, which lie one behind the other from offset 0 on.
inline constexpr std::size_t max_ucx_pieces = 16;

std::string to_key(const std::vector<UcxPiece>& pieces);

/// Throws Error (usage) for anything that to_key() cannot have written.
std::vector<UcxPiece> parse_key(std::string_view key);

} // namespace shmemctl
