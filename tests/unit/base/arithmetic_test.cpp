// Small functions of numbers: rounding and hashing.
#include <cstddef>
#include <gtest/gtest.h>

#include "src/base/hash.h"
#include "src/base/round_up.h"

namespace shmemctl {
namespace {

TEST(RoundUp, ToTheNextMultiple) {
  EXPECT_EQ(round_up(std::size_t{0}, 64), 0u);
  EXPECT_EQ(round_up(std::size_t{1}, 64), 64u);
  EXPECT_EQ(round_up(std::size_t{64}, 64), 64u);
  EXPECT_EQ(round_up(std::size_t{65}, 64), 128u);
  EXPECT_EQ(round_up(std::size_t{10}, 3), 12u);
  EXPECT_EQ(round_up(std::uint64_t{7}, 1), 7u);
  EXPECT_EQ(round_up(std::uint64_t{1} << 62, std::uint64_t{1} << 21), std::uint64_t{1} << 62);
}

TEST(RoundUp, BothImplementationsAgreeOnPowersOfTwo) {
  for (std::uint64_t power = 1; power <= 1 << 12; power *= 2)
    for (std::uint64_t value = 0; value < 10'000; value += 7)
      ASSERT_EQ(round_up(value, power), round_up_to_power(value, power));
}

TEST(Fnv1a, KnownValues) {
  EXPECT_EQ(fnv1a(""), 0xcbf29ce484222325U);
  EXPECT_EQ(fnv1a("a"), 0xaf63dc4c8601ec8cU);
  EXPECT_EQ(fnv1a("foobar"), 0x85944171f73967e8U);
}

TEST(Fnv1a, ContinuesFromAnEarlierHash) {
  EXPECT_EQ(fnv1a("bar", fnv1a("foo")), fnv1a("foobar"));
}

} // namespace
} // namespace shmemctl
