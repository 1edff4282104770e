#include "src/base/service_thread.h"

#include <csignal>
#include <gtest/gtest.h>
#include <pthread.h>

namespace shmemctl {
namespace {

sigset_t mask_now() {
  sigset_t mask;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  return mask;
}

TEST(ServiceThread, TakesNoSignalsOfTheProgram) {
  const sigset_t before = mask_now();
  sigset_t inside;
  start_service_thread("test", [&inside] { inside = mask_now(); }).join();
  const sigset_t after = mask_now();
  for (const int signal : {SIGINT, SIGTERM, SIGALRM, SIGCHLD, SIGUSR1, SIGPROF})
    EXPECT_EQ(::sigismember(&inside, signal), 1) << signal;
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL})
    EXPECT_EQ(::sigismember(&inside, signal), 0) << signal;
  for (int signal = 1; signal < 32; ++signal)
    EXPECT_EQ(::sigismember(&before, signal), ::sigismember(&after, signal)) << signal;
}

} // namespace
} // namespace shmemctl
