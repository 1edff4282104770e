#include "src/base/secret.h"

#include <gtest/gtest.h>
#include <set>

namespace shmemctl {
namespace {

TEST(Secret, SecretsDiffer) {
  std::set<Secret> seen;
  for (int i = 0; i < 100; ++i)
    seen.insert(random_secret());
  EXPECT_EQ(seen.size(), 100u);
}

TEST(Secret, AreEqualOnlyIfAllBytesAre) {
  Secret left{}, right{};
  EXPECT_TRUE(same_secret(left, right));
  for (std::uint8_t& byte : right) {
    byte = 128;
    EXPECT_FALSE(same_secret(left, right));
    byte = 0;
  }
}

} // namespace
} // namespace shmemctl
