#include "src/base/deadline.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace shmemctl {

/// The setting is for the whole process, so a child process acts as the command.
TEST(TimeoutHint, TheCommandHasAnOptionAndProgramsHaveAVariable) {
  EXPECT_EQ(raise_timeout(), "raise SHMEMCTL_TIMEOUT");
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    timeout_is_an_option();
    ::_exit(raise_timeout() == "raise --timeout" ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(raise_timeout(), "raise SHMEMCTL_TIMEOUT");
}

} // namespace shmemctl
