// Failure detectors of forked processes that are killed and stopped.
#include <algorithm>
#include <cstdlib>
#include <gtest/gtest.h>
#include <iostream>

#include "tests/support/failure_detector_world.h"
#include "tests/support/fork_world.h"

namespace shmemctl {
namespace {

using namespace test;

// States of a ForkSlot.
constexpr int ready = 1, waiting = 2, learnt = 3;
// Commands.
constexpr int fail = 1, wait_for_next = 2, give_up_on_next = 3, give_up_on_all = 4;

struct Job {
  bool over_tcp = false;
  int poll_us = 500;
};

void report(ForkSlot& slot, const Error& error) {
  slot.changed_ns = now_ns();
  slot.code = static_cast<int>(error.code());
  slot.say(error.message());
  slot.state.store(learnt, std::memory_order_release);
}

/// Starts a failure detector, waits for commands and failures, reports when it was notified of one,
/// and stays.
void live(Bootstrap& bootstrap, ForkSlot& slot, const Job& job) {
  failure_detector::Settings settings;
  settings.always_tcp = job.over_tcp;
  const auto failure_detector = failure_detector::start(
      bootstrap, job_secret, job.over_tcp ? loopback() : std::vector<SocketAddress>{},
      two_hosts(bootstrap.size()), settings, in_seconds(60));
  const int next = (bootstrap.rank() + 1) % bootstrap.size();
  failure_detector->phase("heap");
  bootstrap.barrier(in_seconds(60));
  slot.state.store(ready, std::memory_order_release);
  try {
    for (;;) {
      failure_detector->check();
      const int command = slot.command.exchange(0);
      if (command == fail)
        failure_detector->announce(Error(ExitCode::finding, "x", "do", "y", "z"), "heap");
      if (command == wait_for_next) {
        failure_detector->waiting_for(next);
        slot.state.store(waiting, std::memory_order_release);
      }
      if (command == give_up_on_next)
        failure_detector->give_up("barrier", next);
      if (command == give_up_on_all)
        failure_detector->give_up("barrier", -1);
      std::this_thread::sleep_for(std::chrono::microseconds(job.poll_us));
    }
  } catch (const Error& error) {
    report(slot, error);
  }
  for (;;)
    ::pause();
}

class World : public ForkWorld {
public:
  explicit World(int n_pes, const Job& job = {})
      : ForkWorld(n_pes,
                  [job](Bootstrap& bootstrap, ForkSlot& slot) { live(bootstrap, slot, job); }) {
    std::vector<int> all;
    for (int pe = 0; pe < n_pes; ++pe)
      all.push_back(pe);
    if (!await(all, ready))
      throw std::runtime_error("the job did not start: " + std::string(slot(0).text.data()));
  }

