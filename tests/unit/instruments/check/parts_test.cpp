#include "src/instruments/check/parts.h"

#include <gtest/gtest.h>

#include "src/base/error.h"

namespace shmemctl {
namespace {

/// Ids of the parts that run.
std::string chosen(const PartChoice& choice, const std::string& failed = "") {
  std::string ids;
  for (const CheckPart& part : parts_of(choice))
    if (why_skipped(choice, part, failed).empty())
      ids += (ids.empty() ? "" : " ") + std::string(part.id);
  return ids;
}

TEST(Parts, ALevelHasTheFastOnesOfTheLevelBelow) {
  PartChoice choice;
  choice.level = 1;
  EXPECT_EQ(chosen(choice), "topo doctor bringup");
  choice.level = 2;
  EXPECT_EQ(chosen(choice), "topo doctor gpu-links bringup bench moe bench-gpu");
  choice.level = 3;
  EXPECT_EQ(chosen(choice), "topo doctor gpu-links bringup bench moe bench-gpu");
}

TEST(Parts, OnlyAndSkip) {
  PartChoice choice;
  choice.skip = {"moe", "bench"};
  EXPECT_EQ(chosen(choice), "topo doctor gpu-links bringup bench-gpu");
  choice.level = 1;
  // parts that are named run although the level is lower
  choice.only = {"moe", "doctor", "bench-gpu"};
  EXPECT_EQ(chosen(choice), "doctor bench-gpu");
}

TEST(Parts, AFailureEndsTheRunOnlyIfAsked) {
  PartChoice choice;
  EXPECT_NE(chosen(choice, "doctor"), "");
  choice.fail_early = true;
  EXPECT_EQ(chosen(choice, "doctor"), "");
  EXPECT_EQ(why_skipped(choice, check_parts().back(), "doctor"), "doctor failed (--fail-early)");
}

TEST(Parts, AWrongNameIsRefusedWithTheNearestOne) {
  for (const bool only : {true, false}) {
    PartChoice choice;
    (only ? choice.only : choice.skip) = {"bringpu"};
    try {
      require_parts(choice);
      FAIL() << "bringpu is no part";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_NE(error.message().find(only ? "--only" : "--skip"), std::string::npos);
      EXPECT_NE(error.fix().find("did you mean bringup?"), std::string::npos) << error.fix();
    }
  }
}

TEST(Parts, AnExpectationIsAPart) {
  PartChoice choice;
  choice.expects = true;
  choice.level = 1;
  EXPECT_EQ(chosen(choice), "expect topo doctor bringup");
  choice.skip = {"expect"};
  require_parts(choice);
  EXPECT_EQ(chosen(choice), "topo doctor bringup");
  choice.skip.clear();
  choice.only = {"expect"};
  require_parts(choice);
  EXPECT_EQ(chosen(choice), "expect");
  EXPECT_NE(part_title("expect"), "");
  choice.only = {"exepct"};
  try {
    require_parts(choice);
    FAIL() << "exepct is no part";
  } catch (const Error& error) {
    EXPECT_NE(error.fix().find("did you mean expect?"), std::string::npos) << error.fix();
  }
  choice.only = {"expect"};
  choice.expects = false;
  try {
    require_parts(choice);
    FAIL() << "there is no file";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_NE(error.fix().find("--expect FILE"), std::string::npos) << error.fix();
  }
  choice.only.clear();
  choice.skip = {"expect"}; // of a configuration file, for runs with and without --expect
  require_parts(choice);
}

TEST(Parts, AChoiceOfNothingIsRefused) {
  PartChoice choice;
  choice.only = {"topo"};
  require_parts(choice);
  choice.skip = {"topo"};
  EXPECT_THROW(require_parts(choice), Error);
}

} // namespace
} // namespace shmemctl
