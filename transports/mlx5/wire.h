// The device's numbers and byte order: operation codes, flags, and the 64-bit words that make up
// the segments of a work queue entry. For host and device: fixed-size integers only.
//
// Everything that the device reads or writes is big-endian, and every segment is a whole number of
// 8-byte words, so a segment is written as words whose values are put together here.
#pragma once

#include <cstdint>

#include "src/base/host_device.h"

namespace shmemctl::mlx5 {

SHMEMCTL_HOST_DEVICE constexpr std::uint32_t swap_bytes(std::uint32_t value) {
  return value << 24 | (value & 0xff00) << 8 | (value >> 8 & 0xff00) | value >> 24;
}
SHMEMCTL_HOST_DEVICE constexpr std::uint64_t swap_bytes(std::uint64_t value) {
  return static_cast<std::uint64_t>(swap_bytes(static_cast<std::uint32_t>(value))) << 32 |
         swap_bytes(static_cast<std::uint32_t>(value >> 32));
}

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
inline constexpr bool host_is_big_endian = true;
#else
inline constexpr bool host_is_big_endian = false;
#endif

/// A word as it must stand in memory for the device, and back: it is its own inverse.
template <class Word>
SHMEMCTL_HOST_DEVICE constexpr Word to_wire(Word value) {
  return host_is_big_endian ? value : swap_bytes(value);
}

/// Operation codes of send queue entries.
enum class Opcode : std::uint8_t {
  nop = 0x00,
  rdma_write = 0x08,
  rdma_read = 0x10,
  atomic_cs = 0x11,        ///< compare and swap, 8 bytes
  atomic_fa = 0x12,        ///< fetch and add, 8 bytes
  atomic_masked_cs = 0x14, ///< 4 or 8 bytes, by the modifier
  atomic_masked_fa = 0x15
};

/// Modifiers of masked atomics: 8 says "extended", the rest is log2 of the size, minus 2.
inline constexpr std::uint8_t modifier_atomic_4 = 0x08;
inline constexpr std::uint8_t modifier_atomic_8 = 0x09;

/// The control segment's flags byte.
enum ControlFlags : std::uint8_t {
  flag_solicited = 0x02,
  flag_completion = 0x08, ///< writes a completion entry when done
  flag_small_fence = 0x20,
  flag_fence = 0x80 ///< begins when READs and atomics before it are done
};

inline constexpr unsigned octoword_bytes = 16; ///< sizes of entries are in these
inline constexpr unsigned most_octowords = 63; ///< the field has 6 bits
inline constexpr std::uint32_t inline_bit = 0x80000000;
/// A data segment's size of 0 means this many bytes.
inline constexpr std::uint64_t zero_means_bytes = std::uint64_t{1} << 31;
inline constexpr std::uint64_t most_message_bytes = std::uint64_t{1} << 30;

/// How many blocks of 64 bytes an entry of so many octowords takes.
SHMEMCTL_HOST_DEVICE constexpr std::uint32_t blocks_of(std::uint32_t octowords) {
  return (octowords + 3) / 4;
}

// The control segment, two words.

/// @param index the entry's first block, of which the low 16 bits count
/// @param octowords of the whole entry
SHMEMCTL_HOST_DEVICE constexpr std::uint64_t control_word(Opcode opcode, std::uint8_t modifier,
                                                          std::uint64_t index, std::uint32_t qpn,
                                                          std::uint32_t octowords) {
  return to_wire(static_cast<std::uint64_t>(modifier) << 56 | (index & 0xffff) << 40 |
                 static_cast<std::uint64_t>(opcode) << 32 |
                 static_cast<std::uint64_t>(qpn & 0xffffff) << 8 | octowords);
}
SHMEMCTL_HOST_DEVICE constexpr std::uint64_t control_flags_word(std::uint8_t flags) {
  return to_wire(static_cast<std::uint64_t>(flags) << 32);
}

// Remote address segment: the address, then this.
SHMEMCTL_HOST_DEVICE constexpr std::uint64_t remote_key_word(std::uint32_t rkey) {
  return to_wire(static_cast<std::uint64_t>(rkey) << 32);
}

// Data segment: this, then the address.
SHMEMCTL_HOST_DEVICE constexpr std::uint64_t data_word(std::uint32_t size_bytes,
                                                       std::uint32_t lkey) {
  return to_wire(static_cast<std::uint64_t>(size_bytes) << 32 | lkey);
}

/// Two 32-bit fields in a row.
SHMEMCTL_HOST_DEVICE constexpr std::uint64_t pair_word(std::uint64_t first, std::uint64_t second) {
  return to_wire(first << 32 | (second & 0xffffffff));
}

// Doorbells.

/// What the doorbell record holds: the low 16 bits of how many blocks are written.
SHMEMCTL_HOST_DEVICE constexpr std::uint32_t send_record_value(std::uint64_t index) {
  return to_wire(static_cast<std::uint32_t>(index & 0xffff));
}
/// What goes into the register: shaped like the start of a control segment.
SHMEMCTL_HOST_DEVICE constexpr std::uint64_t doorbell_value(std::uint64_t index,
                                                            std::uint32_t qpn) {
  return to_wire((index & 0xffff) << 40 | static_cast<std::uint64_t>(qpn & 0xffffff) << 8);
}
/// The consumer index of a completion queue: 24 bits.
SHMEMCTL_HOST_DEVICE constexpr std::uint32_t completions_record_value(std::uint64_t taken) {
  return to_wire(static_cast<std::uint32_t>(taken & 0xffffff));
}

} // namespace shmemctl::mlx5
