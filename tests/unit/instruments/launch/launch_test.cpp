// Jobs of real processes: how they end, and that no process remains.
#include "src/instruments/launch/launch.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <gtest/gtest.h>
#include <set>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "src/instruments/launch/processes.h"
#include "tests/unit/instruments/launch/capture.h"

namespace shmemctl {
namespace {

using test::Capture;

LaunchRequest shell(int n_pes, const std::string& script) {
  LaunchRequest request;
  request.command = {"sh", "-c", script};
  request.n_pes = n_pes;
  request.environment = {{"PATH", "/usr/bin:/bin"}, {"MARKER", std::to_string(::getpid())}};
  request.grace_s = 1;
  return request;
}

struct Ended : LaunchResult {
  std::string out, err;
};

Ended launch_here(const LaunchRequest& request) {
  const Capture capture;
  Ended ended{launch(request, [] { return "test-id-" + std::to_string(::getpid()); }), "", ""};
  ended.out = capture.out();
  ended.err = capture.err();
  return ended;
}

/// Waits generously: a killed process may still be exiting.
bool all_gone() {
  const std::string entry = "MARKER=" + std::to_string(::getpid());
  for (int i = 0; i < 6000; ++i) {
    if (processes_with(entry).empty())
      return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

TEST(Launch, EachPeKnowsItsRankAndNode) {
  LaunchRequest request =
      shell(5, "echo $SHMEMCTL_LOCAL_RANK of $SHMEMCTL_LOCAL_SIZE on $SHMEMCTL_LOCAL_NODE");
  request.n_nodes = 2;
  const Ended result = launch_here(request);
  EXPECT_EQ(result.exit_status, 0);
  EXPECT_EQ(test::sorted_lines(result.out),
            (std::vector<std::string>{"0 of 5 on 0", "1 of 5 on 0", "2 of 5 on 0", "3 of 5 on 1",
                                      "4 of 5 on 1"}));
}

TEST(Launch, OneNodeSetsNoNode) {
  LaunchRequest request = shell(1, "echo ${SHMEMCTL_LOCAL_NODE-none} $SHMEMCTL_LOCAL_ID");
  request.environment["SHMEMCTL_LOCAL_NODE"] = "7"; // of an outer run
  EXPECT_EQ(launch_here(request).out, "none test-id-" + std::to_string(::getpid()) + "\n");
}

TEST(Launch, FirstFailureDecides) {
  const Ended result = launch_here(shell(
      3, "if [ $SHMEMCTL_LOCAL_RANK = 1 ]; then echo out of luck >&2; exit 7; fi; sleep 100"));
  EXPECT_EQ(result.exit_status, 7);
  EXPECT_EQ(result.first_failed, 1);
  EXPECT_EQ(failure_line(result), "PE 1 ended with exit code 7; its last words: out of luck");
  EXPECT_TRUE(all_gone());
}

TEST(Launch, KilledPeEndsTheJob) {
  const Ended result =
      launch_here(shell(3, "if [ $SHMEMCTL_LOCAL_RANK = 2 ]; then kill -9 $$; fi; sleep 100"));
  EXPECT_EQ(result.exit_status, 137);
  EXPECT_EQ(result.ends[2].signal, SIGKILL);
  EXPECT_EQ(failure_line(result), "PE 2 was killed by signal 9 (Killed)");
  EXPECT_TRUE(all_gone());
}

/// In a job that continues without lost PEs, PE 0's exit status decides.
TEST(Launch, LostPesEndNothingWherePeZeroDecides) {
  for (const int code : {0, 1}) {
    LaunchRequest request =
        shell(3, "case $SHMEMCTL_LOCAL_RANK in 0) sleep 1.5; echo here; exit " +
                     std::to_string(code) + ";; 1) exit 7;; 2) kill -9 $$;; esac");
    request.loss_allowed = true;
    const Ended result = launch_here(request);
    EXPECT_EQ(result.out, "here\n") << "it had more than the second that others have";
    // No PE reported the loss: then the launcher does.
    EXPECT_EQ(result.exit_status, code == 1 ? 1 : 7);
    EXPECT_NE(result.err.find("PE 2 was killed by signal 9"), std::string::npos) << result.err;
  }
  LaunchRequest first = shell(3, "if [ $SHMEMCTL_LOCAL_RANK = 0 ]; then kill -9 $$; fi; sleep 100");
  first.loss_allowed = true;
  EXPECT_EQ(launch_here(first).exit_status, 137);
  LaunchRequest stopped = // the other PEs have waited for PE 0 until their deadline
      shell(2, "if [ $SHMEMCTL_LOCAL_RANK = 1 ]; then exit 124; fi; kill -STOP $$; sleep 100");
  stopped.loss_allowed = true;
  EXPECT_EQ(launch_here(stopped).exit_status, 124);
  EXPECT_TRUE(all_gone());
}

TEST(Launch, OthersMayNoticeByThemselves) {
  const Ended result = launch_here(
      shell(4, "trap 'echo terminated' TERM; echo 'shmemctl: error: no luck' >&2; exit 3"));
  EXPECT_EQ(result.exit_status, 3);
  EXPECT_EQ(result.out, "");
  EXPECT_NE(failure_line(result).find("all 4 PEs ended with exit code 3"), std::string::npos);
  EXPECT_NE(failure_line(result).find("last words: no luck"), std::string::npos);
}

TEST(Launch, AnEarlyExitWithSuccessIsNoFailure) {
  const Ended result = launch_here(
      shell(2, "if [ $SHMEMCTL_LOCAL_RANK = 0 ]; then exit 0; fi; sleep 0.2; echo still here"));
  EXPECT_EQ(result.exit_status, 0);
  EXPECT_EQ(result.out, "still here\n");
  EXPECT_EQ(failure_line(result), "");
}

TEST(Launch, KillsAPeThatIgnoresSigterm) {
  LaunchRequest request = shell(
      2, "if [ $SHMEMCTL_LOCAL_RANK = 0 ]; then exit 1; fi; trap '' TERM; while :; do sleep 1; "
         "done");
  request.grace_s = 0.2;
  const Ended result = launch_here(request);
  EXPECT_EQ(result.exit_status, 1);
  EXPECT_EQ(result.ends[1].signal, SIGKILL);
  EXPECT_TRUE(all_gone());
}

TEST(Launch, StoppedPeIsEndedToo) {
  LaunchRequest request =
      shell(2, "if [ $SHMEMCTL_LOCAL_RANK = 0 ]; then exit 1; fi; kill -STOP $$; sleep 100");
  EXPECT_EQ(launch_here(request).exit_status, 1);
  EXPECT_TRUE(all_gone());
}

TEST(Launch, GrandchildrenInSessionsOfTheirOwnAreEnded) {
  const Ended result = launch_here(
      shell(2, "setsid sh -c 'trap \"\" TERM HUP; while :; do sleep 1; done' & sleep 0.1"));
  EXPECT_EQ(result.exit_status, 0);
  EXPECT_TRUE(all_gone());
}

TEST(Launch, KeepsEarlierChildren) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::execl("/bin/sleep", "sleep", "100", nullptr);
    ::_exit(127);
  }
  { EXPECT_EQ(launch_here(shell(2, "true")).exit_status, 0); }
  EXPECT_EQ(::kill(child, 0), 0);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, WNOHANG), 0) << "it has ended";
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
}

