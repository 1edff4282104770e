#include "src/instruments/launch/processes.h"

#include <array>
#include <csignal>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/instruments/launch/spawn.h"

namespace shmemctl {
namespace {

TEST(ParseStat, ReadsNamesWithBlanksAndParentheses) {
  const std::string rest = " S 17 42 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1000 200";
  for (const char* name : {"(sh)", "(a b)", "(a) R 1 (b)", "()", "(x\ny)"}) {
    ProcessName process;
    ASSERT_TRUE(parse_stat("123 " + std::string(name) + rest, process)) << name;
    EXPECT_EQ(process.pid, 123);
    EXPECT_EQ(process.parent, 17);
    EXPECT_EQ(process.start, 98765U);
    EXPECT_EQ(process.state, 'S');
  }
}

TEST(ParseStat, RefusesEverythingElse) {
  ProcessName process;
  for (const char* text :
       {"", "1", "1 (a)", "1 (a) S", "1 (a) S x 3 4", ") (", "-1 (a) S 1",
        "1 (a) S 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19",
        "x (a) S 17 42 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1000 200",
        "1 (a) S 99999999999 42 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1000 200"})
    EXPECT_FALSE(parse_stat(text, process)) << text;
}

TEST(Descendants, FindsChildrenOfChildrenButNotTheExcluded) {
  Pipe ready = Pipe::make();
  const pid_t child = ::fork();
  if (child == 0) {
    const pid_t grandchild = ::fork();
    if (grandchild == 0) {
      ::setsid();
      static_cast<void>(!::write(ready.write_end.get(), "x", 1));
      ::pause();
    }
    ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(ready.read_end.get(), &byte, 1), 1);
  const std::vector<ProcessName> found = descendants(::getpid(), {});
  EXPECT_EQ(found.size(), 2U);
  EXPECT_TRUE(descendants(::getpid(), {child}).empty());
  EXPECT_EQ(children(::getpid()).count(child), 1U);
  for (const ProcessName& process : found)
    signal_process(process, SIGKILL);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
}

TEST(SignalProcess, DoesNotHitAnotherProcessWithThatNumber) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  signal_process({child, ::getpid(), 1, 'S'}, SIGKILL); // started at another time
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, WNOHANG), 0);
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
}

TEST(ProcessesWith, MatchesWholeEntriesOnly) {
  Pipe ready = Pipe::make();
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ready.write_end.get(), 1);
    ::execle("/bin/sh", "sh", "-c", "echo x; exec sleep 100", nullptr,
             std::array<const char*, 3>{"A_B=one two", "A_C=xA_B=three", nullptr}.data());
    ::_exit(127);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready.read_end.get(), &byte, 1), 1);
  const auto finds = [child](const std::string& entry) {
    for (const ProcessName& process : processes_with(entry))
      if (process.pid == child)
        return true;
    return false;
  };
  EXPECT_TRUE(finds("A_B=one two"));
  EXPECT_FALSE(finds("A_B=one"));
  EXPECT_FALSE(finds("A_B=three"));
  EXPECT_FALSE(finds("B=one two"));
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
}

} // namespace
} // namespace shmemctl
