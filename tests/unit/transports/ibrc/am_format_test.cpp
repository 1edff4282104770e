// Atomics by message in detail: the bytes, what a target does with them, and the arithmetic.
#include <gtest/gtest.h>

#include <random>

#include "tests/support/expect_error.h"
#include "transports/ibrc/am_format.h"
#include "transports/ibrc/atomics_choice.h"

namespace shmemctl::ibrc {
namespace {

using shmemctl::test::expect_error;

/// A region 1 of four words, between two that must not be accessed.
class CarryOut : public testing::Test {
protected:
  CarryOut() { regions_.set({1, reinterpret_cast<std::byte*>(&words_[1]), 32, {}}); }

  Outcome carry(const AtomicMessage& message) {
    const AtomicMessage::Bytes bytes = encode(message);
    return carry_out(regions_, bytes.data(), bytes.size());
  }
  Outcome at(std::uint64_t offset_bytes, const AtomicRequest& request, std::uint32_t region = 1) {
    return carry({request, region, offset_bytes, true});
  }

  RegionTable regions_;
  alignas(8) std::uint64_t words_[6] = {~0ull, 1, 2, 3, 4, ~0ull};
};

TEST(AtomicMessage, WhatIsWrittenIsRead) {
  for (int op = 0; op <= static_cast<int>(AtomicOp::bit_xor); ++op)
    for (const std::uint8_t size_bytes : {std::uint8_t{4}, std::uint8_t{8}})
      for (const bool wants_value : {false, true}) {
        const AtomicMessage message{
            {static_cast<AtomicOp>(op), size_bytes, 0x1122334455667788u, 0x99aabbccddeeff00u},
            7,
            0x123456789abcdef0u,
            wants_value};
        const AtomicMessage::Bytes bytes = encode(message);
        const auto read = decode_atomic_message(bytes.data(), bytes.size());
        ASSERT_TRUE(read);
        EXPECT_EQ(read->request.op, message.request.op);
        EXPECT_EQ(read->request.size_bytes, size_bytes);
        EXPECT_EQ(read->request.operand, message.request.operand);
        EXPECT_EQ(read->request.compare, message.request.compare);
        EXPECT_EQ(read->region, 7u);
        EXPECT_EQ(read->offset_bytes, message.offset_bytes);
        EXPECT_EQ(read->wants_value, wants_value);
      }
}

TEST(AtomicMessage, InvalidLengthsAndValuesAreRefused) {
  const AtomicMessage::Bytes good = encode(AtomicMessage{{AtomicOp::add, 8, 1}, 1, 0, true});
  for (std::size_t length = 0; length < good.size(); ++length)
    EXPECT_FALSE(decode_atomic_message(good.data(), length));
  struct Damage {
    std::size_t at;
    int value;
  };
  for (const Damage& damage : {Damage{0, 0}, Damage{1, 8}, Damage{1, 255}, Damage{2, 0},
                               Damage{2, 2}, Damage{2, 16}, Damage{3, 2}}) {
    AtomicMessage::Bytes bad = good;
    bad[damage.at] = static_cast<std::byte>(damage.value);
    EXPECT_FALSE(decode_atomic_message(bad.data(), bad.size())) << damage.at;
  }
}

TEST_F(CarryOut, EveryOperation) {
  EXPECT_EQ(at(0, {AtomicOp::fetch, 8}).value, 1u);
  EXPECT_EQ(at(0, {AtomicOp::add, 8, 4}).value, 1u);
  EXPECT_EQ(at(0, {AtomicOp::swap, 8, 12}).value, 5u);
  EXPECT_EQ(at(0, {AtomicOp::bit_and, 8, 10}).value, 12u);
  EXPECT_EQ(at(0, {AtomicOp::bit_or, 8, 3}).value, 8u);
  EXPECT_EQ(at(0, {AtomicOp::bit_xor, 8, 1}).value, 11u);
  EXPECT_EQ(at(0, {AtomicOp::compare_swap, 8, 99, 11}).value, 10u);
  EXPECT_EQ(at(0, {AtomicOp::compare_swap, 8, 99, 10}).value, 10u);
  EXPECT_EQ(words_[1], 99u);
  EXPECT_EQ(at(0, {AtomicOp::set, 8, 7}).value, 0u);
  EXPECT_EQ(words_[1], 7u);
  EXPECT_EQ(at(12, {AtomicOp::add, 4, 0xffffffff}).value, 0u);
  EXPECT_EQ(words_[2], 0xffffffff00000002u);
  EXPECT_EQ(words_[3], 3u);
}

TEST_F(CarryOut, WhatIsNotTheTargetsIsRefused) {
  const AtomicRequest add{AtomicOp::add, 8, 1};
  EXPECT_EQ(at(24, add).refusal, Refusal::none);
  for (const std::uint64_t offset :
       {std::uint64_t{25}, std::uint64_t{32}, ~std::uint64_t{0}, ~std::uint64_t{0} - 7})
    EXPECT_EQ(at(offset, add).refusal, Refusal::outside) << offset;
  for (const std::uint32_t region : {0u, 2u, 15u, 16u, 0xffffffffu})
    EXPECT_EQ(at(0, add, region).refusal, Refusal::outside) << region;
  EXPECT_EQ(at(4, add).refusal, Refusal::misaligned);
  EXPECT_EQ(at(4, {AtomicOp::add, 4, 1}).refusal, Refusal::none);
  EXPECT_EQ(at(30, {AtomicOp::add, 4, 1}).refusal, Refusal::outside);
  EXPECT_EQ(at(2, {AtomicOp::add, 4, 1}).refusal, Refusal::misaligned);
  EXPECT_EQ(words_[0], ~0ull);
  EXPECT_EQ(words_[5], ~0ull);
}

TEST_F(CarryOut, AnyBytes) {
  std::mt19937 random(11);
  for (int i = 0; i < 20000; ++i) {
    AtomicMessage::Bytes bytes = encode(AtomicMessage{{AtomicOp::add, 8, random()},
                                                      static_cast<std::uint32_t>(random() % 4),
                                                      random() % 64,
                                                      random() % 2 == 0});
    for (unsigned times = random() % 4; times > 0; --times)
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    const Outcome outcome = carry_out(regions_, bytes.data(), random() % 33);
    EXPECT_LE(outcome.refusal, Refusal::misaligned);
    ASSERT_EQ(words_[0], ~0ull);
    ASSERT_EQ(words_[5], ~0ull);
  }
}

TEST(Credits, NeverMoreMessagesThanReceives) {
  EXPECT_EQ(credits_of(16384, 2, 2), 64u); // more would be of no use
  EXPECT_EQ(credits_of(16384, 1024, 2), 8u);
  EXPECT_EQ(credits_of(8, 4, 2), 1u);
  EXPECT_EQ(credits_of(7, 4, 2), 0u);
  for (const int n_pes : {1, 2, 3, 7, 64, 1000, 4096})
    for (const int qp_sets : {1, 2, 5, 65})
      for (const std::uint32_t receives : {1u, 100u, 4096u, 16384u, 1u << 20})
        EXPECT_LE(std::uint64_t{credits_of(receives, n_pes, qp_sets)} *
                      static_cast<std::uint64_t>(n_pes * qp_sets),
                  receives);
}

TEST(ReplyBlock, PlacesDoNotOverlap) {
  for (const std::uint32_t credits : {1u, 3u, 64u}) {
    const ReplyBlock block{credits};
    std::vector<int> used(block.size_bytes());
    const auto take = [&](std::size_t at, std::size_t size_bytes) {
      EXPECT_EQ(at % 8, 0u);
      ASSERT_LE(at + size_bytes, used.size());
      for (std::size_t i = 0; i < size_bytes; ++i)
        EXPECT_EQ(used[at + i]++, 0);
    };
    take(ReplyBlock::done_at, 8);
    take(ReplyBlock::refused_at, 8);
    for (std::uint64_t number = 1000; number < 1000 + credits; ++number) {
      take(block.value_at(number), 8);
      take(block.request_at(number), AtomicMessage::size_bytes);
    }
    EXPECT_EQ(block.value_at(5), block.value_at(5 + credits));
  }
}

TEST(ReplyAddress, DamagedTextsAreRefused) {
  const ReplyAddress place{64, 0x7f0000001000, {1, 0xffffffff, 3}};
  const std::string bytes = to_bytes(place);
  EXPECT_EQ(from_bytes<ReplyAddress>(bytes), place);
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(from_bytes<ReplyAddress>(bytes.substr(0, length))) << length;
  EXPECT_FALSE(from_bytes<ReplyAddress>(to_bytes(ReplyAddress{65, 0, {}})));
  EXPECT_FALSE(
      from_bytes<ReplyAddress>(to_bytes(ReplyAddress{1, 0, std::vector<std::uint32_t>(65)})));
}

AtomicsCapabilities capabilities(AtomicsPreference preference, bool by_device,
                                 std::uint32_t receives) {
  return {preference, by_device, receives};
}

TEST(AtomicsChoice, OneMethodForTheWholeJob) {
  using enum AtomicsPreference;
  const Where where{"node0", 0, {}, std::nullopt};
  const auto choose = [&](const std::vector<AtomicsCapabilities>& all) {
    std::vector<NamedCapabilities> named;
    for (std::size_t pe = 0; pe < all.size(); ++pe)
      named.push_back({all[pe], "PE " + std::to_string(pe)});
    return atomics_by_message(named, where);
  };
  const AtomicsCapabilities able = capabilities(automatic, true, 100),
                            unable = capabilities(automatic, false, 100);
  EXPECT_FALSE(choose({able, able}));
  EXPECT_TRUE(choose({able, unable, able}));
  EXPECT_TRUE(choose({able, capabilities(message, true, 100)}));
  EXPECT_FALSE(choose({capabilities(device, true, 100), unable}));
  // No PE can receive: puts and gets still work.
  EXPECT_FALSE(choose({unable, capabilities(automatic, true, 0)}));
  expect_error(ExitCode::usage, {"SHMEMCTL_IB_ATOMICS", "PE 1 has message", "PE 0 has device"},
               [&] {
                 choose({capabilities(device, true, 100), capabilities(message, true, 100)});
               });
  expect_error(ExitCode::unavailable, {"PE 1", "no SRQ", "host node0"}, [&] {
    choose({capabilities(message, true, 100), capabilities(message, true, 0)});
  });
}

TEST(AtomicsChoice, OutlookOfAPair) {
  using enum AtomicsPreference;
  const AtomicsCapabilities able = capabilities(automatic, true, 100),
                            unable = capabilities(automatic, false, 100);
  EXPECT_EQ(atomics_method(able, able), AtomicsMethod::device);
  EXPECT_EQ(atomics_method(able, unable), AtomicsMethod::message);
  EXPECT_EQ(atomics_method(unable, able), AtomicsMethod::message);
  EXPECT_EQ(atomics_method(able, capabilities(message, true, 1)), AtomicsMethod::message);
  EXPECT_EQ(atomics_method(able, capabilities(message, true, 0)), AtomicsMethod::none);
  EXPECT_EQ(atomics_method(capabilities(device, true, 100), unable), AtomicsMethod::none);
  EXPECT_EQ(atomics_method(unable, capabilities(automatic, true, 0)), AtomicsMethod::none);
}

} // namespace
} // namespace shmemctl::ibrc
