// Failure detectors of a whole job in one process.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <set>

#include "src/base/text.h"
#include "src/runtime/bootstrap/bootstrap.h"
#include "src/runtime/failure_detector.h"
#include "src/runtime/failure_detector_tree.h"
#include "tests/support/failure_detector_world.h"
#include "tests/support/fork_world.h"

namespace shmemctl {
namespace {

using namespace test;

Error some_error() {
  return {ExitCode::finding, "the heap", "reserve", "no space", "lower SYMMETRIC_SIZE"};
}

void say_goodbye(FailureDetectors& detectors) {
  for (auto& failure_detector : detectors)
    failure_detector->goodbye();
}

class FailureDetectorOver : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(, FailureDetectorOver, testing::Bool(),
                         [](const auto& test) { return test.param ? "Tcp" : "Unix"; });

TEST_P(FailureDetectorOver, StartsAndEndsWithoutAFailure) {
  for (const int n_pes : {1, 2, 3, 4, 7, 16}) {
    FailureDetectors detectors = make_failure_detectors(n_pes, GetParam());
    const int family = GetParam() ? AF_INET : AF_UNIX;
    EXPECT_EQ(detectors.front()->addresses().back().front().family(), family);
    say_goodbye(detectors);
    // One leaves after the other, without a failure.
    while (!detectors.empty()) {
      detectors.erase(detectors.begin());
      for (const auto& failure_detector : detectors) {
        EXPECT_NO_THROW(failure_detector->check());
        EXPECT_EQ(failure_detector->failure(), nullptr);
      }
    }
  }
}

TEST_P(FailureDetectorOver, AFailureReachesAll) {
  for (const int failing : {0, 1, 5, 14}) {
    FailureDetectors detectors = make_failure_detectors(15, GetParam());
    detectors[static_cast<std::size_t>(failing)]->announce(some_error(), "heap");
    for (const auto& failure_detector : detectors) {
      const std::optional<Error> error = failure_of(*failure_detector);
      ASSERT_TRUE(error);
      const std::string pe = std::to_string(failing), host = failing % 2 == 0 ? "a" : "b";
      EXPECT_EQ(error->message(), "job: cannot continue: PE " + pe + " (host " + host +
                                      ") failed in phase heap: the heap: cannot reserve: no space");
      EXPECT_EQ(error->fix(), "lower SYMMETRIC_SIZE");
      EXPECT_EQ(error->code(), ExitCode::finding);
      EXPECT_EQ(failure_detector->failure()->pe, failing);
      EXPECT_EQ(failure_detector->failure()->phase, "heap");
    }
  }
}

TEST_P(FailureDetectorOver, APeThatLeavesWithoutAGoodbyeIsLost) {
  FailureDetectors detectors = make_failure_detectors(15, GetParam());
  detectors[3]->phase("heap");
  detectors[3].reset();
  for (const auto& failure_detector : detectors)
    if (failure_detector) {
      const std::optional<Error> error = failure_of(*failure_detector);
      ASSERT_TRUE(error);
      EXPECT_EQ(error->message(),
                "job: cannot continue: PE 3 (host b) was lost in phase heap: its connection ended");
      EXPECT_EQ(error->code(), ExitCode::unavailable);
    }
}

/// Only a PE that probes it learns of it; PE 0 alone must not be lost.
TEST_P(FailureDetectorOver, WithLossAllowedOnlyPeZeroFailsTheJob) {
  FailureDetectors detectors = make_failure_detectors(7, GetParam());
  for (auto& failure_detector : detectors)
    failure_detector->allow_loss();
  EXPECT_EQ(detectors[0]->presence(3, 10), Presence::answers);
  detectors[3].reset();
  detectors[1].reset();
  for (const int pe : {1, 3})
    EXPECT_EQ(detectors[0]->presence(pe, 10), Presence::gone) << pe;
  EXPECT_EQ(detectors[0]->presence(6, 10), Presence::answers);
  std::this_thread::sleep_for(std::chrono::milliseconds(300)); // for a notification that must not
                                                               // arrive
  for (const auto& failure_detector : detectors)
    if (failure_detector) {
      EXPECT_FALSE(health_of(*failure_detector));
    }
  // A PE that fails without being excluded is still a failure, and so is the end of PE 0.
  detectors[5]->exclude_self();
  EXPECT_TRUE(detectors[5]->announce(some_error(), "moe"));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_FALSE(health_of(*detectors[2]));
  detectors[0].reset();
  for (const auto& failure_detector : detectors)
    if (failure_detector) {
      const std::optional<Error> error = failure_of(*failure_detector);
      ASSERT_TRUE(error);
      EXPECT_NE(error->message().find("PE 0"), std::string::npos) << error->message();
    }
}

TEST(FailureDetector, TheFirstFailureWins) {
  FailureDetectors detectors = make_failure_detectors(7);
  detectors[4]->announce(some_error(), "heap");
  for (const auto& failure_detector : detectors)
    ASSERT_TRUE(failure_of(*failure_detector));
  detectors[2]->announce(Error(ExitCode::usage, "x", "do", "y", "z"), "nics");
  detectors[6].reset();
  detectors[5]->phase("teams");
  for (std::size_t pe = 0; pe < 6; ++pe)
    EXPECT_EQ(detectors[pe]->failure()->pe, 4);
}

/// A PE that is ended by a signal is not a lost PE.
TEST(FailureDetector, AnInterruptedPeAnnouncesIt) {
  FailureDetectors detectors = make_failure_detectors(4);
  detectors[1]->phase("bench put 1M");
  detectors[1]->announce(
      Error(ExitCode::interrupted, "the run", "finish", "interrupted by SIGTERM", "start it again"),
      "");
  detectors[1].reset();
  for (const auto& failure_detector : detectors)
    if (failure_detector) {
      const std::optional<Error> error = failure_of(*failure_detector);
      ASSERT_TRUE(error);
      EXPECT_EQ(
          error->message(),
          "job: cannot continue: PE 1 (host b) was interrupted by SIGTERM in phase bench put 1M");
      EXPECT_EQ(error->code(), ExitCode::interrupted);
      EXPECT_FALSE(failure_detector->failure()->unresponsive);
    }
}

TEST(FailureDetector, AnnouncingTellsWhetherItWasTheFirst) {
  FailureDetectors detectors = make_failure_detectors(3);
  EXPECT_TRUE(detectors[1]->announce(some_error(), "heap"));
  EXPECT_FALSE(detectors[1]->announce(Error(ExitCode::usage, "x", "do", "y", "z"), "nics"));
  ASSERT_TRUE(failure_of(*detectors[2]));
  EXPECT_FALSE(detectors[2]->announce(Error(ExitCode::usage, "x", "do", "y", "z"), "nics"));
  EXPECT_EQ(detectors[2]->failure()->pe, 1);
}

/// What await_cause() throws; nothing if it throws nothing.
std::optional<Error> cause_of(failure_detector::TreeFailureDetector& failure_detector, int peer) {
  try {
    failure_detector.await_cause(peer);
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

TEST(FailureDetector, TheCauseMayArriveAfterItsEffect) {
  for (const int peer : {1, -1}) {
    FailureDetectors detectors = make_failure_detectors(4);
    std::optional<Error> cause;
    std::atomic<bool> begun{false};
    std::thread waiting([&] {
      begun = true;
      cause = cause_of(*detectors[3], peer);
    });
    eventually([&] { return begun.load(); });
    detectors[1]->announce(some_error(), "heap");
    waiting.join();
    ASSERT_TRUE(cause);
    EXPECT_NE(cause->message().find("PE 1 (host b) failed in phase heap"), std::string::npos)
        << cause->message();
  }
}

TEST(FailureDetector, AMissingCauseIsNotAwaitedForLong) {
  FailureDetectors detectors = make_failure_detectors(3);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(cause_of(*detectors[0], 2));
  EXPECT_FALSE(cause_of(*detectors[0], 0)); // this PE itself
  EXPECT_FALSE(cause_of(*make_failure_detectors(1)[0], -1));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(40));
  EXPECT_EQ(detectors[0]->failure(), nullptr);
}

TEST(FailureDetector, AnnouncingAndLeavingAtOnceTellsTheReason) {
  for (int round = 0; round < 20; ++round) {
    FailureDetectors detectors = make_failure_detectors(7);
    detectors[1]->announce(some_error(), "heap");
    detectors[1].reset();
    for (const auto& failure_detector : detectors)
      if (failure_detector) {
        ASSERT_TRUE(failure_of(*failure_detector));
        EXPECT_EQ(failure_detector->failure()->phase, "heap");
        EXPECT_EQ(failure_detector->failure()->fix, "lower SYMMETRIC_SIZE");
      }
  }
}

TEST(FailureDetector, ThosePassingTheNewsOnMayLeaveAtOnce) {
  for (int round = 0; round < 20; ++round) {
    FailureDetectors detectors = make_failure_detectors(31);
    std::vector<std::thread> mains;
    std::vector<int> culprit(31, -1);
    for (std::size_t pe = 0; pe < detectors.size(); ++pe)
      mains.emplace_back([&, pe] {
        if (pe == 30)
          detectors[pe]->announce(some_error(), "heap");
        if (failure_of(*detectors[pe]))
          culprit[pe] = detectors[pe]->failure()->pe;
        detectors[pe].reset();
      });
    for (std::thread& main : mains)
      main.join();
    EXPECT_EQ(culprit, std::vector<int>(31, 30));
  }
}

TEST(FailureDetector, APeThatEndsNormallyBeforeTheOthersIsNotLost) {
  for (std::size_t first = 0; first < 15; ++first) {
    FailureDetectors detectors = make_failure_detectors(15);
    detectors[first]->goodbye();
    detectors[first].reset();
    // Its neighbours were notified before the connections closed: this is the first failure.
    const std::size_t failing = (first + 1) % 15;
    detectors[failing]->announce(some_error(), "barrier");
    for (const auto& failure_detector : detectors)
      if (failure_detector) {
        ASSERT_TRUE(failure_of(*failure_detector));
        EXPECT_EQ(failure_detector->failure()->pe, static_cast<int>(failing));
      }
  }
}

TEST(FailureDetector, EveryPeRepliesWithItsStatus) {
  FailureDetectors detectors = make_failure_detectors(9);
  const failure_detector::State asking(0, 9, job_secret, two_hosts(9));
  for (int pe = 0; pe < 9; ++pe) {
    const auto at = static_cast<std::size_t>(pe);
    detectors[at]->phase("first");
    detectors[at]->phase("phase-" + std::to_string(pe));
    detectors[at]->waiting_for(-1);
    // Its start has waited, or not.
    const auto before = failure_detector::ask(asking, detectors[0]->addresses(), pe, -1, 60);
    ASSERT_TRUE(before) << pe;
    detectors[at]->waiting_for(8 - pe);
    const auto status = failure_detector::ask(asking, detectors[0]->addresses(), pe, -1, 60);
    ASSERT_TRUE(status) << pe;
    EXPECT_EQ(status->phase.name, "phase-" + std::to_string(pe));
    EXPECT_EQ(status->phase.number, 2U);
    EXPECT_EQ(status->waiting_for, 8 - pe);
    EXPECT_EQ(status->calls, before->calls + 1);
    EXPECT_FALSE(status->knows_other);
  }
}

TEST(FailureDetector, NeighboursKnowEachOthersPhase) {
  FailureDetectors detectors = make_failure_detectors(9);
  const failure_detector::State asking(0, 9, job_secret, two_hosts(9));
  detectors[7]->phase("nics");
  for (const int neighbour : {1, 3})
    EXPECT_TRUE(eventually([&] {
      const auto status =
          failure_detector::ask(asking, detectors[0]->addresses(), neighbour, 7, 60);
      return status && status->knows_other && status->other.name == "nics";
    })) << neighbour;
  const auto stranger = failure_detector::ask(asking, detectors[0]->addresses(), 2, 7, 60);
  ASSERT_TRUE(stranger);
  EXPECT_FALSE(stranger->knows_other);
}

TEST_P(FailureDetectorOver, GiveUpNamesTheEndOfTheChainEverywhere) {
  FailureDetectors detectors = make_failure_detectors(6, GetParam());
  detectors[4]->phase("heap");
  detectors[2]->waiting_for(5);
  detectors[5]->waiting_for(4);
  try {
    detectors[0]->give_up("barrier", 2);
    FAIL() << "give_up() returned";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(),
              "barrier: cannot finish: PE 4 (host a) is in phase heap and waits for no other PE");
    EXPECT_EQ(error.code(), ExitCode::deadline);
  }
  for (const auto& failure_detector : detectors) {
    const std::optional<Error> error = failure_of(*failure_detector);
    ASSERT_TRUE(error);
    EXPECT_EQ(error->message(),
              "job: cannot continue: PE 4 (host a) is in phase heap and waits for no other PE");
    EXPECT_EQ(error->code(), ExitCode::deadline);
  }
}

TEST(FailureDetector, GiveUpOfAllAtOnceNamesOneCulprit) {
  FailureDetectors detectors = make_failure_detectors(16);
  detectors[9]->phase("heap");
  const auto waits_for = [](int pe) { return pe == 3 ? 9 : 3; };
  for (int pe = 0; pe < 16; ++pe)
    if (pe != 9)
      detectors[static_cast<std::size_t>(pe)]->waiting_for(waits_for(pe));
  std::vector<std::thread> mains;
  std::mutex mutex;
  std::multiset<std::string> culprits;
  for (int pe = 0; pe < 16; ++pe)
    if (pe != 9)
      mains.emplace_back([&, pe] {
        try {
          detectors[static_cast<std::size_t>(pe)]->give_up("barrier", waits_for(pe));
        } catch (const Error& error) {
          const std::lock_guard lock(mutex);
          culprits.insert(error.system_message());
          EXPECT_EQ(error.code(), ExitCode::deadline);
        }
      });
  for (std::thread& main : mains)
    main.join();
  EXPECT_EQ(culprits.count("PE 9 (host b) is in phase heap and waits for no other PE"), 15U);
  EXPECT_TRUE(failure_of(*detectors[9]));
}

TEST(FailureDetector, GiveUpWithoutAPeerAsksAll) {
  FailureDetectors detectors = make_failure_detectors(12);
  for (const auto& failure_detector : detectors)
    failure_detector->phase("heap");
  for (std::size_t pe = 0; pe < 12; ++pe)
    if (pe != 7 && pe != 10)
      detectors[pe]->phase("teams");
  try {
    detectors[0]->give_up("barrier", -1);
    FAIL() << "give_up() returned";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "barrier: cannot finish: PE 7 (host b) and PE 10 (host a) are still "
                               "in phase heap; others are in phase teams");
  }
  EXPECT_EQ(failure_of(*detectors[11])->code(), ExitCode::deadline);
}

TEST(FailureDetector, GiveUpAfterAFailureThrowsThatFailure) {
  FailureDetectors detectors = make_failure_detectors(4);
  detectors[3]->announce(some_error(), "heap");
  ASSERT_TRUE(failure_of(*detectors[0]));
  try {
    detectors[0]->give_up("barrier", 1);
    FAIL() << "give_up() returned";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::finding);
    EXPECT_NE(error.message().find("PE 3 (host b) failed in phase heap"), std::string::npos);
  }
}

