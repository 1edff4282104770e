// Commands to the device's firmware: big-endian structures. A field is given by its first bit and
// its width; bit 0 is the most significant bit of the first byte. This file defines the layouts,
// since no header of the driver contains them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace shmemctl::mlx5::command {

struct Field {
  unsigned bit, width; ///< width at most 64; only a field of width 64 crosses a multiple of 32
};

/// A field of an inner structure that begins at bit `base` of the outer structure.
constexpr Field in(unsigned base, Field field) {
  return {base + field.bit, field.width};
}

/// The bytes of a command or a response.
template <std::size_t Bytes>
class Buffer {
public:
  void set(Field field, std::uint64_t value) {
    for (unsigned i = 0; i < field.width; ++i) {
      const unsigned bit = field.bit + field.width - 1 - i;
      const auto mask = static_cast<std::uint8_t>(0x80 >> bit % 8);
      bytes_[bit / 8] =
          static_cast<std::uint8_t>((bytes_[bit / 8] & ~mask) | ((value >> i & 1) != 0 ? mask : 0));
    }
  }
  std::uint64_t get(Field field) const {
    std::uint64_t value = 0;
    for (unsigned bit = field.bit; bit < field.bit + field.width; ++bit)
      value = value << 1 | (bytes_[bit / 8] >> (7 - bit % 8) & 1);
    return value;
  }
  std::uint8_t* data() { return bytes_.data(); }
  const std::uint8_t* data() const { return bytes_.data(); }
  static constexpr std::size_t size() { return Bytes; }

private:
  std::array<std::uint8_t, Bytes> bytes_{};
};

enum Code : std::uint16_t {
  query_hca_cap = 0x100,
  create_cq = 0x400,
  create_qp = 0x500,
  rst2init_qp = 0x502,
  init2rtr_qp = 0x503,
  rtr2rts_qp = 0x504
};

// The header of all commands and responses.
inline constexpr Field opcode{0x00, 16}, modifier{0x30, 16};
inline constexpr Field status{0x00, 8}, syndrome{0x20, 32};
inline constexpr std::size_t reply_bytes = 0x80 / 8;

/// QUERY_HCA_CAP: the modifier is the capability group times two, plus one for the current values.
namespace caps {
inline constexpr std::uint16_t general_now = 0x0 << 1 | 1, atomic_now = 0x3 << 1 | 1,
                               general_2_now = 0x20 << 1 | 1;
inline constexpr std::size_t command_bytes = 0x80 / 8, reply_bytes = 0x8080 / 8;
inline constexpr unsigned base = 0x80;
// General.
inline constexpr Field has_general_2 = in(base, {0x20, 1}), log_max_qp_sz = in(base, {0x88, 8}),
                       log_max_ra_req_qp = in(base, {0x14a, 6}),
                       log_max_ra_res_qp = in(base, {0x15a, 6}), log_max_msg = in(base, {0x1c3, 5}),
                       atomic = in(base, {0x21e, 1}), cq_oi = in(base, {0x220, 1});
// General, second part: whether the order of a QP's operations can be configured.
inline constexpr Field dp_ordering_force = in(base, {0x88, 1});
// Atomic.
inline constexpr Field host_order_8 = in(base, {0x40, 2}), operations = in(base, {0x90, 16}),
                       sizes = in(base, {0xb0, 16});
enum Operation : unsigned {
  compare_swap = 1,
  fetch_add = 2,
  masked_compare_swap = 4,
  masked_fetch_add = 8
};
} // namespace caps

/// CREATE_CQ.
namespace cq {
inline constexpr std::size_t command_bytes = 0x880 / 8;
inline constexpr unsigned context = 0x80;
inline constexpr Field dbr_umem_valid = in(context, {0x06, 1}), cqe_size = in(context, {0x08, 3}),
                       collapsed = in(context, {0x0b, 1}), overrun_ignore = in(context, {0x0e, 1}),
                       dbr_umem_id = in(context, {0x20, 32}), log_size = in(context, {0x63, 5}),
                       uar_page = in(context, {0x68, 24}), eqn = in(context, {0xb8, 8}),
                       log_page_size = in(context, {0xc3, 5}), dbr_addr = in(context, {0x1c0, 64});
inline constexpr Field umem_offset{0x280, 64}, umem_id{0x2c0, 32}, umem_valid{0x2e0, 1};
inline constexpr Field number{0x48, 24}; ///< in the response
} // namespace cq

