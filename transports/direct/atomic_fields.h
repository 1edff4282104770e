// The operations of transports by the device's own: those that it has not are masked ones. For host
// and device.
#pragma once

#include "transports/atomic_op.h"
#include "transports/mlx5/entry.h"

namespace shmemctl::direct {

SHMEMCTL_HOST_DEVICE constexpr mlx5::AtomicFields
atomic_fields(AtomicOp op, std::uint8_t size_bytes, std::uint64_t value, std::uint64_t compare) {
  const std::uint64_t operand = value & mlx5::all_bits(size_bytes);
  switch (op) {
  case AtomicOp::fetch:
    return mlx5::atomic_fetch(size_bytes);
  case AtomicOp::set:
  case AtomicOp::swap:
    return mlx5::atomic_swap(size_bytes, operand);
  case AtomicOp::compare_swap:
    return mlx5::atomic_compare_swap(size_bytes, compare & mlx5::all_bits(size_bytes), operand);
  case AtomicOp::add:
    return mlx5::atomic_add(size_bytes, operand);
  case AtomicOp::bit_and:
    return mlx5::atomic_and(size_bytes, operand);
  case AtomicOp::bit_or:
    return mlx5::atomic_or(size_bytes, operand);
  case AtomicOp::bit_xor:
    return mlx5::atomic_xor(size_bytes, operand);
  }
  return mlx5::atomic_fetch(size_bytes);
}

} // namespace shmemctl::direct