TEST(Launch, ATimeoutNamesTheRunningPes) {
  LaunchRequest request = shell(3, "[ $SHMEMCTL_LOCAL_RANK = 1 ] || sleep 100");
  request.timeout_s = 3;
  const Ended result = launch_here(request);
  EXPECT_EQ(result.exit_status, 124);
  EXPECT_EQ(failure_line(result),
            "the job did not end within its deadline (--timeout); PEs 0, 2 still ran");
  EXPECT_TRUE(all_gone());
}

TEST(Launch, AnUnexecutableProgramIsAUsageError) {
  LaunchRequest request = shell(4, "");
  const auto message = [&request](const std::string& program) {
    request.command = {program};
    try {
      launch_here(request);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      return error.message() + "; " + error.fix();
    }
    return std::string("no error");
  };
  EXPECT_NE(message("no-such-program-here").find("no such program"), std::string::npos);
  EXPECT_NE(message("/etc/passwd").find("Permission denied"), std::string::npos);
  EXPECT_NE(message("/").find("Is a directory"), std::string::npos);
  const TemporaryFolder folder;
  const std::string script = folder.path() + "/script";
  std::ofstream(script) << "#!/no/such/interpreter\n";
  ASSERT_EQ(::chmod(script.c_str(), 0755), 0);
  EXPECT_EQ(message(script), script + ": cannot run: its interpreter /no/such/interpreter is "
                                      "missing; install it, or name another one in the first line");
  std::ofstream(script) << "#! /bin/sh\r\ntrue\r\n";
  EXPECT_EQ(message(script), script +
                                 ": cannot run: its first line ends with a carriage return; "
                                 "write its lines with line feeds only: sed -i 's/\\r$//' " +
                                 script);
  std::ofstream(folder.path() + "/text") << "not a program\n";
  ASSERT_EQ(::chmod((folder.path() + "/text").c_str(), 0755), 0);
  EXPECT_NE(message(folder.path() + "/text").find("Exec format error; pass a program for this"),
            std::string::npos);
  request.environment["LARGE"] = std::string(std::size_t{1} << 20, 'x'); // a string has 128 KiB
  EXPECT_NE(message("/bin/true").find("Argument list too long; pass fewer or shorter arguments"),
            std::string::npos);
  EXPECT_TRUE(all_gone());
}

