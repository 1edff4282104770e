// The key of a region: pieces of memory, each with the key that UCX packed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shmemctl {

/// A part of a region that one ucp_mem_map() registered.
struct UcxPiece {
  std::uint64_t offset_bytes = 0, size_bytes = 0;
  std::uint64_t address = 0; ///< address of its first byte, in the process that owns it
  std::string packed;        ///< result of ucp_rkey_pack()
  bool operator==(const UcxPiece&) const = default;
};

/// At most 16 pieces, contiguous from offset 0.
inline constexpr std::size_t max_ucx_pieces = 16;

std::string to_key(const std::vector<UcxPiece>& pieces);

/// Throws Error (usage) for anything that to_key() cannot have written.
std::vector<UcxPiece> parse_key(std::string_view key);

} // namespace shmemctl
