// The HCA's constants and byte order: opcodes, flags, and the 64-bit words that make up the
// segments of a WQE. For host and device: fixed-size integers only.
//
// Everything that the HCA reads or writes is big-endian, and every segment is a whole number of
// 8-byte words, so a segment is written as 64-bit words that are composed here.
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

/// Converts a word between host order and the HCA's (big-endian) order; its own inverse.
template <class Word>
SHMEMCTL_HOST_DEVICE constexpr Word to_wire(Word value) {
  return host_is_big_endian ? value : swap_bytes(value);
}

/// Opcodes of WQEs.
enum class Opcode : std::uint8_t {
  nop = 0x00,
  rdma_write = 0x08,
  rdma_read = 0x10,
  atomic_cs = 0x11,        ///< compare and swap, 8 bytes
  atomic_fa = 0x12,        ///< fetch and add, 8 bytes
  atomic_masked_cs = 0x14, ///< 4 or 8 bytes, by the modifier
  atomic_masked_fa = 0x15
};

/// opmod of masked atomics: bit 3 means "extended", the rest is log2(size) - 2.
inline constexpr std::uint8_t modifier_atomic_4 = 0x08;
inline constexpr std::uint8_t modifier_atomic_8 = 0x09;

/// The control segment's flags byte.
enum ControlFlags : std::uint8_t {
  flag_solicited = 0x02,
  flag_completion = 0x08, ///< requests a CQE
  flag_small_fence = 0x20,
  flag_fence = 0x80 ///< starts after all earlier READs and atomics of the QP are complete
};

inline constexpr unsigned ds_bytes = 16;     ///< a WQE's size is given in these units (DS)
inline constexpr unsigned max_ds_count = 63; ///< the field has 6 bits
inline constexpr std::uint32_t inline_bit = 0x80000000;
/// The byte count that a size of 0 in a data segment means.
inline constexpr std::uint64_t zero_means_bytes = std::uint64_t{1} << 31;
inline constexpr std::uint64_t max_rdma_bytes = std::uint64_t{1} << 30;

/// WQEBBs (64 bytes each) of a WQE of this many DS.
SHMEMCTL_HOST_DEVICE constexpr std::uint32_t wqebbs_for(std::uint32_t ds_count) {
  return (ds_count + 3) / 4;
}

// The control segment: two words.

/// @param index the WQE's first WQEBB; the HCA sees the low 16 bits
/// @param ds_count size of the whole WQE in DS
SHMEMCTL_HOST_DEVICE constexpr std::uint64_t control_word(Opcode opcode, std::uint8_t modifier,
                                                          std::uint64_t index, std::uint32_t qpn,
                                                          std::uint32_t ds_count) {
  return to_wire(static_cast<std::uint64_t>(modifier) << 56 | (index & 0xffff) << 40 |
                 static_cast<std::uint64_t>(opcode) << 32 |
                 static_cast<std::uint64_t>(qpn & 0xffffff) << 8 | ds_count);
}
SHMEMCTL_HOST_DEVICE constexpr std::uint64_t control_flags_word(std::uint8_t flags) {
  return to_wire(static_cast<std::uint64_t>(flags) << 32);
}

// Second word of the remote address segment; the first is the address.
SHMEMCTL_HOST_DEVICE constexpr std::uint64_t remote_key_word(std::uint32_t rkey) {
  return to_wire(static_cast<std::uint64_t>(rkey) << 32);
}

// First word of a data segment; the second is the address.
SHMEMCTL_HOST_DEVICE constexpr std::uint64_t data_word(std::uint32_t size_bytes,
                                                       std::uint32_t lkey) {
  return to_wire(static_cast<std::uint64_t>(size_bytes) << 32 | lkey);
}

/// Two adjacent 32-bit fields.
SHMEMCTL_HOST_DEVICE constexpr std::uint64_t pair_word(std::uint64_t first, std::uint64_t second) {
  return to_wire(first << 32 | (second & 0xffffffff));
}

// Doorbells.

/// Contents of the send doorbell record: the low 16 bits of the WQEBB producer index.
SHMEMCTL_HOST_DEVICE constexpr std::uint32_t send_dbrec_value(std::uint64_t index) {
  return to_wire(static_cast<std::uint32_t>(index & 0xffff));
}
/// Value written to the doorbell register (UAR): the format of a control segment's first word.
SHMEMCTL_HOST_DEVICE constexpr std::uint64_t doorbell_value(std::uint64_t index,
                                                            std::uint32_t qpn) {
  return to_wire((index & 0xffff) << 40 | static_cast<std::uint64_t>(qpn & 0xffffff) << 8);
}
/// Contents of the CQ doorbell record: the low 24 bits of the consumer index.
SHMEMCTL_HOST_DEVICE constexpr std::uint32_t cq_dbrec_value(std::uint64_t taken) {
  return to_wire(static_cast<std::uint32_t>(taken & 0xffffff));
}

} // namespace shmemctl::mlx5
