#include "tests/gpu/litmus_verdict.h"

#include <gtest/gtest.h>

namespace shmemctl::test {
namespace {

using enum Shown;

TEST(LitmusVerdict, OnlyLateWordsFindAMutant) {
  EXPECT_TRUE(is_as_it_should_be("FENCE", {nothing, late_words}, false));
  EXPECT_FALSE(is_as_it_should_be("FENCE", {nothing, nothing}, false));
  EXPECT_FALSE(is_as_it_should_be("FENCE", {nothing, gave_up}, false));
  EXPECT_FALSE(is_as_it_should_be("FENCE", {failed, failed}, false));
  EXPECT_TRUE(is_as_it_should_be("GET_FRESH", {gave_up}, false)) << "it never sees the change";
  EXPECT_FALSE(is_as_it_should_be("GET_FRESH", {failed}, false));
}

TEST(LitmusVerdict, KnownSurvivorsHoldAndDoNothingElse) {
  EXPECT_TRUE(is_as_it_should_be("GRID_ARRIVE", {nothing}, false));
  EXPECT_TRUE(is_as_it_should_be("GRID_ARRIVE", {late_words}, false));
  EXPECT_FALSE(is_as_it_should_be("GRID_ARRIVE", {failed}, false));
  EXPECT_FALSE(is_as_it_should_be("NETWORK_ACQUIRE", {nothing, gave_up}, false));
  EXPECT_FALSE(is_as_it_should_be("NETWORK_ACQUIRE", {}, false)) << "its baseline holds nowhere";
  for (const char* name : {"BARRIER_RELEASE", "FENCE", "COLLECTIVE_RELEASE", "ONE_ACCESS"}) {
    EXPECT_TRUE(is_as_it_should_be(name, {nothing}, true)) << name;
    EXPECT_TRUE(is_as_it_should_be(name, {late_words}, true)) << name;
    EXPECT_FALSE(is_as_it_should_be(name, {nothing}, false)) << name;
  }
  EXPECT_FALSE(is_as_it_should_be("QUIET", {nothing}, true));
}

TEST(LitmusVerdict, BaselinesHoldEverywhere) {
  EXPECT_TRUE(is_as_it_should_be("NETWORK", {nothing, nothing}, false));
  EXPECT_FALSE(is_as_it_should_be("NETWORK", {nothing, failed}, true));
  EXPECT_FALSE(is_as_it_should_be("NONE", {late_words}, true));
}

} // namespace
} // namespace shmemctl::test
