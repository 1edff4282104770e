// A command that is watched: how it ends, and how it is ended.
#include "src/instruments/hotspots/watched_command.h"

#include <chrono>
#include <csignal>
#include <filesystem>
#include <gtest/gtest.h>
#include <thread>

#include "src/base/error.h"
#include "tests/support/temporary_folder.h"

using namespace shmemctl;

namespace {

const Environment path = {{"PATH", "/usr/bin:/bin"}};

/// A shell that ignores a signal, once `ready` exists.
std::string deaf_script(const char* signal, const std::string& ready) {
  return std::string("trap '' ") + signal + "; : > " + ready + "; while :; do sleep 0.1; done";
}

void wait_for(const std::string& file) {
  const Deadline deadline = Deadline::after(std::chrono::seconds(60));
  while (!std::filesystem::exists(file) && !deadline.passed())
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

CommandEnd end_of(WatchedCommand& command, double timeout_s = 0) {
  const Deadline deadline = Deadline::after(std::chrono::seconds(60));
  const Deadline limit = Deadline::after(std::chrono::duration<double>(timeout_s));
  while (!command.ended() && !deadline.passed()) {
    if (timeout_s > 0 && limit.passed())
      command.time_out();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_TRUE(command.ended());
  return command.end();
}

CommandEnd run(const std::string& script, double timeout_s = 0) {
  WatchedCommand command("/bin/sh", {"sh", "-c", script}, path, true);
  return end_of(command, timeout_s);
}

TEST(WatchedCommand, ItsExitCode) {
  EXPECT_EQ(run("exit 7").exit_code, 7);
  EXPECT_EQ(run("true").exit_code, 0);
  EXPECT_EQ(run("true").signal, "");
}

TEST(WatchedCommand, ASignalThatEndsIt) {
  const CommandEnd end = run("kill -KILL $$");
  EXPECT_EQ(end.exit_code, std::nullopt);
  EXPECT_EQ(end.signal, "SIGKILL");
  EXPECT_FALSE(end.timed_out);
}

TEST(WatchedCommand, ItsTimeIsOver) {
  const CommandEnd end = run("sleep 100", 0.05);
  EXPECT_TRUE(end.timed_out);
  EXPECT_EQ(end.signal, "SIGTERM");
  const TemporaryFolder folder;
  const std::string ready = folder.path() + "/ready";
  WatchedCommand deaf("/bin/sh", {"sh", "-c", deaf_script("TERM", ready)}, path, true);
  wait_for(ready);
  EXPECT_EQ(end_of(deaf, 0.01).signal, "SIGKILL");
}

TEST(WatchedCommand, SignalsAreForwardedAndASecondOneKills) {
  WatchedCommand polite("/bin/sh", {"sh", "-c", "sleep 100"}, path, true);
  EXPECT_FALSE(polite.interrupted());
  polite.hand_on(SIGTERM, false);
  EXPECT_TRUE(polite.interrupted());
  EXPECT_EQ(end_of(polite).signal, "SIGTERM");
  const TemporaryFolder folder;
  const std::string ready = folder.path() + "/ready";
  WatchedCommand deaf("/bin/sh", {"sh", "-c", deaf_script("INT", ready)}, path, true);
  wait_for(ready);
  deaf.hand_on(SIGINT, false);
  deaf.hand_on(SIGINT, false);
  EXPECT_EQ(end_of(deaf).signal, "SIGKILL");
}

TEST(WatchedCommand, OneThatCannotBeExecuted) {
  try {
    WatchedCommand command("/nowhere/program", {"program"}, {}, true);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
  }
}

} // namespace
