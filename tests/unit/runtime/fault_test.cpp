#include "src/runtime/fault.h"

#include <csignal>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/error.h"

namespace shmemctl {
namespace {

TEST(ParseFault, ReadsThreeParts) {
  const std::optional<Fault> fault = parse_fault("stop:12:pair-check");
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, FaultKind::stop);
  EXPECT_EQ(fault->pe, 12);
  EXPECT_EQ(fault->phase, "pair-check");
  EXPECT_FALSE(parse_fault(""));
}

TEST(InjectFault, AnErrorIsThrownInItsPhaseOnItsPe) {
  const Options options(Environment{{"SHMEMCTL_FAULT", "error:1:heap"}});
  EXPECT_NO_THROW(inject_fault(options, 0, "heap"));
  EXPECT_NO_THROW(inject_fault(options, 1, "nics"));
  EXPECT_THROW(inject_fault(options, 1, "heap"), Error);
}

TEST(ParseFault, RefusesEverythingElse) {
  for (const char* text : {"kill", "kill:", "kill:1", "kill:1:", "kill::heap", "kill:-1:heap",
                           "kill:x:heap", "murder:1:heap", ":1:heap", "kill:1:heap:more",
                           "kill:99999999999999999999:heap", "kill:4294967297:heap"})
    EXPECT_THROW(parse_fault(text), Error) << text;
}

/// How a child ends that calls inject_fault().
int wait_status_of(const std::string& fault, int pe, const std::string& phase,
                   const char* rank = nullptr) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (rank)
      ::setenv("PMI_RANK", rank, 1);
    inject_fault(Options({{"SHMEMCTL_FAULT", fault}}), pe, phase);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, WUNTRACED);
  if (WIFSTOPPED(status)) {
    ::kill(child, SIGKILL);
    int end = 0;
    ::waitpid(child, &end, 0);
  }
  return status;
}

TEST(InjectFault, HitsItsPeInItsPhaseOnly) {
  EXPECT_EQ(wait_status_of("kill:1:heap", 0, "heap"), 0);
  EXPECT_EQ(wait_status_of("kill:1:heap", 1, "teams"), 0);
  EXPECT_EQ(wait_status_of("", 1, "heap"), 0);
  EXPECT_EQ(WTERMSIG(wait_status_of("kill:1:heap", 1, "heap")), SIGKILL);
  const int stopped = wait_status_of("stop:1:heap", 1, "heap");
  EXPECT_TRUE(WIFSTOPPED(stopped));
  EXPECT_EQ(WEXITSTATUS(wait_status_of("exit:1:heap", 1, "heap")), 9);
}

TEST(InjectFault, AsksTheLauncherBeforeTheRankIsKnown) {
  EXPECT_EQ(WEXITSTATUS(wait_status_of("exit:3:bootstrap", -1, "bootstrap", "3")), 9);
  EXPECT_EQ(wait_status_of("exit:3:bootstrap", -1, "bootstrap", "2"), 0);
  EXPECT_EQ(wait_status_of("exit:3:bootstrap", -1, "bootstrap"), 0);
}

} // namespace
} // namespace shmemctl
