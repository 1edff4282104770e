// Layout of the region through which staged transports send: the same on all PEs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "src/abi/op_types.h"

namespace shmemctl::staged {

enum class MessageOp : std::uint32_t { put, put_signal, get, atomic };

/// At the start of a slot; the payload follows.
struct alignas(64) MessageHead {
  MessageOp op;
  AtomicOp atomic;          ///< atomic; put_signal: set or add
  std::uint8_t word_bytes;  ///< atomic
  std::uint8_t wants_reply; ///< get, atomic
  std::uint32_t size_bytes; ///< size of the payload, or of what is to be read
  std::uint32_t region;     ///< region of the target; of the source for a get
  std::uint32_t signal_region;
  std::uint64_t offset_bytes, signal_offset_bytes;
  std::uint64_t operand, compare; ///< atomic; put_signal: the signal's value
};
static_assert(sizeof(MessageHead) == 64);

/// Each PE has, for each peer, a row of slots for messages from it, one for its replies, the same
/// for outgoing ones (sources of the network's puts), and flags: the message in each slot, the
/// reply in each slot, and the number of messages that the peer has executed.
struct Layout {
  static constexpr std::size_t slots = 8; ///< per row: their flags fill a cache line
  static constexpr std::size_t line_bytes = 64;

  std::size_t n_pes = 1;
  std::size_t payload_bytes = 0; ///< payload of a slot

  /// As long slots as a bounded region has room for.
  static Layout of(std::size_t n_pes, std::size_t max_payload_bytes) {
    constexpr std::size_t max_bytes = std::size_t{128} << 20, least = 1024;
    const std::size_t room = max_bytes / (n_pes * slots * 4) / line_bytes * line_bytes;
    return {n_pes, std::clamp(room, least, std::max(least, max_payload_bytes))};
  }

  std::size_t slot_bytes() const { return sizeof(MessageHead) + payload_bytes; }
  std::size_t row_bytes() const { return slots * slot_bytes(); }
  std::size_t size_bytes() const { return inbox(4 * n_pes, 0); }

  // Offsets. Words first, a line for each peer.
  std::size_t arrived(std::size_t peer, std::size_t slot) const {
    return peer * 3 * line_bytes + slot * sizeof(std::uint64_t);
  }
  std::size_t replied(std::size_t peer, std::size_t slot) const {
    return arrived(peer, slot) + line_bytes;
  }
  std::size_t done(std::size_t peer) const { return arrived(peer, 0) + 2 * line_bytes; }
  std::size_t inbox(std::size_t peer, std::size_t slot) const {
    return n_pes * 3 * line_bytes + peer * row_bytes() + slot * slot_bytes();
  }
  std::size_t reply_inbox(std::size_t peer, std::size_t slot) const {
    return inbox(n_pes + peer, slot);
  }
  std::size_t reply_outbox(std::size_t peer, std::size_t slot) const {
    return inbox(2 * n_pes + peer, slot);
  }
  std::size_t outbox(std::size_t peer, std::size_t slot) const {
    return inbox(3 * n_pes + peer, slot);
  }
};

} // namespace shmemctl::staged