TEST(FailureDetector, AJobOfOne) {
  FailureDetectors detectors = make_failure_detectors(1);
  detectors[0]->phase("heap");
  EXPECT_NO_THROW(detectors[0]->check());
  EXPECT_THROW(detectors[0]->give_up("quiet", -1), Error);
  detectors[0]->announce(some_error(), "heap");
  EXPECT_THROW(detectors[0]->check(), Error);
  detectors[0]->goodbye();
}

TEST(FailureDetector, WithoutAnyAddressAllPesSayWhichOne) {
  std::atomic<int> refused{0};
  failure_detector::Settings settings;
  settings.always_tcp = true;
  run_bootstrap_threads(3, [&](Bootstrap& bootstrap) {
    const auto mine = bootstrap.rank() == 1 ? std::vector<SocketAddress>{} : loopback();
    try {
      failure_detector::start(bootstrap, job_secret, mine, two_hosts(3), settings, in_seconds(60));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::unavailable);
      EXPECT_NE(error.message().find("PE 1 (host b) has no network address"), std::string::npos);
      ++refused;
    }
  });
  EXPECT_EQ(refused, 3);
}

TEST(FailureDetector, PublicStartUsesUnixOnOneMachine) {
  run_bootstrap_threads(3, [&](Bootstrap& bootstrap) {
    const auto failure_detector =
        FailureDetector::start(bootstrap, job_secret, {}, two_hosts(3), in_seconds(60));
    failure_detector->phase("heap");
    bootstrap.watch(failure_detector.get());
    bootstrap.barrier(in_seconds(60));
    failure_detector->goodbye();
    EXPECT_NO_THROW(failure_detector->check());
    bootstrap.watch(nullptr);
  });
}

