// The buffers of a transfer case: one source buffer, and slots for each writer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "src/instruments/bench/cases/host_case.h"
#include "src/instruments/bench/cases/pattern.h"

namespace shmemctl::bench {

/// The memory of a transfer case, the same on every PE: the source area, `peers` areas with `slots`
/// slots each, and a signal word for each area.
struct TransferLayout {
  /// @param window operations in flight; no slot is used twice within a window
  /// @param spread bytes of the target for each byte of payload (2: every other element is written)
  TransferLayout(std::size_t size_bytes, int peers, int window, int spread);

  /// Size limit of all slots together, so that large messages with a large window stay in the
  /// caches and fit into the heap. Windows are shortened to fit, but not below 2 messages to each
  /// peer.
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
  /// How many of the first `iterations` operations go to a sender's k-th peer (k = `peer`).
  std::uint64_t operations_to(std::uint64_t peer, std::uint64_t iterations) const {
    return iterations > peer ? (iterations - peer - 1) / peers + 1 : 0;
  }
};

/// The buffers of an operation. Iteration i goes to peer i % peers; the j-th operation to a peer
/// uses slot j % slots, and a source offset that differs from that of the slot's previous
/// operation.
class TransferCursor {
public:
  explicit TransferCursor(const TransferLayout& layout) : layout_(layout) {}
  /// Moves to the operation with that number.
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
  /// The source offset of the slot's previous operation, whose data is wrong for the current one.
  std::size_t stale_offset_bytes() const {
    return (slot + turn_ + variants - 1) % variants * variant_step_bytes;
  }

  std::uint64_t peer = 0, operation = 0, slot = 0;

private:
  TransferLayout layout_;
  std::uint64_t number_ = 0, turn_ = 0;
};

/// Compares all slots of an area with what `iterations` iterations must leave there. Slots that are
/// not used yet, and gaps, must contain zeros.
/// @param writer the PE whose pattern the slots must contain
/// @param spread as in TransferLayout
std::optional<WrongByte> verify_slots(const HostCaseContext& context, const TransferLayout& layout,
                                      std::uint64_t area, int writer, std::uint64_t iterations,
                                      int spread);

/// The first nonzero byte in memory that no PE writes to; nothing if all are zero.
std::optional<WrongByte> stray_byte(const HostCaseContext& context, std::size_t offset_bytes,
                                    std::size_t size_bytes);

} // namespace shmemctl::bench
