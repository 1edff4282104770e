#include "src/runtime/same_program.h"

#include <gtest/gtest.h>

namespace shmemctl {
namespace {

void expect_other(const std::vector<std::string>& programs, int pe, int reference_pe) {
  const auto other = find_other_program(programs);
  ASSERT_TRUE(other);
  EXPECT_EQ(other->pe, pe);
  EXPECT_EQ(other->reference_pe, reference_pe);
}

TEST(SameProgram, OneIsEnough) {
  EXPECT_FALSE(find_other_program({}));
  EXPECT_FALSE(find_other_program({"a"}));
  EXPECT_FALSE(find_other_program({"a", "a", "a"}));
}

TEST(SameProgram, TheOneOfFewIsTheOther) {
  expect_other({"a", "a", "b"}, 2, 0);
  expect_other({"b", "a", "a"}, 0, 1);
  expect_other({"a", "b", "a", "b", "b"}, 0, 1);
  expect_other({"c", "b", "a", "a"}, 0, 2);
}

TEST(SameProgram, OfEqualsTheFirstIsTheJobs) {
  expect_other({"a", "b"}, 1, 0);
  expect_other({"b", "a", "a", "b"}, 1, 0);
}

TEST(SameProgram, NoSymmetricVariablesAreAnotherProgram) {
  expect_other({"a", "", "a"}, 1, 0);
}

} // namespace
} // namespace shmemctl