TEST(FailureDetector, TcpConnectionsNoticeALostHost) {
  Listener listener(SocketAddress::parse("127.0.0.1:0"));
  const Socket socket = Socket::connect(listener.address(), "peer", in_seconds(60));
  failure_detector::watch_for_silence(socket);
  int value = 0;
  socklen_t length = sizeof value;
  ASSERT_EQ(::getsockopt(socket.descriptor(), SOL_SOCKET, SO_KEEPALIVE, &value, &length), 0);
  EXPECT_EQ(value, 1);
  ASSERT_EQ(::getsockopt(socket.descriptor(), IPPROTO_TCP, TCP_USER_TIMEOUT, &value, &length), 0);
  EXPECT_EQ(value, 15000);
  ASSERT_EQ(::getsockopt(socket.descriptor(), IPPROTO_TCP, TCP_KEEPIDLE, &value, &length), 0);
  EXPECT_EQ(value, 5);
}

} // namespace
} // namespace shmemctl

namespace shmemctl::failure_detector {
// Which addresses of other hosts a failure detector tries: no socket is opened.

namespace {

using Texts = std::vector<std::string>;

/// As on a host with the interfaces eth0 and eth1: a link-local address is tried through both.
std::vector<SocketAddress> through_two_interfaces(const SocketAddress& address) {
  if (!is_link_local(address) || address.family() != AF_INET6)
    return {address};
  const std::string text = address.text();
  const std::string host = text.substr(0, std::min(text.find('%'), text.find(']')));
  std::vector<SocketAddress> forms;
  for (const char* scope : {"%2", "%3"})
    forms.push_back(SocketAddress::parse(host + scope + text.substr(text.find(']'))));
  return forms;
}

Texts tried(const Texts& offered, bool same_network = false) {
  Texts texts;
  for (const SocketAddress& address :
       addresses_to_try(offered, same_network, through_two_interfaces))
    texts.push_back(address.text());
  return texts;
}

/// Its scope is the name of an interface that only the other host has.
TEST(FailureDetectorAddresses, AForeignLinkLocalAddressDoesNotEndTheJob) {
  EXPECT_EQ(tried({"10.77.0.2:5000", "[fe80::7c4c:1%enp5s0np0]:5000"}), Texts{"10.77.0.2:5000"});
  EXPECT_EQ(tried({"[fe80::7c4c:1%veth8f3a1c]:5000", "[fd77::2]:5000"}), Texts{"[fd77::2]:5000"});
}

TEST(FailureDetectorAddresses, LinkLocalIsTriedThroughEachInterfaceIfThereIsNothingElse) {
  const Texts forms = tried({"[fe80::1%enp5s0np0]:5000", "[::1]:5000"});
  ASSERT_EQ(forms.size(), 2U);
  for (const std::string& form : forms)
    EXPECT_TRUE(starts_with(form, "[fe80::1%")) << form;
}

TEST(FailureDetectorAddresses, LoopbackIsNotTriedForOtherHosts) {
  EXPECT_EQ(tried({"10.77.0.2:5000", "127.0.0.1:5000", "[::1]:5000"}), Texts{"10.77.0.2:5000"});
  EXPECT_EQ(tried({"127.0.0.1:5000"}), Texts{});
  EXPECT_EQ(tried({"127.0.0.1:5000"}, true), Texts{"127.0.0.1:5000"});
  EXPECT_FALSE(reachable_from_elsewhere({"127.0.0.1:5000", "unix:a"}));
  EXPECT_TRUE(reachable_from_elsewhere({"127.0.0.1:5000", "[fe80::1%nosuch0]:1"}));
}

TEST(FailureDetectorAddresses, SkipsMalformedAddresses) {
  EXPECT_EQ(tried({"nonsense", "[fe80::1%]:x", "10.0.0.1:99999", "10.77.0.2:5000"}),
            Texts{"10.77.0.2:5000"});
  EXPECT_FALSE(reachable_from_elsewhere({"nonsense"}));
}

TEST(FailureDetectorAddresses, KeepsTheOrderOfTheOfferingPe) {
  EXPECT_EQ(tried({"10.0.0.2:1", "172.17.0.1:2", "[fd77::2]:3"}),
            (Texts{"10.0.0.2:1", "172.17.0.1:2", "[fd77::2]:3"}));
}

} // namespace
} // namespace shmemctl::failure_detector

