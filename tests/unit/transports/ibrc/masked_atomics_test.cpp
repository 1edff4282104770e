// Emulated atomics, against a model on plain words, with a concurrent operation in between.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "transports/ibrc/masked_atomics.h"

namespace shmemctl::ibrc {
namespace {

constexpr AtomicOp all_ops[] = {AtomicOp::fetch,        AtomicOp::set,    AtomicOp::swap,
                                AtomicOp::compare_swap, AtomicOp::add,    AtomicOp::bit_and,
                                AtomicOp::bit_or,       AtomicOp::bit_xor};

/// The operation on a field of a word, byte by byte, without any of the code under test.
std::uint64_t model(std::uint64_t& word, std::size_t offset, const AtomicRequest& request) {
  std::uint64_t old = 0, operand = 0, compare = 0;
  char bytes[8];
  std::memcpy(bytes, &word, 8);
  std::memcpy(&old, bytes + offset, request.size_bytes);
  std::memcpy(&operand, &request.operand, request.size_bytes);
  std::memcpy(&compare, &request.compare, request.size_bytes);
  std::uint64_t value = old;
  switch (request.op) {
  case AtomicOp::fetch:
    break;
  case AtomicOp::set:
  case AtomicOp::swap:
    value = operand;
    break;
  case AtomicOp::compare_swap:
    value = old == compare ? operand : old;
    break;
  case AtomicOp::add:
    value = old + operand;
    break;
  case AtomicOp::bit_and:
    value = old & operand;
    break;
  case AtomicOp::bit_or:
    value = old | operand;
    break;
  case AtomicOp::bit_xor:
    value = old ^ operand;
    break;
  }
  std::memcpy(bytes + offset, &value, request.size_bytes);
  std::memcpy(&word, bytes, 8);
  return old;
}

struct Random {
  std::mt19937_64 engine{11};
  /// Often the same few values, so that comparisons match and carries happen.
  std::uint64_t value() {
    switch (engine() % 4) {
    case 0:
      return 0;
    case 1:
      return ~std::uint64_t{0};
    case 2:
      return engine() % 3;
    default:
      return engine();
    }
  }
};

TEST(WordEmulation, IsWhatTheModelDoes) {
  Random random;
  for (int i = 0; i < 20000; ++i)
    for (const AtomicOp op : all_ops) {
      const std::uint8_t size_bytes = random.engine() % 2 == 0 ? 4 : 8;
      const std::size_t offset = size_bytes == 4 && random.engine() % 2 == 0 ? 4 : 0;
      const AtomicRequest request(op, size_bytes, random.value(), random.value());
      std::uint64_t word = random.value(), expected = word;
      const std::uint64_t first = word;
      const std::uint64_t old = model(expected, offset, request);
      const WordField field = field_at(0x1000 + offset, size_bytes);
      EXPECT_EQ(field.address, 0x1000u);
      if (const auto addition = as_one_addition(field, request)) {
        EXPECT_EQ(first + *addition, expected);
        EXPECT_EQ(field.of(first), old);
      }
      // Any guess is right.
      const std::uint64_t guess = random.engine() % 2 == 0 ? first : random.value();
      int turns = 0;
      const std::uint64_t seen =
          emulate(field, request, guess, [&](std::uint64_t from, std::uint64_t to) {
            ++turns;
            const std::uint64_t before = word;
            if (before == from)
              word = to;
            return before;
          });
      ASSERT_EQ(seen, old);
      ASSERT_EQ(word, expected);
      ASSERT_LE(turns, 2);
    }
}

TEST(WordEmulation, TheOtherHalfMayChangeInBetween) {
  std::uint64_t word = 0x0000000100000005;
  int turns = 0;
  const WordField low = field_at(0x2000, 4);
  const std::uint64_t old =
      emulate(low, {AtomicOp::add, 4, 0xffffffff}, word, [&](std::uint64_t from, std::uint64_t to) {
        if (++turns <= 3)
          word += std::uint64_t{1} << 32;
        const std::uint64_t before = word;
        if (before == from)
          word = to;
        return before;
      });
  EXPECT_EQ(old, 5u);
  EXPECT_EQ(word, 0x0000000400000004u); // no carry
  EXPECT_EQ(turns, 4);
}

TEST(WordEmulation, WhatTakesOneAddition) {
  const WordField whole = field_at(64, 8), low = field_at(64, 4), high = field_at(68, 4);
  EXPECT_EQ(as_one_addition(whole, {AtomicOp::add, 8, 7}), 7u);
  EXPECT_EQ(as_one_addition(high, {AtomicOp::add, 4, 7}), std::uint64_t{7} << 32);
  EXPECT_FALSE(as_one_addition(low, {AtomicOp::add, 4, 7})); // a carry would reach its neighbour
  EXPECT_EQ(as_one_addition(low, {AtomicOp::fetch, 4}), 0u);
  EXPECT_FALSE(as_one_addition(whole, {AtomicOp::set, 8, 7}));
}

} // namespace
} // namespace shmemctl::ibrc
