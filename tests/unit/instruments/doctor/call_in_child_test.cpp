#include "src/instruments/doctor/support.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace shmemctl::doctor {
namespace {

using std::chrono::milliseconds;

TEST(CallInChild, ReturnsTheAnswer) {
  const std::string text(1 << 20, 'x'); // the longest
  const ChildOutput output = call_in_child([&] { return text; }, "the call", milliseconds(60000));
  EXPECT_EQ(output.problem, "");
  EXPECT_TRUE(output.text == text);
}

TEST(CallInChild, AnAnswerThatIsTooLongIsAProblem) {
  const ChildOutput output =
      call_in_child([] { return std::string(3 << 20, 'x'); }, "the call", milliseconds(60000));
  EXPECT_EQ(output.problem, "the call returned more than 1 MiB");
  EXPECT_EQ(output.text.size(), std::size_t{1} << 20);
}

TEST(CallInChild, AChildThatDoesNotEndIsLate) {
  const auto close_and_wait = [] {
    for (int descriptor = 3; descriptor < 1024; ++descriptor)
      ::close(descriptor);
    ::sleep(1000);
    return std::string();
  };
  EXPECT_EQ(call_in_child(close_and_wait, "the call", milliseconds(3000)).problem,
            "the call did not return within 3000 ms");
}

} // namespace
} // namespace shmemctl::doctor
