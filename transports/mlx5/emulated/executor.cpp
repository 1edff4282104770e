#include "transports/mlx5/emulated/executor.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>

#include "src/base/error.h"
#include "transports/mlx5/hca.h"
#include "transports/shm/atomics.h"

namespace shmemctl::mlx5 {

namespace {

/// An addition in which no carry propagates beyond a bit that is set in `boundaries`.
std::uint64_t add_in_fields(std::uint64_t old, std::uint64_t value, std::uint64_t boundaries) {
  // Without the boundary bits, no carry can leave a field. XOR then adds the boundary bits.
  const std::uint64_t sum = (old & ~boundaries) + (value & ~boundaries);
  return sum ^ ((old ^ value) & boundaries);
}

} // namespace

bool any_of_gpu(std::span<const BytePiece> pieces) {
  return std::any_of(pieces.begin(), pieces.end(),
                     [](const BytePiece& piece) { return piece.is_gpu; });
}

std::uint64_t new_value(const AtomicFields& fields, std::uint64_t old) {
  const std::uint64_t bits = all_bits(fields.size_bytes);
  switch (fields.opcode) {
  case Opcode::atomic_fa:
    return old + fields.operand;
  case Opcode::atomic_cs:
    return old == fields.compare ? fields.operand : old;
  case Opcode::atomic_masked_fa:
    return add_in_fields(old, fields.operand, fields.operand_mask) & bits;
  case Opcode::atomic_masked_cs:
    if (((old ^ fields.compare) & fields.compare_mask & bits) != 0)
      return old;
    return ((old & ~fields.operand_mask) | (fields.operand & fields.operand_mask)) & bits;
  default:
    return old;
  }
}

Outcome check_alignment(const RaddrSegment& remote, const AtomicFields& fields) {
  if (remote.address % fields.size_bytes != 0)
    return {Syndrome::remote_invalid_request, EmulatedFault::misaligned};
  return {};
}

namespace {

template <class Word>
std::uint64_t apply(std::byte* target, const AtomicFields& fields) {
  std::atomic_ref<Word> word(*reinterpret_cast<Word*>(target));
  if (fields.opcode == Opcode::atomic_fa ||
      (fields.opcode == Opcode::atomic_masked_fa && fields.operand_mask == 0))
    return word.fetch_add(static_cast<Word>(fields.operand), std::memory_order_seq_cst);
  Word old = word.load(std::memory_order_relaxed);
  while (!word.compare_exchange_weak(old, static_cast<Word>(new_value(fields, old)),
                                     std::memory_order_seq_cst)) {
  }
  return old;
}

} // namespace

void MappedExecutor::add(const KeyWindow& window) {
  if (!window.mapped || window.is_gpu)
    throw Error(ExitCode::usage, "emulated-mlx5", "access memory of a peer",
                "not mapped in this process",
                "report this as a bug in shmemctl, with the command line");
  keys_.add(window);
}

Outcome MappedExecutor::write(const RaddrSegment& remote, std::span<const BytePiece> pieces,
                              std::uint64_t size_bytes) {
  const KeyMatch match =
      keys_.find_remote(remote.rkey, remote.address, size_bytes, access_remote_write);
  if (match.outcome)
    return match.outcome;
  if (any_of_gpu(pieces))
    return {Syndrome::local_protection, EmulatedFault::gpu_memory};
  std::byte* target = match.window->mapped + match.offset_bytes;
  for (const BytePiece& piece : pieces) {
    copy_to_shared(target, piece.bytes, piece.size_bytes);
    target += piece.size_bytes;
    // Orders later operations of this QP after the copy.
    order_fence();
  }
  return {};
}

Outcome MappedExecutor::read(const RaddrSegment& remote, std::span<const BytePiece> pieces,
                             std::uint64_t size_bytes) {
  const KeyMatch match =
      keys_.find_remote(remote.rkey, remote.address, size_bytes, access_remote_read);
  if (match.outcome)
    return match.outcome;
  if (any_of_gpu(pieces))
    return {Syndrome::local_protection, EmulatedFault::gpu_memory};
  // Orders the READ after earlier WRITEs of this QP, so that it does not return older data.
  full_fence();
  std::byte* source = match.window->mapped + match.offset_bytes;
  for (const BytePiece& piece : pieces) {
    copy_from_shared(piece.bytes, source, piece.size_bytes);
    source += piece.size_bytes;
  }
  return {};
}

Outcome MappedExecutor::atomic(const RaddrSegment& remote, const AtomicFields& fields,
                               std::uint64_t& old) {
  const KeyMatch match =
      keys_.find_remote(remote.rkey, remote.address, fields.size_bytes, access_remote_atomic);
  if (match.outcome)
    return match.outcome;
  std::byte* target = match.window->mapped + match.offset_bytes;
  // An address that is aligned at the peer is aligned here too, unless the window is mapped
  // wrongly.
  if (const Outcome outcome = check_alignment(
          {reinterpret_cast<std::uint64_t>(target) | remote.address, remote.rkey}, fields))
    return outcome;
  old = fields.size_bytes == 4 ? apply<std::uint32_t>(target, fields)
                               : apply<std::uint64_t>(target, fields);
  return {};
}

namespace {

/// The transport's atomic with the same effect; nothing if transports have none.
std::optional<AtomicRequest> request_of(const AtomicFields& fields) {
  const std::uint64_t all = all_bits(fields.size_bytes);
  const std::uint64_t mask = fields.operand_mask & all;
  const std::uint64_t operand = fields.operand & all;
  const auto request = [&](AtomicOp op, std::uint64_t value, std::uint64_t compare = 0) {
    return AtomicRequest(op, fields.size_bytes, value, compare);
  };
  if (fields.opcode == Opcode::atomic_cs)
    return request(AtomicOp::compare_swap, operand, fields.compare);
  if (fields.opcode == Opcode::atomic_fa ||
      (fields.opcode == Opcode::atomic_masked_fa && mask == 0))
    return operand == 0 ? request(AtomicOp::fetch, 0) : request(AtomicOp::add, operand);
  if (fields.opcode == Opcode::atomic_masked_fa)
    return mask == all ? std::optional(request(AtomicOp::bit_xor, operand)) : std::nullopt;
  const std::uint64_t compare_mask = fields.compare_mask & all;
  if (compare_mask == all && mask == all)
    return request(AtomicOp::compare_swap, operand, fields.compare & all);
  if (compare_mask != 0)
    return std::nullopt;
  if (mask == all)
    return request(AtomicOp::swap, operand);
  if ((operand & mask) == mask)
    return request(AtomicOp::bit_or, mask);
  if ((operand & mask) == 0)
    return request(AtomicOp::bit_and, ~mask & all);
  return std::nullopt;
}

} // namespace

RemoteAddress TransportExecutor::place(const KeyMatch& match) const {
  return {pe_, match.window->region, match.window->region_offset_bytes + match.offset_bytes};
}

void TransportExecutor::come_after(bool reads) {
  if (!wrote_)
    return;
  if (reads) {
    transport_.quiet(context_);
    wrote_ = false;
  } else {
    transport_.fence(context_);
  }
}

/// Uses blocking operations, since inline data is valid only during this call.
void TransportExecutor::write_piece(const RemoteAddress& target, const BytePiece& piece) {
  std::uint64_t word = 0;
  const bool is_word =
      !piece.is_gpu && piece.size_bytes == sizeof word && target.offset_bytes % sizeof word == 0;
  // An aligned word may be a signal, so it must be written by a single 8-byte store. A copy into
  // GPU memory does not guarantee that.
  if (reaches_ == Reaches::gpus && is_word) {
    std::memcpy(&word, piece.bytes, sizeof word);
    transport_.put_signal(context_, target, nullptr, 0, target, word, SignalOp::set, true);
    return;
  }
  transport_.put(context_, target, piece.bytes, piece.size_bytes, true);
}

Outcome TransportExecutor::write(const RaddrSegment& remote, std::span<const BytePiece> pieces,
                                 std::uint64_t size_bytes) {
  const KeyMatch match =
      keys_.find_remote(remote.rkey, remote.address, size_bytes, access_remote_write);
  if (match.outcome)
    return match.outcome;
  if (refuses(pieces))
    return {Syndrome::local_protection, EmulatedFault::gpu_memory};
  come_after(false);
  RemoteAddress target = place(match);
  for (const BytePiece& piece : pieces) {
    write_piece(target, piece);
    target.offset_bytes += piece.size_bytes;
  }
  wrote_ = true;
  return {};
}

Outcome TransportExecutor::read(const RaddrSegment& remote, std::span<const BytePiece> pieces,
                                std::uint64_t size_bytes) {
  const KeyMatch match =
      keys_.find_remote(remote.rkey, remote.address, size_bytes, access_remote_read);
  if (match.outcome)
    return match.outcome;
  if (refuses(pieces))
    return {Syndrome::local_protection, EmulatedFault::gpu_memory};
  come_after(true);
  RemoteAddress source = place(match);
  for (const BytePiece& piece : pieces) {
    transport_.get(context_, piece.bytes, source, piece.size_bytes, true);
    source.offset_bytes += piece.size_bytes;
  }
  return {};
}

Outcome TransportExecutor::atomic(const RaddrSegment& remote, const AtomicFields& fields,
                                  std::uint64_t& old) {
  const KeyMatch match =
      keys_.find_remote(remote.rkey, remote.address, fields.size_bytes, access_remote_atomic);
  if (match.outcome)
    return match.outcome;
  come_after(false);
  const RemoteAddress target = place(match);
  if (const std::optional<AtomicRequest> request = request_of(fields)) {
    old = transport_.atomic(context_, target, *request);
    return {};
  }
  // Transports have no such operation: emulate it by a compare-and-swap loop.
  old = transport_.atomic(context_, target, {AtomicOp::fetch, fields.size_bytes});
  for (;;) {
    const std::uint64_t seen = transport_.atomic(
        context_, target, {AtomicOp::compare_swap, fields.size_bytes, new_value(fields, old), old});
    if (seen == old)
      return {};
    old = seen;
  }
}

Outcome TransportExecutor::finish() {
  if (wrote_)
    transport_.quiet(context_);
  wrote_ = false;
  return {};
}

} // namespace shmemctl::mlx5
