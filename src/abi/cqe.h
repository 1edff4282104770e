// CQEs (64 bytes). For host and device.
#pragma once

#include "src/abi/mlx5_format.h"

namespace shmemctl::mlx5 {

/// CQE opcode: the high half of its last byte.
enum class CqeKind : std::uint8_t {
  requester = 0,
  requester_error = 13,
  responder_error = 14,
  invalid = 15 ///< initial content of every CQE
};

/// Error syndromes.
enum class Syndrome : std::uint8_t {
  none = 0x00,
  local_length = 0x01,
  local_operation = 0x02,
  local_protection = 0x04,
  flushed = 0x05,
  memory_window = 0x06,
  bad_response = 0x10,
  local_access = 0x11,
  remote_invalid_request = 0x12,
  remote_access = 0x13,
  remote_operation = 0x14,
  retries_exceeded = 0x15,
  receiver_not_ready = 0x16,
  remote_aborted = 0x22
};

// Indices of a CQE's 64-bit words.
inline constexpr unsigned cqe_size_word = 5;     ///< low half: byte count
inline constexpr unsigned cqe_syndrome_word = 6; ///< errors: vendor syndrome, syndrome (last bytes)
inline constexpr unsigned cqe_last_word = 7; ///< WQE opcode, QPN, WQE counter, CQE opcode, owner

/// The last word, decoded. Polling needs this one load only.
struct CqeTail {
  std::uint8_t opcode; ///< opcode of the WQE
  std::uint32_t qpn;
  std::uint16_t index; ///< WQE counter: first WQEBB of the WQE that completed
  std::uint8_t kind;   ///< CqeKind
  std::uint8_t owner;
};

SHMEMCTL_HOST_DEVICE constexpr CqeTail decode_tail(std::uint64_t wire_word) {
  const std::uint64_t word = to_wire(wire_word);
  return {static_cast<std::uint8_t>(word >> 56), static_cast<std::uint32_t>(word >> 32 & 0xffffff),
          static_cast<std::uint16_t>(word >> 16), static_cast<std::uint8_t>(word >> 4 & 0xf),
          static_cast<std::uint8_t>(word & 1)};
}
SHMEMCTL_HOST_DEVICE constexpr std::uint64_t encode_tail(const CqeTail& tail) {
  return to_wire(static_cast<std::uint64_t>(tail.opcode) << 56 |
                 static_cast<std::uint64_t>(tail.qpn & 0xffffff) << 32 |
                 static_cast<std::uint64_t>(tail.index) << 16 |
                 static_cast<std::uint64_t>(tail.kind & 0xf) << 4 | (tail.owner & 1u));
}

/// Initial last word of every CQE, before the HCA has written it.
inline constexpr std::uint64_t unwritten_tail =
    encode_tail({0, 0, 0, static_cast<std::uint8_t>(CqeKind::invalid), 1});

SHMEMCTL_HOST_DEVICE constexpr bool is_error(const CqeTail& tail) {
  return tail.kind == static_cast<std::uint8_t>(CqeKind::requester_error) ||
         tail.kind == static_cast<std::uint8_t>(CqeKind::responder_error);
}
SHMEMCTL_HOST_DEVICE constexpr bool is_unwritten(const CqeTail& tail) {
  return tail.kind == static_cast<std::uint8_t>(CqeKind::invalid);
}
/// Ring mode: whether the HCA has written the CQE with number `taken`; the owner bit flips with
/// every lap.
SHMEMCTL_HOST_DEVICE constexpr bool is_new_cqe(const CqeTail& tail, std::uint64_t taken,
                                               unsigned entries_log2) {
  return !is_unwritten(tail) && tail.owner == (taken >> entries_log2 & 1);
}

/// The fields of an error CQE, or no_atomics(). Their encoding as one word is never 0.
struct Failure {
  std::uint8_t syndrome, vendor_syndrome, opcode, kind;
  std::uint16_t index;

  SHMEMCTL_HOST_DEVICE constexpr std::uint64_t to_word() const {
    return std::uint64_t{1} << 63 | static_cast<std::uint64_t>(kind) << 40 |
           static_cast<std::uint64_t>(syndrome) << 32 |
           static_cast<std::uint64_t>(vendor_syndrome) << 24 |
           static_cast<std::uint64_t>(opcode) << 16 | index;
  }
  SHMEMCTL_HOST_DEVICE static constexpr Failure from_word(std::uint64_t word) {
    return {static_cast<std::uint8_t>(word >> 32), static_cast<std::uint8_t>(word >> 24),
            static_cast<std::uint8_t>(word >> 16), static_cast<std::uint8_t>(word >> 40),
            static_cast<std::uint16_t>(word)};
  }
};

/// The Failure that stands for an atomic that is not posted because the HCA does not support
/// atomics of its size.
SHMEMCTL_HOST_DEVICE constexpr Failure no_atomics() {
  return {0, 0, 0, static_cast<std::uint8_t>(CqeKind::invalid), 0};
}
SHMEMCTL_HOST_DEVICE constexpr bool is_no_atomics(const Failure& failure) {
  return failure.kind == static_cast<std::uint8_t>(CqeKind::invalid);
}

SHMEMCTL_HOST_DEVICE constexpr Failure decode_failure(const CqeTail& tail,
                                                      std::uint64_t syndrome_word) {
  const std::uint64_t word = to_wire(syndrome_word);
  return {static_cast<std::uint8_t>(word), static_cast<std::uint8_t>(word >> 8), tail.opcode,
          tail.kind, tail.index};
}

} // namespace shmemctl::mlx5
