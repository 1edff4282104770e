// Encoding of a region's key: pieces of memory, each with the key that UCX packed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shmemctl {

/// A part of a region that one ucp_mem_map() registered.
struct UcxPiece {
  std::uint64_t offset_bytes = 0, size_bytes = 0;
  std::uint64_t address = 0; ///< address of its first byte in its owner's process
  std::string packed;        ///< result of ucp_rkey_pack()
  bool operator==(const UcxPiece&) const = default;
};

/// Maximum number of pieces of a region; they are contiguous from offset 0.
inline constexpr std::size_t max_ucx_pieces = 16;

std::string to_key(const std::vector<UcxPiece>& pieces);

/// Decodes a key. Throws Error (usage) if to_key() cannot have written it.
std::vector<UcxPiece> parse_key(std::string_view key);

} // namespace shmemctl
