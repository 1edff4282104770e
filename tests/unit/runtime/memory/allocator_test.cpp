#include "src/runtime/memory/allocator.h"

#include <chrono>
#include <gtest/gtest.h>
#include <random>
#include <vector>

#include "tests/support/allocator_model.h"

namespace shmemctl {
namespace {

using FreeResult = Allocator::FreeResult;

TEST(Allocator, TakesTheLowestRangeThatFits) {
  Allocator allocator(4096);
  const auto first = allocator.allocate(100);
  const auto second = allocator.allocate(256);
  const auto third = allocator.allocate(64);
  EXPECT_EQ(first, 0u);
  EXPECT_EQ(second, 128u);
  EXPECT_EQ(third, 384u);
  EXPECT_EQ(allocator.free(*first), FreeResult::freed);
  EXPECT_EQ(allocator.free(*second), FreeResult::freed);
  // Both gaps are merged now; the best fit would be after the third.
  EXPECT_EQ(allocator.allocate(384), 0u);
  EXPECT_EQ(allocator.allocate(1), 448u);
}

TEST(Allocator, CountsPaddingAsUsed) {
  Allocator allocator(1024);
  ASSERT_TRUE(allocator.allocate(1));
  ASSERT_TRUE(allocator.allocate(65));
  EXPECT_EQ(allocator.used_bytes(), 64u + 128u);
  EXPECT_EQ(allocator.live_blocks(), 2u);
  EXPECT_EQ(allocator.block_bytes(64), 65u);
  EXPECT_EQ(allocator.block_bytes(0), 1u);
  EXPECT_FALSE(allocator.block_bytes(128));
  EXPECT_FALSE(allocator.block_bytes(1));
}

TEST(Allocator, AlignsWithoutLosingTheGap) {
  Allocator allocator(1 << 16);
  EXPECT_EQ(allocator.allocate(64), 0u);
  EXPECT_EQ(allocator.allocate(64, 4096), 4096u);
  EXPECT_EQ(allocator.used_bytes(), 128u);
  EXPECT_EQ(allocator.allocate(4096 - 64), 64u);
  EXPECT_EQ(allocator.allocate(64, 1 << 15), std::size_t{1} << 15);
  EXPECT_EQ(allocator.free(4096), FreeResult::freed);
  EXPECT_EQ(allocator.free(64), FreeResult::freed);
  EXPECT_EQ(allocator.allocate(100, 8192), 8192u);
}

TEST(Allocator, RejectsImpossibleArguments) {
  Allocator allocator(4096);
  EXPECT_FALSE(allocator.allocate(0));
  EXPECT_FALSE(allocator.allocate(4097));
  EXPECT_FALSE(allocator.allocate(SIZE_MAX));
  EXPECT_FALSE(allocator.allocate(SIZE_MAX - 62));
  EXPECT_FALSE(allocator.allocate(64, 96));
  EXPECT_FALSE(allocator.allocate(64, std::size_t{1} << 63));
  EXPECT_EQ(allocator.allocate(4096, 0), 0u);
  EXPECT_FALSE(allocator.allocate(1));
  EXPECT_EQ(allocator.largest_free_bytes(), 0u);
  EXPECT_EQ(Allocator(0).allocate(1), std::nullopt);
  EXPECT_EQ(Allocator(63).allocate(1), std::nullopt);
}

TEST(Allocator, TellsWrongAddressesApart) {
  Allocator allocator(4096);
  ASSERT_EQ(allocator.allocate(200), 0u);
  EXPECT_EQ(allocator.free(64), FreeResult::inside_a_block);
  EXPECT_EQ(allocator.free(255), FreeResult::inside_a_block);
  EXPECT_EQ(allocator.free(256), FreeResult::not_allocated);
  EXPECT_EQ(allocator.free(1 << 20), FreeResult::not_allocated);
  EXPECT_EQ(allocator.free(SIZE_MAX), FreeResult::not_allocated);
  EXPECT_EQ(allocator.free(0), FreeResult::freed);
  EXPECT_EQ(allocator.free(0), FreeResult::not_allocated);
  EXPECT_EQ(allocator.used_bytes(), 0u);
}

TEST(Allocator, GrowsAtTheEnd) {
  Allocator allocator(0);
  EXPECT_EQ(allocator.free_tail_bytes(), 0u);
  allocator.grow(128);
  EXPECT_EQ(allocator.allocate(64), 0u);
  EXPECT_EQ(allocator.free_tail_bytes(), 64u);
  allocator.grow(64);
  EXPECT_EQ(allocator.free_tail_bytes(), 128u);
  EXPECT_EQ(allocator.allocate(128), 64u);
  allocator.grow(63);
  EXPECT_EQ(allocator.free_tail_bytes(), 0u);
  allocator.grow(1);
  EXPECT_EQ(allocator.allocate(64), 192u);
  EXPECT_EQ(allocator.size_bytes(), 256u);
}

TEST(Allocator, AgreesWithTheModelOnRandomCalls) {
  for (unsigned seed = 1; seed <= 8; ++seed) {
    std::mt19937_64 random(seed);
    test::AllocatorModel model(random() % 65536);
    for (int call = 0; call < 4000; ++call) {
      std::string differs;
      const std::uint64_t dice = random() % 100;
      if (dice < 45)
        differs = model.allocate(random() % 700, 1);
      else if (dice < 55)
        differs = model.allocate(random() % 3000, std::uint64_t{1} << random() % 13);
      else if (dice < 57)
        differs = model.grow(random() % 5000);
      else if (dice < 60)
        differs = model.free(random() % 70000);
      else
        differs = model.free(model.live_offset(random()));
      ASSERT_EQ(differs, "") << "seed " << seed << ", call " << call;
    }
  }
}

TEST(Allocator, SameCallsGiveSameOffsets) {
  const auto run = [] {
    std::mt19937_64 random(7);
    Allocator allocator(1 << 24);
    std::vector<std::size_t> offsets;
    for (int call = 0; call < 5000; ++call) {
      if (!offsets.empty() && random() % 3 == 0)
        allocator.free(offsets[random() % offsets.size()]);
      offsets.push_back(allocator.allocate(1 + random() % 4000).value_or(SIZE_MAX));
    }
    return offsets;
  };
  EXPECT_EQ(run(), run());
}

// tests/bench reaches 2 million per second; a tenth of it fails only if an operation iterates over
// blocks (10,000 of them).
TEST(Allocator, StaysFastWithManyBlocks) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers slow memory down";
#endif
  Allocator allocator(std::size_t{1} << 30);
  std::mt19937_64 random(3);
  std::vector<std::size_t> live(10000);
  for (std::size_t& offset : live)
    offset = allocator.allocate(64 + random() % 8192).value();
  constexpr int pairs = 50000;
  const auto start = std::chrono::steady_clock::now();
  for (int pair = 0; pair < pairs; ++pair) {
    std::size_t& offset = live[random() % live.size()];
    ASSERT_EQ(allocator.free(offset), FreeResult::freed);
    offset = allocator.allocate(64 + random() % 8192).value();
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  EXPECT_GT(2 * pairs / seconds, 0.1e6);
}

} // namespace
} // namespace shmemctl
