#include "src/base/wait.h"

#include <gtest/gtest.h>
#include <vector>

#include "src/base/error.h"

namespace shmemctl {
namespace {

using namespace std::chrono_literals;

/// A processor whose clock moves only when the wait yields (1 us) or sleeps.
struct FakeProcessor {
  using TimePoint = Deadline::Clock::time_point;
  static inline TimePoint time{};
  static inline int relaxes = 0, yields = 0, clock_reads = 0;
  static inline std::vector<std::chrono::microseconds> sleeps{};

  static TimePoint now() {
    ++clock_reads;
    return time;
  }
  static void relax() { ++relaxes; }
  static void yield() {
    ++yields;
    time += 1us;
  }
  static void sleep(std::chrono::microseconds span) {
    sleeps.push_back(span);
    time += span;
  }
  static void reset() {
    time = TimePoint{};
    relaxes = yields = clock_reads = 0;
    sleeps.clear();
  }
};

struct RecordedHealth final : JobHealth {
  std::vector<int> peers{}, network_peers{};
  mutable int checks = 0;
  bool failed = false;

  void check() const override {
    ++checks;
    if (failed)
      throw Error(ExitCode::unavailable, "PE 2", "reach", "it has exited",
                  "look at the output of PE 2");
  }
  void waiting_for(int peer) noexcept override { peers.push_back(peer); }
  void waiting_for_network(int peer) noexcept override { network_peers.push_back(peer); }
};

class WaitLoop : public testing::Test {
protected:
  void SetUp() override { FakeProcessor::reset(); }
  using Backoff = BasicBackoff<FakeProcessor>;
  using Wait = BasicWait<FakeProcessor>;
};

TEST_F(WaitLoop, SpinsFirstAndReadsNoClockMeanwhile) {
  RecordedHealth health;
  Wait wait(health, 1, {"barrier", 3});
  for (int i = 0; i < 100; ++i)
    EXPECT_FALSE(wait.pause());
  EXPECT_EQ(FakeProcessor::relaxes, 100);
  EXPECT_EQ(FakeProcessor::yields, 0);
  EXPECT_EQ(FakeProcessor::clock_reads, 0);
  EXPECT_EQ(health.checks, 0);
  EXPECT_TRUE(health.peers.empty()) << "short waits tell nobody";
}

TEST_F(WaitLoop, YieldsThenSleepsTwiceAsLongEachTime) {
  Backoff backoff({.spins = 2, .yields = 3, .first_sleep = 10us, .max_sleep = 50us});
  for (int i = 0; i < 2 + 3 + 4; ++i)
    backoff.pause();
  EXPECT_EQ(FakeProcessor::relaxes, 2);
  EXPECT_EQ(FakeProcessor::yields, 3);
  EXPECT_EQ(FakeProcessor::sleeps,
            (std::vector<std::chrono::microseconds>{10us, 20us, 40us, 50us}));
}

TEST_F(WaitLoop, ChecksAfterSomeYieldsAndAfterEverySleep) {
  Backoff backoff({.spins = 0, .yields = 8, .yields_per_check = 4});
  std::vector<int> checks;
  for (int i = 1; i <= 11; ++i)
    if (backoff.pause())
      checks.push_back(i);
  EXPECT_EQ(checks, (std::vector<int>{4, 8, 9, 10, 11}));
}

TEST_F(WaitLoop, YieldsOverANetworkForATimeAndNotForANumber) {
  Backoff backoff({.spins = 1, .relaxes = false, .yields = 3, .min_yield_time = 100us});
  while (FakeProcessor::sleeps.empty())
    backoff.pause();
  EXPECT_EQ(FakeProcessor::relaxes, 0);
  EXPECT_GE(FakeProcessor::yields, 100);
  EXPECT_LT(FakeProcessor::yields, 100 + 2 * 16);
}

TEST_F(WaitLoop, EndsAtTheDeadlineAndNamesStepAndPeer) {
  RecordedHealth health;
  Wait wait(health, 0.01, {"barrier", 3});
  try {
    for (int i = 0; i < 100'000; ++i)
      wait.pause();
    ADD_FAILURE() << "no timeout";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::deadline);
    EXPECT_NE(std::string(error.message()).find("barrier"), std::string::npos) << error.message();
    EXPECT_NE(std::string(error.message()).find("PE 3"), std::string::npos) << error.message();
  }
  const auto waited = FakeProcessor::time.time_since_epoch();
  EXPECT_GE(waited, 10ms);
  EXPECT_LT(waited, 11ms);
}

TEST_F(WaitLoop, ThrowsTheFailureOfAnotherPe) {
  RecordedHealth health;
  Wait wait(health, 1, {"barrier", 3});
  while (!wait.pause()) {
  }
  health.failed = true;
  EXPECT_THROW(
      {
        for (int i = 0; i < 1000; ++i)
          wait.pause();
      },
      Error);
  EXPECT_LT(FakeProcessor::time.time_since_epoch(), 1s);
}

TEST_F(WaitLoop, AnnouncesThePeerFromTheFirstCheckToTheEnd) {
  RecordedHealth health;
  {
    Wait wait(health, 1, {"barrier", 3});
    while (!wait.pause()) {
    }
    wait.set_peer(4);
    wait.set_peer(4);
    EXPECT_EQ(health.peers, (std::vector<int>{3, 4}));
  }
  EXPECT_EQ(health.peers, (std::vector<int>{3, 4, -1}));
  {
    Wait quiet(health, 1, {"quiet", 5, true});
    quiet.announce();
    EXPECT_EQ(health.network_peers, (std::vector<int>{5}));
  }
}

TEST_F(WaitLoop, LeavesTheAnnouncementWhenItThrows) {
  RecordedHealth health;
  EXPECT_THROW(
      {
        Wait wait(health, Deadline(FakeProcessor::time), {"barrier", 3});
        wait.check();
      },
      Error);
  EXPECT_EQ(health.peers, (std::vector<int>{3}));
}

TEST_F(WaitLoop, AWaitForNoPeInParticularIsNotAnnounced) {
  RecordedHealth health;
  {
    Wait wait(health, 1, {"team split"});
    wait.check();
  }
  EXPECT_EQ(health.checks, 1);
  EXPECT_TRUE(health.peers.empty());
}

TEST_F(WaitLoop, ProgressBeginsTheTimeoutAnew) {
  RecordedHealth health;
  Wait wait(health, 0.01, {"quiet", 1});
  while (FakeProcessor::time.time_since_epoch() < 9ms)
    wait.pause();
  wait.progressed();
  while (FakeProcessor::time.time_since_epoch() < 18ms)
    wait.pause();
  EXPECT_THROW(
      {
        while (FakeProcessor::time.time_since_epoch() < 25ms)
          wait.pause();
      },
      Error);
}

TEST_F(WaitLoop, ChecksNoMoreOftenThanItsInterval) {
  RecordedHealth health;
  Wait wait(health, 1, {"quiet", 1}, {.yields_per_check = 1, .check_interval = 5ms});
  while (FakeProcessor::time.time_since_epoch() < 51ms)
    wait.pause();
  EXPECT_GE(health.checks, 9);
  EXPECT_LE(health.checks, 10);
}

TEST_F(WaitLoop, AsksWhoIsMissingOnlyAtTheDeadline) {
  RecordedHealth health;
  int asked = 0;
  Wait wait(health, Deadline(FakeProcessor::time + 1ms),
            {.step = "MPI_Ibarrier", .find_peer = [&asked] {
               ++asked;
               return 7;
             }});
  wait.check();
  EXPECT_EQ(asked, 0);
  FakeProcessor::time += 1ms;
  try {
    wait.check();
    ADD_FAILURE() << "the deadline has passed";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.message()).find("PE 7"), std::string::npos) << error.message();
  }
  EXPECT_EQ(asked, 1);
}

} // namespace
} // namespace shmemctl