/// CREATE_QP and the commands that change a QP's state. All have the QP context at the same place.
namespace qp {
inline constexpr std::size_t command_bytes = 0x880 / 8;
inline constexpr Field number{0x48, 24}; ///< in state changes, and in the response to CREATE_QP
inline constexpr Field optional_mask{0x80, 32};
inline constexpr unsigned context = 0xc0;
inline constexpr Field service = in(context, {0x08, 8}), migration = in(context, {0x13, 2}),
                       dp_ordering_0 = in(context, {0x26, 1}),
                       dp_ordering_force = in(context, {0x27, 1}), pd = in(context, {0x28, 24}),
                       mtu = in(context, {0x40, 3}), log_msg_max = in(context, {0x43, 5}),
                       log_rq_size = in(context, {0x49, 4}), log_sq_size = in(context, {0x51, 4}),
                       uar_page = in(context, {0x68, 24}), remote_qpn = in(context, {0xa8, 24}),
                       log_ack_req_freq = in(context, {0x380, 4}),
                       log_sra_max = in(context, {0x388, 3}), retry_count = in(context, {0x38d, 3}),
                       rnr_retry = in(context, {0x390, 3}),
                       next_send_psn = in(context, {0x3c8, 24}),
                       cqn_send = in(context, {0x3e8, 24}), log_rra_max = in(context, {0x488, 3}),
                       atomic_mode = in(context, {0x48c, 4}), remote_read = in(context, {0x490, 1}),
                       remote_write = in(context, {0x491, 1}),
                       remote_atomic = in(context, {0x492, 1}),
                       dp_ordering_1 = in(context, {0x49c, 1}),
                       min_rnr_nak = in(context, {0x4a3, 5}),
                       next_receive_psn = in(context, {0x4a8, 24}),
                       cqn_receive = in(context, {0x4e8, 24}), dbr_addr = in(context, {0x500, 64}),
                       rq_type = in(context, {0x565, 3}), dbr_umem_valid = in(context, {0x683, 1}),
                       dbr_umem_id = in(context, {0x720, 32});
inline constexpr Field wq_umem_offset{0x800, 64}, wq_umem_id{0x840, 32}, wq_umem_valid{0x860, 1};

/// The primary path in the context.
inline constexpr unsigned path = context + 0xc0;
inline constexpr Field pkey_index = in(path, {0x10, 16}), grh = in(path, {0x28, 1}),
                       rlid = in(path, {0x30, 16}), ack_timeout = in(path, {0x40, 5}),
                       source_gid_index = in(path, {0x48, 8}), hop_limit = in(path, {0x58, 8}),
                       tclass = in(path, {0x64, 8}), rgid = in(path, {0x80, 64}),
                       rgid_low = in(path, {0xc0, 64}), dscp = in(path, {0x10a, 6}),
                       udp_sport = in(path, {0x110, 16}), eth_prio = in(path, {0x121, 3}),
                       service_level = in(path, {0x124, 4}), port = in(path, {0x128, 8}),
                       rmac_high = in(path, {0x130, 16}), rmac_low = in(path, {0x140, 32});

inline constexpr std::uint64_t service_reliable = 0x0, migrated = 0x3, no_receive_queue = 0x3;
inline constexpr std::uint64_t atomics_up_to_8 = 0x3;
/// Bits of optional_mask at INIT2RTR: the command sets the three remote rights.
inline constexpr std::uint64_t optional_rights = 1 << 1 | 1 << 2 | 1 << 3;
} // namespace qp

} // namespace shmemctl::mlx5::command