  bool await(const std::vector<int>& pes, int state) {
    return eventually([&] {
      return std::all_of(pes.begin(), pes.end(), [&](int pe) {
        return slot(pe).state.load(std::memory_order_acquire) >= state;
      });
    });
  }
  std::vector<int> all_but(std::vector<int> left_out) {
    std::vector<int> pes;
    for (int pe = 0; pe < size(); ++pe)
      if (std::count(left_out.begin(), left_out.end(), pe) == 0)
        pes.push_back(pe);
    return pes;
  }
  std::string text(int pe) { return slot(pe).text.data(); }
  /// The time from `since_ns` until the last of `pes` was notified.
  double last_knew_ms(const std::vector<int>& pes, std::int64_t since_ns) {
    std::int64_t last = since_ns;
    for (const int pe : pes)
      last = std::max(last, slot(pe).changed_ns.load());
    return static_cast<double>(last - since_ns) / 1e6;
  }
};

/// In which a failure is known to all. Whether it is as quick as it should be is asked on a quiet
/// machine only.
double quick_ms() {
  return std::getenv("SHMEMCTL_SOAK") != nullptr ? 1000 : 60'000;
}

std::string lost(int pe) {
  return "job: cannot continue: PE " + std::to_string(pe) + " (host " + (pe % 2 == 0 ? "a" : "b") +
         ") was lost in phase heap: its connection ended";
}

/// Whether the text says that a PE was lost which may not have been able to report its last phase.
bool says_lost(const std::string& text, int pe) {
  const std::string full = lost(pe);
  const std::size_t phase = full.find("heap");
  return text == full ||
         text == full.substr(0, phase) + "failure-detector" + full.substr(phase + 4);
}

/// The text, for a PE that may have been stopped before it could report its last phase.
std::string as_reported(std::string text) {
  const std::string before = "last phase it reported: failure-detector";
  if (const std::size_t at = text.find(before); at != std::string::npos)
    text.replace(at, before.size(), "last phase it reported: heap");
  return text;
}

TEST(FailureDetectorFaults, EveryKilledPeIsNamedEverywhereSoon) {
  for (int victim = 0; victim < 15; ++victim) {
    World world(15);
    const std::int64_t killed_ns = now_ns();
    world.kill(victim);
    const std::vector<int> others = world.all_but({victim});
    ASSERT_TRUE(world.await(others, learnt)) << victim;
    EXPECT_LT(world.last_knew_ms(others, killed_ns), quick_ms()) << victim;
    for (const int pe : others) {
      EXPECT_TRUE(says_lost(world.text(pe), victim)) << world.text(pe);
      EXPECT_EQ(world.slot(pe).code, static_cast<int>(ExitCode::unavailable));
    }
  }
}

TEST(FailureDetectorFaults, AKilledPeIsNamedOverTcp) {
  for (const int victim : {0, 3, 14}) {
    World world(15, Job{true, 500});
    const std::int64_t killed_ns = now_ns();
    world.kill(victim);
    const std::vector<int> others = world.all_but({victim});
    ASSERT_TRUE(world.await(others, learnt)) << victim;
    EXPECT_LT(world.last_knew_ms(others, killed_ns), quick_ms()) << victim;
    for (const int pe : others)
      EXPECT_EQ(world.text(pe), lost(victim));
  }
}

TEST(FailureDetectorFaults, AStoppedPeDoesNotBlockTheNotification) {
  for (int stopped = 0; stopped < 15; ++stopped) {
    World world(15);
    world.stop(stopped);
    const int failing = (stopped + 8) % 15;
    const std::int64_t asked_ns = now_ns();
    world.slot(failing).command = fail;
    const std::vector<int> others = world.all_but({stopped});
    ASSERT_TRUE(world.await(others, learnt)) << stopped;
    EXPECT_LT(world.last_knew_ms(others, asked_ns), quick_ms()) << stopped;
    for (const int pe : others)
      EXPECT_NE(world.text(pe).find("PE " + std::to_string(failing) + " (host "), std::string::npos)
          << world.text(pe);
  }
}

TEST(FailureDetectorFaults, AStoppedPeDoesNotHideADeadOne) {
  for (int stopped = 0; stopped < 15; ++stopped) {
    World world(15);
    world.stop(stopped);
    const int victim = (stopped + 4) % 15;
    const std::int64_t killed_ns = now_ns();
    world.kill(victim);
    // A PE that these two separate from the rest has a connection to the dead one, which ends.
    const std::vector<int> others = world.all_but({stopped, victim});
    ASSERT_TRUE(world.await(others, learnt)) << stopped;
    EXPECT_LT(world.last_knew_ms(others, killed_ns), quick_ms()) << stopped;
    for (const int pe : others)
      EXPECT_TRUE(says_lost(world.text(pe), victim)) << world.text(pe);
  }
}

TEST(FailureDetectorFaults, TwoPesDieAtOnce) {
  for (const auto& [one, two] : std::vector<std::pair<int, int>>{
           {0, 1}, {0, 2}, {1, 2}, {1, 3}, {1, 4}, {2, 6}, {3, 14}, {5, 9}, {13, 14}}) {
    World world(15);
    const std::int64_t killed_ns = now_ns();
    world.kill(one);
    world.kill(two);
    const std::vector<int> others = world.all_but({one, two});
    ASSERT_TRUE(world.await(others, learnt)) << one << " " << two;
    EXPECT_LT(world.last_knew_ms(others, killed_ns), quick_ms());
    for (const int pe : others)
      EXPECT_TRUE(says_lost(world.text(pe), one) || says_lost(world.text(pe), two))
          << world.text(pe);
  }
}

TEST(FailureDetectorFaults, GiveUpFollowsTheChainToAStoppedPe) {
  World world(15);
  const std::vector<int> between = {3, 4, 5};
  for (const int pe : between)
    world.slot(pe).command = wait_for_next;
  ASSERT_TRUE(world.await(between, waiting));
  world.stop(6);
  world.slot(2).command = give_up_on_next;
  const std::vector<int> others = world.all_but({6});
  ASSERT_TRUE(world.await(others, learnt));
  const std::string silent = "PE 6 (host a) does not answer; last phase it reported: heap";
  for (const int pe : others) {
    EXPECT_EQ(as_reported(world.text(pe)),
              (pe == 2 ? "barrier: cannot finish: " : "job: cannot continue: ") + silent);
    EXPECT_EQ(world.slot(pe).code, static_cast<int>(ExitCode::deadline));
  }
}

TEST(FailureDetectorFaults, GiveUpOnAStoppedNeighbour) {
  World world(4);
  world.stop(3);
  world.slot(2).command = give_up_on_next;
  const std::vector<int> others = world.all_but({3});
  ASSERT_TRUE(world.await(others, learnt));
  EXPECT_EQ(as_reported(world.text(2)),
            "barrier: cannot finish: PE 3 (host b) does not answer; last phase it reported: heap");
  EXPECT_EQ(as_reported(world.text(0)),
            "job: cannot continue: PE 3 (host b) does not answer; last phase it reported: heap");
  for (const int pe : others)
    EXPECT_EQ(world.slot(pe).code, static_cast<int>(ExitCode::deadline));
}

TEST(FailureDetectorFaults, GiveUpOnAllNamesTheStoppedOnes) {
  World world(20);
  world.stop(4);
  world.stop(11);
  world.slot(0).command = give_up_on_all;
  ASSERT_TRUE(world.await({0}, learnt));
  EXPECT_EQ(as_reported(world.text(0)),
            "barrier: cannot finish: PE 4 (host a) and PE 11 (host b) do not "
            "answer; last phase PE 4 reported: heap");
  EXPECT_TRUE(world.await(world.all_but({4, 11}), learnt));
}

TEST(FailureDetectorFaults, TimeFromKillToTheLastNotification) {
  for (const int n_pes : {2, 16, 128})
    for (const bool over_tcp : {false, true}) {
      World world(n_pes, Job{over_tcp, n_pes > 100 ? 5000 : 500});
      const int victim = n_pes / 2;
      const std::vector<int> others = world.all_but({victim});
      const std::int64_t killed_ns = now_ns();
      world.kill(victim);
      ASSERT_TRUE(world.await(others, learnt));
      const double time_ms = world.last_knew_ms(others, killed_ns);
      EXPECT_LT(time_ms, quick_ms()) << n_pes;
      RecordProperty((over_tcp ? "tcp_" : "unix_") + std::to_string(n_pes) + "_us",
                     static_cast<int>(time_ms * 1000));
      std::cout << n_pes << " PEs over " << (over_tcp ? "TCP" : "Unix sockets") << ": " << time_ms
                << " ms from SIGKILL to the last PE's knowledge\n";
    }
}

} // namespace
} // namespace shmemctl
