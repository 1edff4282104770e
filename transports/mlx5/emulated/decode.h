// Decodes a WQE's bytes as the device does. The bytes may be invalid.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "src/abi/wqe.h"
#include "transports/mlx5/emulated/outcome.h"

namespace shmemctl::mlx5 {

/// A piece of a WQE's data: local memory with its key, or inline data.
struct WqePiece {
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
  std::uint32_t lkey = 0;
  const std::byte* in_entry = nullptr; ///< inline data in the WQE; else nullptr
};

/// The first word of a WQE.
struct WqeStart {
  std::uint8_t opcode;
  std::uint8_t modifier;
  std::uint16_t index;
  std::uint32_t qpn;
  std::uint32_t ds_count; ///< size of the WQE in data segments of 16 bytes, 0 to 63
};
WqeStart decode_start(std::uint64_t first_word);

struct DecodedWqe {
  static constexpr std::size_t max_pieces = max_ds_count - 2;

  Opcode opcode = Opcode::nop;
  std::uint8_t flags = 0;
  RaddrSegment remote{};
  AtomicFields atomic{};
  std::uint64_t size_bytes = 0; ///< total size of the pieces
  std::size_t n_pieces = 0;
  std::array<WqePiece, max_pieces> pieces;
};

/// Decodes the WQE in `words`: two words for each DS that its control segment counts, which is at
/// least one. Inline pieces point into `words`. Never reads outside of `words`, whatever the bytes
/// are.
Outcome decode_wqe(std::span<const std::uint64_t> words, DecodedWqe& wqe);

} // namespace shmemctl::mlx5