namespace shmemctl {
// Which PE asks the launcher to abort a job with a process that will not exit by itself.

namespace {

std::unique_ptr<Failure> failure_of(int pe, bool unresponsive) {
  auto failure = std::make_unique<Failure>();
  failure->pe = pe;
  failure->unresponsive = unresponsive;
  return failure;
}

TEST(NeedsAbort, OnePeRequestsTheAbortAndNeverTheStoppedOne) {
  for (int culprit = 0; culprit < 4; ++culprit) {
    int asking = 0;
    for (int pe = 0; pe < 4; ++pe)
      if (pe != culprit && needs_abort(failure_of(culprit, true), pe))
        ++asking;
    EXPECT_EQ(asking, 1) << culprit;
  }
  EXPECT_TRUE(needs_abort(failure_of(2, true), 0)) << "PE 0 has the report to write before";
}

TEST(NeedsAbort, APeThatExitsByItselfNeedsNoAbort) {
  EXPECT_FALSE(needs_abort(nullptr, 0));
  for (int pe = 0; pe < 3; ++pe)
    EXPECT_FALSE(needs_abort(failure_of(1, false), pe));
}

/// Writes into the pipe whenever it is called.
class AskedBootstrap final : public Bootstrap {
public:
  explicit AskedBootstrap(int out) : Bootstrap(0, 2), out_(out) {}
  const char* name() const override { return "asked"; }
  void allgather(const void*, void*, std::size_t, const Deadline&) override {}
  void alltoall(const void*, void*, std::size_t, const Deadline&) override {}
  void barrier(const Deadline&) override {}
  void broadcast(void*, std::size_t, int, const Deadline&) override {}
  void finish(const Deadline&) override {}
  void abort(ExitCode code, const std::string& message) noexcept override {
    const std::string text = message + " " + std::to_string(static_cast<int>(code));
    [[maybe_unused]] const ssize_t written = ::write(out_, text.data(), text.size());
  }

private:
  int out_;
};

/// After the rest of main(), and once.
TEST(AbortAtEnd, TheLauncherIsAskedWhenTheProcessEnds) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::close(ends[0]);
    for (const char* words : {"PE 2 does not answer", "second"})
      abort_at_end(std::make_unique<AskedBootstrap>(ends[1]), ExitCode::deadline, words);
    [[maybe_unused]] const ssize_t written = ::write(ends[1], "report; ", 8);
    std::exit(124);
  }
  ::close(ends[1]);
  std::string said;
  char byte = 0;
  while (::read(ends[0], &byte, 1) == 1)
    said += byte;
  ::close(ends[0]);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(said, "report; PE 2 does not answer 124");
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 124);
}

} // namespace
} // namespace shmemctl
