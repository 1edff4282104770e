#include "transports/mlx5/soft/executor.h"

#include <algorithm>

namespace shmemctl::mlx5 {

namespace {

/// An addition in which no carry leaves a bit that is set in `boundaries`.
std::uint64_t add_in_fields(std::uint64_t old, std::uint64_t value, std::uint64_t boundaries) {
  // Without the boundary bits nothing can carry out of a field; they are added as by XOR.
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

Outcome check_alignment(const RemotePiece& remote, const AtomicFields& fields) {
  if (remote.address % fields.size_bytes != 0)
    return {Syndrome::remote_invalid_request, SoftCause::misaligned};
  return {};
}

} // namespace shmemctl::mlx5
