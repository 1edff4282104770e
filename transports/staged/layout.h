// Layout of the region through which staged transports send. It is the same on all PEs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "src/abi/op_types.h"

namespace shmemctl::staged {

enum class MessageOp : std::uint32_t { put, put_signal, get, atomic };

/// The start of each slot; the payload follows it.
struct alignas(64) MessageHead {
  MessageOp op;
  AtomicOp atomic;          ///< for atomic; for put_signal: set or add
  std::uint8_t word_bytes;  ///< for atomic
  std::uint8_t wants_reply; ///< 1 for get and for atomics that return the old value
  std::uint32_t size_bytes; ///< size of the payload, or of the data that a get reads
  std::uint32_t region;     ///< region of the target; of the source for a get
  std::uint32_t signal_region;
  std::uint64_t offset_bytes, signal_offset_bytes;
  std::uint64_t operand, compare; ///< for atomic; for put_signal, the operand is the signal's value
};
static_assert(sizeof(MessageHead) == 64);

/// For each peer, each PE has four rows of slots: messages from the peer, replies from the peer,
/// outgoing replies and outgoing messages (outgoing slots are the sources of the network's puts).
/// It also has words for each peer: the number of the message in each slot, the number of the reply
/// in each slot, and the number of messages that the peer has executed.
struct Layout {
  static constexpr std::size_t slots = 8; ///< per row; their words fill a cache line
  static constexpr std::size_t line_bytes = 64;

  std::size_t n_pes = 1;
  std::size_t payload_bytes = 0; ///< payload of a slot

  /// A layout whose slots hold a payload of `max_payload_bytes`, or less if all payloads together
  /// would exceed 128 MiB, but at least 1 KiB.
  static Layout of(std::size_t n_pes, std::size_t max_payload_bytes) {
    constexpr std::size_t max_bytes = std::size_t{128} << 20, least = 1024;
    const std::size_t room = max_bytes / (n_pes * slots * 4) / line_bytes * line_bytes;
    return {n_pes, std::clamp(room, least, std::max(least, max_payload_bytes))};
  }

  std::size_t slot_bytes() const { return sizeof(MessageHead) + payload_bytes; }
  std::size_t row_bytes() const { return slots * slot_bytes(); }
  std::size_t size_bytes() const { return inbox(4 * n_pes, 0); }

  // Offsets in the region. The words come first, three cache lines for each peer.
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
