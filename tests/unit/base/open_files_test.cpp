// The limit of open files: how many are left, and the error if there are too few.
#include "src/base/open_files.h"

#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <string>
#include <sys/resource.h>
#include <vector>

#include "src/base/error.h"
#include "src/base/file_descriptor.h"

namespace shmemctl {
namespace {

/// Sets another soft limit of open files while it exists.
class SoftFileLimit {
public:
  explicit SoftFileLimit(rlim_t soft) {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    const rlimit limit{soft, before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  }
  ~SoftFileLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  SoftFileLimit(const SoftFileLimit&) = delete;
  SoftFileLimit& operator=(const SoftFileLimit&) = delete;
  rlim_t hard() const { return before_.rlim_max; }

private:
  rlimit before_{};
};

TEST(OpenFiles, WhatIsLeftIsCounted) {
  const SoftFileLimit limit(64);
  EXPECT_EQ(open_file_limit(), 64U);
  const std::size_t before = free_descriptors(1000);
  ASSERT_GE(before, 10U);
  ASSERT_LE(before, 61U); // standard input, output and error
  std::vector<FileDescriptor> files;
  for (int i = 0; i < 3; ++i) {
    files.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    ASSERT_TRUE(files.back());
  }
  EXPECT_EQ(free_descriptors(1000), before - 3);
  EXPECT_EQ(free_descriptors(2), 2U);
  files.clear();
  EXPECT_EQ(free_descriptors(1000), before);
}

TEST(OpenFiles, TheSoftLimitIsRaisedWhenItIsTooLow) {
  const SoftFileLimit limit(64);
  if (limit.hard() < 256)
    GTEST_SKIP() << "the hard limit of open files is too low";
  require_descriptors(3, "UCX", "open");
  EXPECT_EQ(open_file_limit(), 64U) << "there was room";
  require_descriptors(100, "UCX", "open");
  EXPECT_GE(open_file_limit(), 256U);
  EXPECT_FALSE(raise_open_file_limit());
}

/// In a child process: a hard limit cannot be raised again.
[[noreturn]] void require_under_a_hard_limit() {
  const rlimit limit{32, 32};
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0)
    std::_Exit(2);
  try {
    require_descriptors(100, "UCX", "open");
  } catch (const Error& error) {
    std::fprintf(stderr, "%d|%s|%s|\n", static_cast<int>(error.code()), error.message().c_str(),
                 error.fix().c_str());
    std::_Exit(0);
  }
  std::_Exit(1);
}

TEST(OpenFiles, TheHardLimitIsNamed) {
  EXPECT_EXIT(require_under_a_hard_limit(), testing::ExitedWithCode(0),
              "3.UCX: cannot open: the limit of open files is 32, which leaves room for [0-9]+ "
              "more, and up to 100 are needed.raise the hard limit: ulimit -n 4096.");
}

} // namespace
} // namespace shmemctl
