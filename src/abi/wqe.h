// Builders of WQEs. For host and device.
//
// `Out` receives the words: out.set(i, word) stores word i of the WQE, already in the HCA's byte
// order. Each word within the WQE's DS count is set exactly once, in any order. Words after it, up
// to the end of the last WQEBB, are ignored by the HCA and are left unchanged.
#pragma once

#include "src/abi/mlx5_format.h"
#include "src/abi/op_types.h"

namespace shmemctl::mlx5 {

/// What the control segment needs besides opcode and size.
struct WqeHead {
  std::uint64_t index; ///< the WQE's first WQEBB; the HCA sees the low 16 bits
  std::uint32_t qpn;
  std::uint8_t flags; ///< ControlFlags
};
struct RaddrSegment {
  std::uint64_t address;
  std::uint32_t rkey;
};
struct DataSegment {
  std::uint64_t address;
  std::uint32_t lkey;
  std::uint32_t size_bytes;
};

/// An atomic operation of the HCA.
/// Masked compare-and-swap: if the bits selected by `compare_mask` are equal in memory and in
/// `compare`, the bits selected by `operand_mask` are replaced by those of `operand`.
/// Masked fetch-and-add: a carry out of a bit that is set in `operand_mask` is dropped.
/// The old value is written to the data segment: 8 bytes in host order, 4 bytes in big-endian
/// order.
struct AtomicFields {
  Opcode opcode;
  std::uint8_t size_bytes; ///< 4 (masked only) or 8
  std::uint64_t operand, compare, operand_mask, compare_mask;
};

inline constexpr std::uint32_t nop_ds_count = 1;
inline constexpr std::uint32_t write_ds_count = 3;

SHMEMCTL_HOST_DEVICE constexpr std::uint32_t inline_ds_count(std::uint32_t size_bytes) {
  return 2 + (4 + size_bytes + ds_bytes - 1) / ds_bytes;
}
SHMEMCTL_HOST_DEVICE constexpr bool has_long_operands(const AtomicFields& atomic) {
  return atomic.opcode == Opcode::atomic_masked_cs && atomic.size_bytes == 8;
}
SHMEMCTL_HOST_DEVICE constexpr std::uint32_t atomic_ds_count(const AtomicFields& atomic) {
  return has_long_operands(atomic) ? 5 : 4;
}

namespace detail {

template <class Out>
SHMEMCTL_HOST_DEVICE constexpr void set_head(Out& out, const WqeHead& head, Opcode opcode,
                                             std::uint8_t modifier, std::uint32_t ds_count) {
  out.set(0, control_word(opcode, modifier, head.index, head.qpn, ds_count));
  out.set(1, control_flags_word(head.flags));
}
template <class Out>
SHMEMCTL_HOST_DEVICE constexpr void set_remote(Out& out, const RaddrSegment& remote) {
  out.set(2, to_wire(remote.address));
  out.set(3, remote_key_word(remote.rkey));
}
template <class Out>
SHMEMCTL_HOST_DEVICE constexpr void set_local(Out& out, unsigned word, const DataSegment& local) {
  out.set(word, data_word(local.size_bytes, local.lkey));
  out.set(word + 1, to_wire(local.address));
}

/// Up to eight bytes as a word that contains them in memory order.
SHMEMCTL_HOST_DEVICE constexpr std::uint64_t word_of_bytes(const unsigned char* bytes,
                                                           std::uint32_t count) {
  std::uint64_t value = 0;
  for (std::uint32_t i = 0; i < count; ++i)
    value |= static_cast<std::uint64_t>(bytes[i]) << (56 - 8 * i);
  return to_wire(value);
}

} // namespace detail

/// NOP. With a completion it signals that everything before it is complete. 1 DS.
template <class Out>
SHMEMCTL_HOST_DEVICE constexpr void build_nop(Out& out, const WqeHead& head) {
  detail::set_head(out, head, Opcode::nop, 0, nop_ds_count);
}

/// RDMA WRITE from registered memory, 1 byte to 1 GiB. 3 DS.
template <class Out>
SHMEMCTL_HOST_DEVICE constexpr void
build_write(Out& out, const WqeHead& head, const RaddrSegment& remote, const DataSegment& local) {
  detail::set_head(out, head, Opcode::rdma_write, 0, write_ds_count);
  detail::set_remote(out, remote);
  detail::set_local(out, 4, local);
}

/// RDMA READ into registered memory, 1 byte to 1 GiB. 3 DS.
template <class Out>
SHMEMCTL_HOST_DEVICE constexpr void
build_read(Out& out, const WqeHead& head, const RaddrSegment& remote, const DataSegment& local) {
  detail::set_head(out, head, Opcode::rdma_read, 0, write_ds_count);
  detail::set_remote(out, remote);
  detail::set_local(out, 4, local);
}

/// RDMA WRITE of inline data; `bytes` may be reused on return. At least 1 byte;
/// inline_ds_count(size_bytes) DS.
template <class Out>
SHMEMCTL_HOST_DEVICE constexpr void
build_inline_write(Out& out, const WqeHead& head, const RaddrSegment& remote,
                   const unsigned char* bytes, std::uint32_t size_bytes) {
  const std::uint32_t ds_count = inline_ds_count(size_bytes);
  detail::set_head(out, head, Opcode::rdma_write, 0, ds_count);
  detail::set_remote(out, remote);
  // The first four bytes share a word with the byte count.
  const std::uint32_t beside = size_bytes < 4 ? size_bytes : 4;
  const std::uint64_t start = detail::word_of_bytes(bytes, beside);
  // word_of_bytes() has the bytes in wire order; values that are combined here are in host order.
  out.set(
      4, to_wire(static_cast<std::uint64_t>(inline_bit | size_bytes) << 32 | to_wire(start) >> 32));
  std::uint32_t done = beside;
  for (unsigned word = 5; word < 2 * ds_count; ++word) {
    const std::uint32_t left = size_bytes - done;
    const std::uint32_t count = left < 8 ? left : 8;
    out.set(word, detail::word_of_bytes(bytes + done, count));
    done += count;
  }
}

/// RDMA WRITE of an inline value of 1, 2, 4 or 8 bytes, which arrives in host byte order. 3 DS.
template <class Out>
SHMEMCTL_HOST_DEVICE constexpr void
build_value_write(Out& out, const WqeHead& head, const RaddrSegment& remote, std::uint64_t value,
                  std::uint32_t size_bytes) {
  detail::set_head(out, head, Opcode::rdma_write, 0, write_ds_count);
  detail::set_remote(out, remote);
  // The value's bytes in memory order, left-aligned in 64 bits.
  const std::uint64_t bytes =
      host_is_big_endian ? value << (64 - 8 * size_bytes) : swap_bytes(value);
  out.set(4, to_wire(static_cast<std::uint64_t>(inline_bit | size_bytes) << 32 | bytes >> 32));
  out.set(5, to_wire(bytes << 32));
}

/// An atomic; the old value is written to `local`, whose size is the operand's. atomic_ds_count()
/// DS.
template <class Out>
SHMEMCTL_HOST_DEVICE constexpr void
build_atomic(Out& out, const WqeHead& head, const RaddrSegment& remote, const AtomicFields& atomic,
             const DataSegment& local) {
  const bool masked =
      atomic.opcode == Opcode::atomic_masked_cs || atomic.opcode == Opcode::atomic_masked_fa;
  const std::uint8_t modifier = !masked                  ? std::uint8_t{0}
                                : atomic.size_bytes == 4 ? modifier_atomic_4
                                                         : modifier_atomic_8;
  const std::uint32_t ds_count = atomic_ds_count(atomic);
  detail::set_head(out, head, atomic.opcode, modifier, ds_count);
  detail::set_remote(out, remote);
  if (!masked) {
    out.set(4, to_wire(atomic.operand));
    out.set(5, atomic.opcode == Opcode::atomic_cs ? to_wire(atomic.compare) : 0);
  } else if (atomic.size_bytes == 4) {
    const bool swap = atomic.opcode == Opcode::atomic_masked_cs;
    out.set(4, pair_word(atomic.operand, swap ? atomic.compare : atomic.operand_mask));
    out.set(5, swap ? pair_word(atomic.operand_mask, atomic.compare_mask) : 0);
  } else if (atomic.opcode == Opcode::atomic_masked_fa) {
    out.set(4, to_wire(atomic.operand));
    out.set(5, to_wire(atomic.operand_mask));
  } else {
    out.set(4, to_wire(atomic.operand));
    out.set(5, to_wire(atomic.compare));
    out.set(6, to_wire(atomic.operand_mask));
    out.set(7, to_wire(atomic.compare_mask));
  }
  detail::set_local(out, 2 * ds_count - 2, local);
}

/// Converts the 4 bytes that a 4-byte atomic has written to its data segment to host order. (8-byte
/// atomics need no conversion.)
SHMEMCTL_HOST_DEVICE constexpr std::uint32_t old_value_4(std::uint32_t brought) {
  return to_wire(brought);
}

// OpenSHMEM's atomics in terms of the HCA's, as in NVSHMEM's IBDEVX and IBGDA transports.

SHMEMCTL_HOST_DEVICE constexpr std::uint64_t all_bits(std::uint8_t size_bytes) {
  return size_bytes == 4 ? 0xffffffff : ~std::uint64_t{0};
}
SHMEMCTL_HOST_DEVICE constexpr AtomicFields atomic_add(std::uint8_t size_bytes,
                                                       std::uint64_t value) {
  return {
      size_bytes == 8 ? Opcode::atomic_fa : Opcode::atomic_masked_fa, size_bytes, value, 0, 0, 0};
}
/// Fetch: adds 0.
SHMEMCTL_HOST_DEVICE constexpr AtomicFields atomic_fetch(std::uint8_t size_bytes) {
  return atomic_add(size_bytes, 0);
}
/// XOR: an addition in which every carry is dropped.
SHMEMCTL_HOST_DEVICE constexpr AtomicFields atomic_xor(std::uint8_t size_bytes,
                                                       std::uint64_t value) {
  return {Opcode::atomic_masked_fa, size_bytes, value, 0, all_bits(size_bytes), 0};
}
SHMEMCTL_HOST_DEVICE constexpr AtomicFields atomic_swap(std::uint8_t size_bytes,
                                                        std::uint64_t value) {
  return {Opcode::atomic_masked_cs, size_bytes, value, 0, all_bits(size_bytes), 0};
}
SHMEMCTL_HOST_DEVICE constexpr AtomicFields atomic_or(std::uint8_t size_bytes,
                                                      std::uint64_t value) {
  return {Opcode::atomic_masked_cs, size_bytes, value, 0, value & all_bits(size_bytes), 0};
}
SHMEMCTL_HOST_DEVICE constexpr AtomicFields atomic_and(std::uint8_t size_bytes,
                                                       std::uint64_t value) {
  return {Opcode::atomic_masked_cs, size_bytes, value, 0, ~value & all_bits(size_bytes), 0};
}
SHMEMCTL_HOST_DEVICE constexpr AtomicFields
atomic_compare_swap(std::uint8_t size_bytes, std::uint64_t compare, std::uint64_t value) {
  return {size_bytes == 8 ? Opcode::atomic_cs : Opcode::atomic_masked_cs,
          size_bytes,
          value,
          compare,
          all_bits(size_bytes),
          all_bits(size_bytes)};
}

/// The WQE fields of an OpenSHMEM atomic. Operations that the HCA lacks are implemented by masked
/// atomics.
/// @param size_bytes 4 or 8; higher bits of `value` and `compare` are ignored
SHMEMCTL_HOST_DEVICE constexpr AtomicFields
atomic_fields(AtomicOp op, std::uint8_t size_bytes, std::uint64_t value, std::uint64_t compare) {
  const std::uint64_t operand = value & all_bits(size_bytes);
  switch (op) {
  case AtomicOp::fetch:
    return atomic_fetch(size_bytes);
  case AtomicOp::set:
  case AtomicOp::swap:
    return atomic_swap(size_bytes, operand);
  case AtomicOp::compare_swap:
    return atomic_compare_swap(size_bytes, compare & all_bits(size_bytes), operand);
  case AtomicOp::add:
    return atomic_add(size_bytes, operand);
  case AtomicOp::bit_and:
    return atomic_and(size_bytes, operand);
  case AtomicOp::bit_or:
    return atomic_or(size_bytes, operand);
  case AtomicOp::bit_xor:
    return atomic_xor(size_bytes, operand);
  }
  return atomic_fetch(size_bytes);
}

} // namespace shmemctl::mlx5
