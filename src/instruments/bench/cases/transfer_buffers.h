// The buffers of a transfer case: one source buffer, and slots for each writer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "src/instruments/bench/cases/host_case.h"
#include "src/instruments/bench/cases/pattern.h"

namespace shmemctl::bench {

/// The memory of a transfer case on every PE: the source area, `peers` areas of `slots` slots, and
/// a signal word for each area.
struct TransferLayout {
  /// @param window operations under way; no slot is used twice within a window
  /// @param spread the target's bytes for each byte of payload (2: every other element)
  TransferLayout(std::size_t size_bytes, int peers, int window, int spread);

  /// Most of the slots together, so that large messages with a large window stay in the caches
  /// and in the heap. Windows are cut to what fits, but to no less than 2 messages to each peer.
  static constexpr std::size_t slots_bytes = std::size_t{8} << 20;

  std::size_t size_bytes;
  std::uint64_t peers, slots, window;
  std::size_t slot_bytes; ///< distance between slots: whole cache lines

  std::size_t slot_offset_bytes(std::uint64_t area, std::uint64_t slot) const {
    return source_bytes(size_bytes) + (area * slots + slot) * slot_bytes;
  }
  std::size_t signal_offset_bytes(std::uint64_t area) const {
    return slot_offset_bytes(peers, 0) + area * 64;
  }
  std::size_t total_bytes() const { return signal_offset_bytes(peers); }
  /// How many of the first `iterations` operations go to a sender's k-th peer.
  std::uint64_t operations_to(std::uint64_t peer, std::uint64_t iterations) const {
    return iterations > peer ? (iterations - peer - 1) / peers + 1 : 0;
  }
};

/// Buffers of one operation: iteration i goes to peer i % peers; the j-th operation to a peer uses
/// slot j % slots, and a source offset other than that of the slot's last operation.
class TransferCursor {
public:
  explicit TransferCursor(const TransferLayout& layout) : layout_(layout) {}
  /// Goes to the operation of that number.
  void seek(std::uint64_t number) {
    if (number == number_)
      return;
    number_ = number;
    peer = number % layout_.peers;
    operation = number / layout_.peers;
    slot = operation % layout_.slots;
    turn_ = operation / layout_.slots;
  }
  void next() {
    ++number_;
    if (++peer < layout_.peers)
      return;
    peer = 0;
    ++operation;
    if (++slot < layout_.slots)
      return;
    slot = 0;
    ++turn_;
  }
  std::size_t source_offset_bytes() const { return (slot + turn_) % variants * variant_step_bytes; }
  /// Where the operation before sent from that used this slot: not the right data for this one.
  std::size_t stale_offset_bytes() const {
    return (slot + turn_ + variants - 1) % variants * variant_step_bytes;
  }

  std::uint64_t peer = 0, operation = 0, slot = 0;

private:
  TransferLayout layout_;
  std::uint64_t number_ = 0, turn_ = 0;
};

/// Compares all slots of an area with what `iterations` iterations leave there. `writer` is whose
/// pattern it must be; `group_bytes` of payload lie together (8 where elements are spread; all of
/// it otherwise). Slots not yet used and gaps must hold zeros.
std::optional<WrongByte> verify_slots(const HostCaseContext& context, const TransferLayout& layout,
                                      std::uint64_t area, int writer, std::uint64_t iterations,
                                      int spread);

/// A nonzero byte in memory that no PE writes to.
std::optional<WrongByte> stray_byte(const HostCaseContext& context, std::size_t offset_bytes,
                                    std::size_t size_bytes);

} // namespace shmemctl::bench
