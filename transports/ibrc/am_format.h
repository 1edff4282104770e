// Atomics by active message: the format of requests, their execution at the target, and the layout
// of replies. Data from peers are not trusted.
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
/// Returns nothing if the bytes are not a valid message.
std::optional<AtomicMessage> decode_atomic_message(const void* bytes, std::size_t size_bytes);

/// Why a target did not execute a message.
enum class Refusal : std::uint8_t {
  none,
  malformed,  ///< the bytes are not a message
  outside,    ///< the word is not within the target's region
  misaligned, ///< the address is not a multiple of the word's size
  too_many    ///< more messages are in flight than allowed
};
/// A clause that follows "that PE refused: "; "it says no reason" for an unknown value.
const char* to_string(Refusal refusal);

/// The result of a message.
struct Outcome {
  std::uint64_t value = 0; ///< the old value
  Refusal refusal = Refusal::none;
  bool wants_value = false;
};
/// Executes a message with CPU atomics (execute_atomic()), sequentially consistent, after earlier
/// WRITEs of the same QP. Never accesses memory outside of the regions, whatever the bytes are.
Outcome carry_out(const RegionTable& regions, const void* bytes, std::size_t size_bytes);

/// The credits: how many requests of one QP set may be in flight to one target. Each of `n_pes` PEs
/// has `qp_sets` QP sets, and all of them together must not send more messages than the target has
/// posted receives: n_pes * qp_sets * credits <= receives. 0 if the target has too few receives.
std::uint32_t credits_of(std::uint64_t receives, int n_pes, int qp_sets);

/// Layout of a requester's memory for one QP set and one target. Slots are indexed by the request's
/// number modulo credits. The target writes the two words and the values; the requester writes the
/// requests behind them.
struct ReplyBlock {
  std::uint32_t credits = 0;

  /// Offset of an 8-byte counter: how many requests are done. They are executed in order.
  static constexpr std::size_t done_at = 0;
  /// Offset of an 8-byte word: the refused_word() of the first refused request, 0 if there is none.
  static constexpr std::size_t refused_at = 8;
  std::size_t value_at(std::uint64_t number) const { return 16 + number % credits * 8; }
  std::size_t request_at(std::uint64_t number) const {
    return 16 + std::size_t{credits} * 8 + number % credits * AtomicMessage::size_bytes;
  }
  std::size_t size_bytes() const {
    return 16 + std::size_t{credits} * (8 + AtomicMessage::size_bytes);
  }
};

/// The word at refused_at: the request's number and the reason.
constexpr std::uint64_t refused_word(std::uint64_t number, Refusal refusal) {
  return number << 8 | static_cast<std::uint64_t>(refusal);
}

/// Where a target writes its replies to one PE.
struct ReplyAddress {
  std::uint32_t credits = 0;       ///< the requester's value; must match the target's
  std::uint64_t address = 0;       ///< address of QP set 0's ReplyBlock; the others follow
  std::vector<std::uint32_t> keys; ///< rkeys, by NIC of the requester
  bool operator==(const ReplyAddress&) const = default;
};
void serialize(Archive& archive, ReplyAddress& place);

} // namespace shmemctl::ibrc
