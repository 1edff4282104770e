#include "src/base/process.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <gtest/gtest.h>
#include <thread>

#include "src/base/error.h"

namespace shmemctl {
namespace {

ChildResult shell(const std::string& script, double timeout_s = 60) {
  return run_child("/bin/sh", {"sh", "-c", script}, {{"PATH", "/usr/bin:/bin"}, {"WORD", "seen"}},
                   timeout_s);
}

TEST(ChildProcess, GivesBackWhatItSaidAndHowItEnded) {
  const ChildResult result = shell("echo $WORD; echo problem >&2; exit 7");
  EXPECT_EQ(result.out, "seen\n");
  EXPECT_EQ(result.err, "problem\n");
  EXPECT_EQ(result.exit_status, 7);
  EXPECT_FALSE(result.timed_out);
}

TEST(ChildProcess, ReadsMoreThanAPipeHolds) {
  const ChildResult result =
      shell("head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2; head -c 5 /dev/zero");
  EXPECT_EQ(result.out.size(), 3000005U);
  EXPECT_EQ(result.err.size(), 3000000U);
}

TEST(ChildProcess, HasNoInput) {
  EXPECT_EQ(shell("cat; echo end").out, "end\n");
}

TEST(ChildProcess, IsEndedWithItsOwnChildrenWhenTheTimeIsOver) {
  const auto start = std::chrono::steady_clock::now();
  const ChildResult result = shell("sleep 1000 & sleep 1000", 0.05);
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.exit_status, 128 + 15);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

TEST(ChildProcess, IsKilledIfItDoesNotListen) {
  const ChildResult result = shell("trap '' TERM; echo ready; while :; do sleep 0.1; done", 0.2);
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.exit_status, 128 + 9);
}

TEST(ChildProcess, CanBeEndedByAnotherThread) {
  std::atomic<pid_t> group{0};
  std::thread ender([&group] {
    while (group == 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ::kill(-group, SIGTERM);
  });
  const ChildResult result =
      run_child("/bin/sh", {"sh", "-c", "sleep 1000"}, {{"PATH", "/usr/bin:/bin"}}, 500, &group);
  ender.join();
  EXPECT_EQ(result.exit_status, 128 + 15);
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(group, 0);
}

TEST(ChildProcess, ThatCannotBeStartedIsAnError) {
  try {
    run_child("/nonexistent/program", {"program"}, {}, 1);
    FAIL() << "started";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "/nonexistent/program: cannot start: No such file or directory");
  }
}

TEST(ChildProcess, ASignalIsReported) {
  EXPECT_EQ(shell("kill -SEGV $$").exit_status, 128 + 11);
}

} // namespace
} // namespace shmemctl