TEST(Launch, TooManyNodesAreRefused) {
  LaunchRequest request = shell(2, "true");
  request.n_nodes = 3;
  EXPECT_THROW(launch_here(request), Error);
}

TEST(Launch, LeavesNoDescriptorOpenAndNoSignalBlocked) {
  const std::size_t before = test::open_descriptors();
  sigset_t mask_before, mask_after;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask_before);
  { launch_here(shell(3, "echo x; exit 1")); }
  pthread_sigmask(SIG_SETMASK, nullptr, &mask_after);
  EXPECT_EQ(test::open_descriptors(), before);
  for (int signal = 1; signal < 32; ++signal)
    EXPECT_EQ(sigismember(&mask_before, signal), sigismember(&mask_after, signal)) << signal;
}

TEST(Launch, PesInheritNoDescriptorButTheStandardOnes) {
  std::set<std::string> expected; // inherited from the process that started this test
  for (int descriptor = 0; descriptor < 1024; ++descriptor)
    if (const int flags = ::fcntl(descriptor, F_GETFD); flags >= 0 && (flags & FD_CLOEXEC) == 0)
      expected.insert(std::to_string(descriptor));
  LaunchRequest request = shell(1, "");
  request.command = {"ls", "/proc/self/fd"};
  std::set<std::string> found;
  for (const std::string& line : test::sorted_lines(launch_here(request).out))
    found.insert(line);
  for (const std::string& descriptor : expected)
    EXPECT_EQ(found.erase(descriptor), 1U) << descriptor;
  EXPECT_EQ(found.size(), 1U) << "more than the folder that ls reads";
}

TEST(NodeOfPe, BlocksDifferByAtMostOne) {
  for (int n_pes = 1; n_pes < 40; ++n_pes)
    for (int n_nodes = 1; n_nodes <= n_pes; ++n_nodes) {
      std::vector<int> count(static_cast<std::size_t>(n_nodes));
      int last = 0;
      for (int pe = 0; pe < n_pes; ++pe) {
        const int node = node_of_pe(pe, n_pes, n_nodes);
        ASSERT_GE(node, last);
        ASSERT_LT(node, n_nodes);
        last = node;
        ++count[static_cast<std::size_t>(node)];
      }
      const auto [least, most] = std::minmax_element(count.begin(), count.end());
      EXPECT_GE(*least, 1);
      EXPECT_LE(*most - *least, 1);
    }
}

} // namespace
} // namespace shmemctl
