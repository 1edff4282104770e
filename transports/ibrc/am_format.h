// Atomics by active message: format of requests, their execution at the target, and the layout of
// replies. Peers' data is not trusted.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "src/base/archive.h"
#include "transports/region_table.h"
#include "transports/transport.h"

namespace shmemctl::ibrc {

/// An atomic operation on the target's memory.
struct AtomicMessage {
  static constexpr std::size_t size_bytes = 32; ///< on the wire
  using Bytes = std::array<std::byte, size_bytes>;

  AtomicRequest request;
  std::uint32_t region = 0;
  std::uint64_t offset_bytes = 0;
  bool wants_value = false; ///< whether the old value is returned; otherwise only the completion
};
AtomicMessage::Bytes encode(const AtomicMessage& message);
/// Nothing if these bytes are not one.
std::optional<AtomicMessage> decode_atomic_message(const void* bytes, std::size_t size_bytes);

/// Why a target did not carry a message out.
enum class Refusal : std::uint8_t {
  none,
  malformed,  ///< the bytes are not a message
  outside,    ///< the address is in none of the target's regions
  misaligned, ///< the address is misaligned
  too_many    ///< more than may be in flight
};
/// "no multiple of the word's size"; "it says no reason" for what is none of them.
const char* to_string(Refusal refusal);

/// What became of a message.
struct Outcome {
  std::uint64_t value = 0; ///< the old value, if it was wanted
  Refusal refusal = Refusal::none;
  bool wants_value = false;
};
/// Executes a message with CPU atomics (execute_atomic()): sequentially consistent, after what the
/// same QP has written before. Never accesses memory outside of the regions, whatever the bytes
/// are.
Outcome carry_out(const RegionTable& regions, const void* bytes, std::size_t size_bytes);

/// How many requests of one QP set may be in flight to a PE. Each of `n_pes` PEs has `qp_sets` QP
/// sets, and all together must not send more than the target has posted receives: n_pes * qp_sets *
/// credits <= receives. 0: it has too few.
std::uint32_t credits_of(std::uint64_t receives, int n_pes, int qp_sets);

/// Memory of a requester for one QP set and one target, with slots for its requests by number
/// modulo credits. The target writes the first part; the second is the requester's own.
struct ReplyBlock {
  std::uint32_t credits = 0;

  /// How many requests are done, from the first on: 8 bytes.
  static constexpr std::size_t done_at = 0;
  /// The first that was refused and why; 0 if none was: 8 bytes.
  static constexpr std::size_t refused_at = 8;
  std::size_t value_at(std::uint64_t number) const { return 16 + number % credits * 8; }
  std::size_t request_at(std::uint64_t number) const {
    return 16 + std::size_t{credits} * 8 + number % credits * AtomicMessage::size_bytes;
  }
  std::size_t size_bytes() const {
    return 16 + std::size_t{credits} * (8 + AtomicMessage::size_bytes);
  }
};

/// The word at refused_at.
constexpr std::uint64_t refused_word(std::uint64_t number, Refusal refusal) {
  return number << 8 | static_cast<std::uint64_t>(refusal);
}

/// Where a target writes its replies to one PE.
struct ReplyAddress {
  std::uint32_t credits = 0;       ///< credits as the requester counts them
  std::uint64_t address = 0;       ///< address of QP set 0's block; the others follow
  std::vector<std::uint32_t> keys; ///< by NIC of the requester
  bool operator==(const ReplyAddress&) const = default;
};
void serialize(Archive& archive, ReplyAddress& place);

} // namespace shmemctl::ibrc
