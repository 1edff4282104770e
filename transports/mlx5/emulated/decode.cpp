#include "transports/mlx5/emulated/decode.h"

namespace shmemctl::mlx5 {

namespace {

constexpr Outcome refuse(EmulatedFault cause) {
  return {Syndrome::local_operation, cause};
}

std::uint32_t high(std::uint64_t word) {
  return static_cast<std::uint32_t>(to_wire(word) >> 32);
}
std::uint32_t low(std::uint64_t word) {
  return static_cast<std::uint32_t>(to_wire(word));
}

class Reader {
public:
  Reader(std::span<const std::uint64_t> words, DecodedWqe& wqe) : words_(words), wqe_(wqe) {}

  Outcome read() {
    const WqeStart start = decode_start(words_[0]);
    wqe_.opcode = static_cast<Opcode>(start.opcode);
    wqe_.flags = static_cast<std::uint8_t>(to_wire(words_[1]) >> 32);
    wqe_.size_bytes = 0;
    wqe_.n_pieces = 0;
    switch (wqe_.opcode) {
    case Opcode::nop:
      return {};
    case Opcode::rdma_write:
    case Opcode::rdma_read:
      return read_transfer();
    case Opcode::atomic_cs:
    case Opcode::atomic_fa:
    case Opcode::atomic_masked_cs:
    case Opcode::atomic_masked_fa:
      return read_atomic(start.modifier);
    }
    return refuse(EmulatedFault::unknown_opcode);
  }

private:
  Outcome read_transfer() {
    if (words_.size() < 4)
      return refuse(EmulatedFault::bad_size);
    read_remote();
    return read_pieces(4, wqe_.opcode == Opcode::rdma_write);
  }

  Outcome read_atomic(std::uint8_t modifier) {
    const bool masked =
        wqe_.opcode == Opcode::atomic_masked_cs || wqe_.opcode == Opcode::atomic_masked_fa;
    if (masked ? modifier != modifier_atomic_4 && modifier != modifier_atomic_8 : modifier != 0)
      return refuse(EmulatedFault::bad_modifier);
    AtomicFields& fields = wqe_.atomic;
    fields = {wqe_.opcode, std::uint8_t{8}, 0, 0, 0, 0};
    if (modifier == modifier_atomic_4)
      fields.size_bytes = 4;
    const std::size_t ds_count = atomic_ds_count(fields);
    if (words_.size() != 2 * ds_count)
      return refuse(EmulatedFault::bad_size);
    read_remote();
    read_operands(masked);
    if (const Outcome outcome = read_pieces(2 * ds_count - 2, false))
      return outcome;
    if (wqe_.size_bytes != fields.size_bytes)
      return {Syndrome::local_length, EmulatedFault::bad_result_piece};
    return {};
  }

  void read_remote() { wqe_.remote = {to_wire(words_[2]), high(words_[3])}; }

  void read_operands(bool masked) {
    AtomicFields& fields = wqe_.atomic;
    const bool swaps =
        fields.opcode == Opcode::atomic_cs || fields.opcode == Opcode::atomic_masked_cs;
    if (fields.size_bytes == 4) {
      fields.operand = high(words_[4]);
      (swaps ? fields.compare : fields.operand_mask) = low(words_[4]);
      if (swaps) {
        fields.operand_mask = high(words_[5]);
        fields.compare_mask = low(words_[5]);
      }
      return;
    }
    fields.operand = to_wire(words_[4]);
    if (swaps)
      fields.compare = to_wire(words_[5]);
    else if (masked)
      fields.operand_mask = to_wire(words_[5]);
    if (swaps && masked) {
      fields.operand_mask = to_wire(words_[6]);
      fields.compare_mask = to_wire(words_[7]);
    }
  }

  /// Reads the data segments from word `at` to the end.
  Outcome read_pieces(std::size_t at, bool inline_allowed) {
    while (at < words_.size()) {
      const std::uint32_t count = high(words_[at]);
      WqePiece piece;
      if ((count & inline_bit) != 0) {
        piece.size_bytes = count & ~inline_bit;
        const std::size_t room_bytes = (words_.size() - at) * 8 - 4;
        if (!inline_allowed || piece.size_bytes > room_bytes)
          return refuse(EmulatedFault::bad_inline);
        piece.in_entry = reinterpret_cast<const std::byte*>(&words_[at]) + 4;
        at += (4 + piece.size_bytes + ds_bytes - 1) / ds_bytes * 2;
      } else {
        piece.size_bytes = count == 0 ? zero_means_bytes : count;
        piece.lkey = low(words_[at]);
        piece.address = to_wire(words_[at + 1]);
        at += 2;
      }
      wqe_.size_bytes += piece.size_bytes;
      if (piece.size_bytes > 0)
        wqe_.pieces[wqe_.n_pieces++] = piece;
    }
    if (wqe_.size_bytes > max_rdma_bytes)
      return {Syndrome::local_length, EmulatedFault::message_too_long};
    return {};
  }

  std::span<const std::uint64_t> words_;
  DecodedWqe& wqe_;
};

} // namespace

WqeStart decode_start(std::uint64_t first_word) {
  const std::uint64_t word = to_wire(first_word);
  return {static_cast<std::uint8_t>(word >> 32), static_cast<std::uint8_t>(word >> 56),
          static_cast<std::uint16_t>(word >> 40), static_cast<std::uint32_t>(word >> 8 & 0xffffff),
          static_cast<std::uint32_t>(word & 0x3f)};
}

Outcome decode_wqe(std::span<const std::uint64_t> words, DecodedWqe& wqe) {
  return Reader(words, wqe).read();
}

} // namespace shmemctl::mlx5
