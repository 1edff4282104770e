// Lifelines of a whole job in one process.
#include "src/runtime/lifeline.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <set>

#include "tests/support/lifeline_world.h"

namespace shmemctl {
namespace {

using namespace test;

Error some_error() {
  return {ExitCode::finding, "the heap", "reserve", "no space", "lower SYMMETRIC_SIZE"};
}

void say_goodbye(Lifelines& lifelines) {
  for (auto& lifeline : lifelines)
    lifeline->goodbye();
}

class LifelineOver : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(, LifelineOver, testing::Bool(),
                         [](const auto& test) { return test.param ? "Tcp" : "Unix"; });

TEST_P(LifelineOver, StartsAndEndsWithoutAFailure) {
  for (const int n_pes : {1, 2, 3, 4, 7, 16}) {
    Lifelines lifelines = make_lifelines(n_pes, GetParam());
    const int family = GetParam() ? AF_INET : AF_UNIX;
    EXPECT_EQ(lifelines.front()->addresses().back().front().family(), family);
    say_goodbye(lifelines);
    // One leaves after the other, and nobody minds.
    while (!lifelines.empty()) {
      lifelines.erase(lifelines.begin());
      for (const auto& lifeline : lifelines) {
        EXPECT_NO_THROW(lifeline->check());
        EXPECT_EQ(lifeline->failure(), nullptr);
      }
    }
  }
}

TEST_P(LifelineOver, AFailureReachesAll) {
  for (const int failing : {0, 1, 5, 14}) {
    Lifelines lifelines = make_lifelines(15, GetParam());
    lifelines[static_cast<std::size_t>(failing)]->announce(some_error(), "heap");
    for (const auto& lifeline : lifelines) {
      const std::optional<Error> error = failure_of(*lifeline);
      ASSERT_TRUE(error);
      const std::string pe = std::to_string(failing), host = failing % 2 == 0 ? "a" : "b";
      EXPECT_EQ(error->message(), "job: cannot continue: PE " + pe + " (host " + host +
                                      ") failed in phase heap: cannot reserve the heap: no space");
      EXPECT_EQ(error->fix(), "lower SYMMETRIC_SIZE");
      EXPECT_EQ(error->code(), ExitCode::finding);
      EXPECT_EQ(lifeline->failure()->pe, failing);
      EXPECT_EQ(lifeline->failure()->phase, "heap");
    }
  }
}

TEST_P(LifelineOver, APeThatLeavesWithoutAWordIsLost) {
  Lifelines lifelines = make_lifelines(15, GetParam());
  lifelines[3]->phase("heap");
  lifelines[3].reset();
  for (const auto& lifeline : lifelines)
    if (lifeline) {
      const std::optional<Error> error = failure_of(*lifeline);
      ASSERT_TRUE(error);
      EXPECT_EQ(error->message(),
                "job: cannot continue: PE 3 (host b) was lost in phase heap: its connection ended");
      EXPECT_EQ(error->code(), ExitCode::unavailable);
    }
}

/// Nobody hears of it but who asks; PE 0 alone may not be lost.
TEST_P(LifelineOver, WhereLossIsAllowedOnlyPeZeroIsMissed) {
  Lifelines lifelines = make_lifelines(7, GetParam());
  for (auto& lifeline : lifelines)
    lifeline->allow_loss();
  EXPECT_EQ(lifelines[0]->presence(3, 10), Presence::answers);
  lifelines[3].reset();
  lifelines[1].reset();
  for (const int pe : {1, 3})
    EXPECT_EQ(lifelines[0]->presence(pe, 10), Presence::gone) << pe;
  EXPECT_EQ(lifelines[0]->presence(6, 10), Presence::answers);
  std::this_thread::sleep_for(std::chrono::milliseconds(300)); // for a notice that must not come
  for (const auto& lifeline : lifelines)
    if (lifeline) {
      EXPECT_FALSE(health_of(*lifeline));
    }
  // What fails without being left alone is a failure as ever, and so is the end of PE 0.
  lifelines[5]->step_aside();
  EXPECT_TRUE(lifelines[5]->announce(some_error(), "moe"));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_FALSE(health_of(*lifelines[2]));
  lifelines[0].reset();
  for (const auto& lifeline : lifelines)
    if (lifeline) {
      const std::optional<Error> error = failure_of(*lifeline);
      ASSERT_TRUE(error);
      EXPECT_NE(error->message().find("PE 0"), std::string::npos) << error->message();
    }
}

TEST(Lifeline, TheFirstFailureWins) {
  Lifelines lifelines = make_lifelines(7);
  lifelines[4]->announce(some_error(), "heap");
  for (const auto& lifeline : lifelines)
    ASSERT_TRUE(failure_of(*lifeline));
  lifelines[2]->announce(Error(ExitCode::usage, "x", "do", "y", "z"), "nics");
  lifelines[6].reset();
  lifelines[5]->phase("teams");
  for (std::size_t pe = 0; pe < 6; ++pe)
    EXPECT_EQ(lifelines[pe]->failure()->pe, 4);
}

/// A PE that a signal ends is no PE that was lost.
TEST(Lifeline, WhoIsInterruptedSaysSo) {
  Lifelines lifelines = make_lifelines(4);
  lifelines[1]->phase("bench put 1M");
  lifelines[1]->announce(
      Error(ExitCode::interrupted, "the run", "finish", "interrupted by SIGTERM", "start it again"),
      "");
  lifelines[1].reset();
  for (const auto& lifeline : lifelines)
    if (lifeline) {
      const std::optional<Error> error = failure_of(*lifeline);
      ASSERT_TRUE(error);
      EXPECT_EQ(
          error->message(),
          "job: cannot continue: PE 1 (host b) was interrupted by SIGTERM in phase bench put 1M");
      EXPECT_EQ(error->code(), ExitCode::interrupted);
      EXPECT_FALSE(lifeline->failure()->unresponsive);
    }
}

TEST(Lifeline, AnnouncingTellsWhetherItWasTheFirst) {
  Lifelines lifelines = make_lifelines(3);
  EXPECT_TRUE(lifelines[1]->announce(some_error(), "heap"));
  EXPECT_FALSE(lifelines[1]->announce(Error(ExitCode::usage, "x", "do", "y", "z"), "nics"));
  ASSERT_TRUE(failure_of(*lifelines[2]));
  EXPECT_FALSE(lifelines[2]->announce(Error(ExitCode::usage, "x", "do", "y", "z"), "nics"));
  EXPECT_EQ(lifelines[2]->failure()->pe, 1);
}

/// What await_cause() throws; nothing if it throws nothing.
std::optional<Error> cause_of(lifeline::TreeLifeline& lifeline, int peer) {
  try {
    lifeline.await_cause(peer);
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

TEST(Lifeline, TheCauseMayComeAfterItsEffect) {
  for (const int peer : {1, -1}) {
    Lifelines lifelines = make_lifelines(4);
    std::optional<Error> cause;
    std::atomic<bool> begun{false};
    std::thread waiting([&] {
      begun = true;
      cause = cause_of(*lifelines[3], peer);
    });
    eventually([&] { return begun.load(); });
    lifelines[1]->announce(some_error(), "heap");
    waiting.join();
    ASSERT_TRUE(cause);
    EXPECT_NE(cause->message().find("PE 1 (host b) failed in phase heap"), std::string::npos)
        << cause->message();
  }
}

TEST(Lifeline, ACauseThatDoesNotComeIsNotWaitedForLong) {
  Lifelines lifelines = make_lifelines(3);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(cause_of(*lifelines[0], 2));
  EXPECT_FALSE(cause_of(*lifelines[0], 0)); // this PE itself
  EXPECT_FALSE(cause_of(*make_lifelines(1)[0], -1));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(40));
  EXPECT_EQ(lifelines[0]->failure(), nullptr);
}

TEST(Lifeline, AnnouncingAndLeavingAtOnceTellsTheReason) {
  for (int round = 0; round < 20; ++round) {
    Lifelines lifelines = make_lifelines(7);
    lifelines[1]->announce(some_error(), "heap");
    lifelines[1].reset();
    for (const auto& lifeline : lifelines)
      if (lifeline) {
        ASSERT_TRUE(failure_of(*lifeline));
        EXPECT_EQ(lifeline->failure()->phase, "heap");
        EXPECT_EQ(lifeline->failure()->fix, "lower SYMMETRIC_SIZE");
      }
  }
}

TEST(Lifeline, ThosePassingTheNewsOnMayLeaveAtOnce) {
  for (int round = 0; round < 20; ++round) {
    Lifelines lifelines = make_lifelines(31);
    std::vector<std::thread> mains;
    std::vector<int> culprit(31, -1);
    for (std::size_t pe = 0; pe < lifelines.size(); ++pe)
      mains.emplace_back([&, pe] {
        if (pe == 30)
          lifelines[pe]->announce(some_error(), "heap");
        if (failure_of(*lifelines[pe]))
          culprit[pe] = lifelines[pe]->failure()->pe;
        lifelines[pe].reset();
      });
    for (std::thread& main : mains)
      main.join();
    EXPECT_EQ(culprit, std::vector<int>(31, 30));
  }
}

TEST(Lifeline, APeThatEndsNormallyBeforeTheOthersIsNotLost) {
  for (std::size_t first = 0; first < 15; ++first) {
    Lifelines lifelines = make_lifelines(15);
    lifelines[first]->goodbye();
    lifelines[first].reset();
    // Its neighbours were told before the connections ended: this is the first failure.
    const std::size_t failing = (first + 1) % 15;
    lifelines[failing]->announce(some_error(), "barrier");
    for (const auto& lifeline : lifelines)
      if (lifeline) {
        ASSERT_TRUE(failure_of(*lifeline));
        EXPECT_EQ(lifeline->failure()->pe, static_cast<int>(failing));
      }
  }
}

TEST(Lifeline, StatusIsAnsweredByEveryPe) {
  Lifelines lifelines = make_lifelines(9);
  const lifeline::State asking(0, 9, job_secret, two_hosts(9));
  for (int pe = 0; pe < 9; ++pe) {
    const auto at = static_cast<std::size_t>(pe);
    lifelines[at]->phase("first");
    lifelines[at]->phase("phase-" + std::to_string(pe));
    lifelines[at]->waiting_for(-1);
    lifelines[at]->waiting_for(8 - pe);
    const auto status = lifeline::ask(asking, lifelines[0]->addresses(), pe, -1, 60);
    ASSERT_TRUE(status) << pe;
    EXPECT_EQ(status->phase.name, "phase-" + std::to_string(pe));
    EXPECT_EQ(status->phase.number, 2U);
    EXPECT_EQ(status->waiting_for, 8 - pe);
    EXPECT_EQ(status->calls, 1U);
    EXPECT_FALSE(status->knows_other);
  }
}

TEST(Lifeline, NeighboursKnowEachOthersPhase) {
  Lifelines lifelines = make_lifelines(9);
  const lifeline::State asking(0, 9, job_secret, two_hosts(9));
  lifelines[7]->phase("nics");
  for (const int neighbour : {1, 3})
    EXPECT_TRUE(eventually([&] {
      const auto status = lifeline::ask(asking, lifelines[0]->addresses(), neighbour, 7, 60);
      return status && status->knows_other && status->other.name == "nics";
    })) << neighbour;
  const auto stranger = lifeline::ask(asking, lifelines[0]->addresses(), 2, 7, 60);
  ASSERT_TRUE(stranger);
  EXPECT_FALSE(stranger->knows_other);
}

TEST_P(LifelineOver, GiveUpNamesTheEndOfTheChainEverywhere) {
  Lifelines lifelines = make_lifelines(6, GetParam());
  lifelines[4]->phase("heap");
  lifelines[2]->waiting_for(5);
  lifelines[5]->waiting_for(4);
  try {
    lifelines[0]->give_up("barrier", 2);
    FAIL() << "give_up() returned";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(),
              "barrier: cannot finish: PE 4 (host a) is in phase heap and waits for nobody");
    EXPECT_EQ(error.code(), ExitCode::deadline);
  }
  for (const auto& lifeline : lifelines) {
    const std::optional<Error> error = failure_of(*lifeline);
    ASSERT_TRUE(error);
    EXPECT_EQ(error->message(),
              "job: cannot continue: PE 4 (host a) is in phase heap and waits for nobody");
    EXPECT_EQ(error->code(), ExitCode::deadline);
  }
}

TEST(Lifeline, GiveUpOfAllAtOnceNamesOneCulprit) {
  Lifelines lifelines = make_lifelines(16);
  lifelines[9]->phase("heap");
  const auto waits_for = [](int pe) { return pe == 3 ? 9 : 3; };
  for (int pe = 0; pe < 16; ++pe)
    if (pe != 9)
      lifelines[static_cast<std::size_t>(pe)]->waiting_for(waits_for(pe));
  std::vector<std::thread> mains;
  std::mutex mutex;
  std::multiset<std::string> culprits;
  for (int pe = 0; pe < 16; ++pe)
    if (pe != 9)
      mains.emplace_back([&, pe] {
        try {
          lifelines[static_cast<std::size_t>(pe)]->give_up("barrier", waits_for(pe));
        } catch (const Error& error) {
          const std::lock_guard lock(mutex);
          culprits.insert(error.system_message());
          EXPECT_EQ(error.code(), ExitCode::deadline);
        }
      });
  for (std::thread& main : mains)
    main.join();
  EXPECT_EQ(culprits.count("PE 9 (host b) is in phase heap and waits for nobody"), 15U);
  EXPECT_TRUE(failure_of(*lifelines[9]));
}

TEST(Lifeline, GiveUpWithoutAPeerAsksAll) {
  Lifelines lifelines = make_lifelines(12);
  for (const auto& lifeline : lifelines)
    lifeline->phase("heap");
  for (std::size_t pe = 0; pe < 12; ++pe)
    if (pe != 7 && pe != 10)
      lifelines[pe]->phase("teams");
  try {
    lifelines[0]->give_up("barrier", -1);
    FAIL() << "give_up() returned";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "barrier: cannot finish: PE 7 (host b) and PE 10 (host a) are still "
                               "in phase heap; others are in phase teams");
  }
  EXPECT_EQ(failure_of(*lifelines[11])->code(), ExitCode::deadline);
}

TEST(Lifeline, GiveUpAfterAFailureThrowsThatFailure) {
  Lifelines lifelines = make_lifelines(4);
  lifelines[3]->announce(some_error(), "heap");
  ASSERT_TRUE(failure_of(*lifelines[0]));
  try {
    lifelines[0]->give_up("barrier", 1);
    FAIL() << "give_up() returned";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::finding);
    EXPECT_NE(error.message().find("PE 3 (host b) failed in phase heap"), std::string::npos);
  }
}

