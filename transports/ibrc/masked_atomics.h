// Atomics that an HCA does not support, emulated by fetch-and-add and compare-and-swap on the
// aligned 8-byte word that contains the value. Since all of them use these two operations, they are
// atomic with each other.
#pragma once

#include <cstdint>
#include <optional>

#include "transports/transport.h"

namespace shmemctl::ibrc {

/// The position of a 4- or 8-byte value in its 8-byte word.
struct WordField {
  std::uint64_t address = 0; ///< address of the word: a multiple of 8
  unsigned shift = 0;
  std::uint64_t mask = ~std::uint64_t{0}; ///< mask of the value, before the shift

  std::uint64_t of(std::uint64_t word) const { return word >> shift & mask; }
  std::uint64_t replaced(std::uint64_t word, std::uint64_t value) const {
    return (word & ~(mask << shift)) | (value & mask) << shift;
  }
};

/// @param address aligned to `size_bytes`, which is 4 or 8
inline WordField field_at(std::uint64_t address, std::uint8_t size_bytes) {
  if (size_bytes == 8)
    return {address, 0, ~std::uint64_t{0}};
  // All supported hosts are little-endian.
  return {address / 8 * 8, static_cast<unsigned>(address % 8) * 8, 0xffffffffu};
}

/// The addend of a single fetch-and-add that executes the request; nothing if there is none. An
/// addition to the lower half of a word has none, since a carry would change the upper half.
inline std::optional<std::uint64_t> as_one_addition(const WordField& field,
                                                    const AtomicRequest& request) {
  if (request.op == AtomicOp::fetch)
    return 0;
  if (request.op != AtomicOp::add)
    return std::nullopt;
  if (field.mask == ~std::uint64_t{0})
    return request.operand;
  if (field.shift == 32)
    return request.operand << 32;
  return std::nullopt;
}

/// The value after the operation; the old value for a compare_swap that does not match.
inline std::uint64_t value_after(std::uint64_t value, const AtomicRequest& request,
                                 std::uint64_t mask) {
  switch (request.op) {
  case AtomicOp::fetch:
    return value;
  case AtomicOp::set:
  case AtomicOp::swap:
    return request.operand & mask;
  case AtomicOp::compare_swap:
    return value == (request.compare & mask) ? request.operand & mask : value;
  case AtomicOp::add:
    return (value + request.operand) & mask;
  case AtomicOp::bit_and:
    return value & request.operand & mask;
  case AtomicOp::bit_or:
    return (value | request.operand) & mask;
  case AtomicOp::bit_xor:
    return (value ^ request.operand) & mask;
  }
  return value;
}

/// Executes a request by a loop over `compare_swap(expected, desired)`, which returns the word's
/// old value. Returns the field's old value.
/// @param word the expected value of the word: any value gives a correct result, the present one
/// saves a try
template <class CompareSwap>
std::uint64_t emulate(const WordField& field, const AtomicRequest& request, std::uint64_t word,
                      CompareSwap&& compare_swap) {
  while (true) {
    const std::uint64_t before = field.of(word);
    const std::uint64_t desired = field.replaced(word, value_after(before, request, field.mask));
    // Needed even if the value does not change, since `word` may be out of date.
    const std::uint64_t seen = compare_swap(word, desired);
    if (seen == word)
      return before;
    word = seen;
  }
}

} // namespace shmemctl::ibrc