TEST(Lifeline, AJobOfOne) {
  Lifelines lifelines = make_lifelines(1);
  lifelines[0]->phase("heap");
  EXPECT_NO_THROW(lifelines[0]->check());
  EXPECT_THROW(lifelines[0]->give_up("quiet", -1), Error);
  lifelines[0]->announce(some_error(), "heap");
  EXPECT_THROW(lifelines[0]->check(), Error);
  lifelines[0]->goodbye();
}

TEST(Lifeline, WithoutAnyAddressAllPesSayWhichOne) {
  std::atomic<int> refused{0};
  lifeline::Settings settings;
  settings.always_tcp = true;
  run_bootstrap_threads(3, [&](Bootstrap& bootstrap) {
    const auto mine = bootstrap.rank() == 1 ? std::vector<SocketAddress>{} : loopback();
    try {
      lifeline::start(bootstrap, job_secret, mine, two_hosts(3), settings, in_seconds(60));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::unavailable);
      EXPECT_NE(error.message().find("PE 1 (host b) has no network address"), std::string::npos);
      ++refused;
    }
  });
  EXPECT_EQ(refused, 3);
}

TEST(Lifeline, PublicStartUsesUnixOnOneMachine) {
  run_bootstrap_threads(3, [&](Bootstrap& bootstrap) {
    const auto lifeline = Lifeline::start(bootstrap, job_secret, {}, two_hosts(3), in_seconds(60));
    lifeline->phase("heap");
    bootstrap.watch(lifeline.get());
    bootstrap.barrier(in_seconds(60));
    lifeline->goodbye();
    EXPECT_NO_THROW(lifeline->check());
    bootstrap.watch(nullptr);
  });
}

TEST(Lifeline, TcpConnectionsNoticeALostHost) {
  Listener listener(SocketAddress::parse("127.0.0.1:0"));
  const Socket socket = Socket::connect(listener.address(), "peer", in_seconds(60));
  lifeline::watch_for_silence(socket);
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
