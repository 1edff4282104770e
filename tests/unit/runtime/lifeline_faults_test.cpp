// Lifelines of forked processes that are killed and stopped, and listeners that strangers attack.
#include <algorithm>
#include <gtest/gtest.h>
#include <iostream>

#include "tests/support/fork_world.h"
#include "tests/support/lifeline_world.h"

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

/// Starts a lifeline, waits for commands and failures, says when it learnt of one, and stays.
void live(Bootstrap& bootstrap, ForkSlot& slot, const Job& job) {
  lifeline::Settings settings;
  settings.always_tcp = job.over_tcp;
  const auto lifeline = lifeline::start(bootstrap, job_secret,
                                        job.over_tcp ? loopback() : std::vector<SocketAddress>{},
                                        two_hosts(bootstrap.size()), settings, in_seconds(60));
  const int next = (bootstrap.rank() + 1) % bootstrap.size();
  lifeline->phase("heap");
  bootstrap.barrier(in_seconds(60));
  slot.state.store(ready, std::memory_order_release);
  try {
    for (;;) {
      lifeline->check();
      const int command = slot.command.exchange(0);
      if (command == fail)
        lifeline->announce(Error(ExitCode::finding, "x", "do", "y", "z"), "heap");
      if (command == wait_for_next) {
        lifeline->waiting_for(next);
        slot.state.store(waiting, std::memory_order_release);
      }
      if (command == give_up_on_next)
        lifeline->give_up("barrier", next);
      if (command == give_up_on_all)
        lifeline->give_up("barrier", -1);
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
  /// From `since_ns` until the last of `pes` knew.
  double last_knew_ms(const std::vector<int>& pes, std::int64_t since_ns) {
    std::int64_t last = since_ns;
    for (const int pe : pes)
      last = std::max(last, slot(pe).changed_ns.load());
    return static_cast<double>(last - since_ns) / 1e6;
  }
};

std::string lost(int pe) {
  return "cannot go on with the job: PE " + std::to_string(pe) + " (host " +
         (pe % 2 == 0 ? "a" : "b") + ") was lost in phase heap: its connection ended";
}

TEST(LifelineFaults, EveryKilledPeIsNamedEverywhereWithinASecond) {
  for (int victim = 0; victim < 15; ++victim) {
    World world(15);
    const std::int64_t killed_ns = now_ns();
    world.kill(victim);
    const std::vector<int> others = world.all_but({victim});
    ASSERT_TRUE(world.await(others, learnt)) << victim;
    EXPECT_LT(world.last_knew_ms(others, killed_ns), 1000) << victim;
    for (const int pe : others) {
      EXPECT_EQ(world.text(pe), lost(victim));
      EXPECT_EQ(world.slot(pe).code, static_cast<int>(ExitCode::unavailable));
    }
  }
}

TEST(LifelineFaults, AKilledPeIsNamedOverTcp) {
  for (const int victim : {0, 3, 14}) {
    World world(15, Job{true, 500});
    const std::int64_t killed_ns = now_ns();
    world.kill(victim);
    const std::vector<int> others = world.all_but({victim});
    ASSERT_TRUE(world.await(others, learnt)) << victim;
    EXPECT_LT(world.last_knew_ms(others, killed_ns), 1000) << victim;
    for (const int pe : others)
      EXPECT_EQ(world.text(pe), lost(victim));
  }
}

TEST(LifelineFaults, AStoppedPeKeepsNobodyFromTheNews) {
  for (int stopped = 0; stopped < 15; ++stopped) {
    World world(15);
    world.stop(stopped);
    const int failing = (stopped + 8) % 15;
    const std::int64_t asked_ns = now_ns();
    world.slot(failing).command = fail;
    const std::vector<int> others = world.all_but({stopped});
    ASSERT_TRUE(world.await(others, learnt)) << stopped;
    EXPECT_LT(world.last_knew_ms(others, asked_ns), 1000) << stopped;
    for (const int pe : others)
      EXPECT_NE(world.text(pe).find("PE " + std::to_string(failing) + " (host "), std::string::npos)
          << world.text(pe);
  }
}

TEST(LifelineFaults, AStoppedPeKeepsNobodyFromNoticingADeadOne) {
  for (int stopped = 0; stopped < 15; ++stopped) {
    World world(15);
    world.stop(stopped);
    const int victim = (stopped + 4) % 15;
    const std::int64_t killed_ns = now_ns();
    world.kill(victim);
    // Whom these two cut off from the rest has a connection to the dead one, which ends.
    const std::vector<int> others = world.all_but({stopped, victim});
    ASSERT_TRUE(world.await(others, learnt)) << stopped;
    EXPECT_LT(world.last_knew_ms(others, killed_ns), 1000) << stopped;
    for (const int pe : others)
      EXPECT_EQ(world.text(pe), lost(victim));
  }
}

TEST(LifelineFaults, TwoThatDieAtOnce) {
  for (const auto& [one, two] : std::vector<std::pair<int, int>>{
           {0, 1}, {0, 2}, {1, 2}, {1, 3}, {1, 4}, {2, 6}, {3, 14}, {5, 9}, {13, 14}}) {
    World world(15);
    const std::int64_t killed_ns = now_ns();
    world.kill(one);
    world.kill(two);
    const std::vector<int> others = world.all_but({one, two});
    ASSERT_TRUE(world.await(others, learnt)) << one << " " << two;
    EXPECT_LT(world.last_knew_ms(others, killed_ns), 1000);
    for (const int pe : others)
      EXPECT_TRUE(world.text(pe) == lost(one) || world.text(pe) == lost(two)) << world.text(pe);
  }
}

TEST(LifelineFaults, GiveUpFollowsTheChainToAStoppedPe) {
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
    EXPECT_EQ(world.text(pe),
              (pe == 2 ? "cannot finish barrier: " : "cannot go on with the job: ") + silent);
    EXPECT_EQ(world.slot(pe).code, static_cast<int>(ExitCode::deadline));
  }
}

TEST(LifelineFaults, GiveUpOnAStoppedNeighbour) {
  World world(4);
  world.stop(3);
  world.slot(2).command = give_up_on_next;
  const std::vector<int> others = world.all_but({3});
  ASSERT_TRUE(world.await(others, learnt));
  EXPECT_EQ(world.text(2), "cannot finish barrier: PE 3 (host b) does not answer; last phase it "
                           "reported: heap");
  EXPECT_EQ(world.text(0), "cannot go on with the job: PE 3 (host b) does not answer; last phase "
                           "it reported: heap");
  for (const int pe : others)
    EXPECT_EQ(world.slot(pe).code, static_cast<int>(ExitCode::deadline));
}

TEST(LifelineFaults, GiveUpOnAllNamesTheStoppedOnes) {
  World world(20);
  world.stop(4);
  world.stop(11);
  world.slot(0).command = give_up_on_all;
  ASSERT_TRUE(world.await({0}, learnt));
  EXPECT_EQ(world.text(0), "cannot finish barrier: PE 4 (host a) and PE 11 (host b) do not answer; "
                           "last phase PE 4 reported: heap");
  EXPECT_TRUE(world.await(world.all_but({4, 11}), learnt));
}

TEST(LifelineFaults, TimeFromKillToTheLastPesKnowledge) {
  for (const int n_pes : {2, 16, 128})
    for (const bool over_tcp : {false, true}) {
      World world(n_pes, Job{over_tcp, n_pes > 100 ? 5000 : 500});
      const int victim = n_pes / 2;
      const std::vector<int> others = world.all_but({victim});
      const std::int64_t killed_ns = now_ns();
      world.kill(victim);
      ASSERT_TRUE(world.await(others, learnt));
      const double time_ms = world.last_knew_ms(others, killed_ns);
      EXPECT_LT(time_ms, 1000) << n_pes;
      RecordProperty((over_tcp ? "tcp_" : "unix_") + std::to_string(n_pes) + "_us",
                     static_cast<int>(time_ms * 1000));
      std::cout << n_pes << " PEs over " << (over_tcp ? "TCP" : "Unix sockets") << ": " << time_ms
                << " ms from SIGKILL to the last PE's knowledge\n";
    }
}

/// Sends bytes to a PE's listener as anybody can.
Socket attack(const Lifelines& lifelines, std::size_t pe, const std::string& bytes) {
  Socket socket =
      Socket::connect(lifelines[0]->addresses()[pe].front(), "the target", in_seconds(20));
  socket.send_all(bytes.data(), bytes.size(), in_seconds(20));
  return socket;
}

bool is_dropped(Socket& socket) {
  try {
    char byte = 0;
    socket.receive_all(&byte, 1, in_seconds(20));
  } catch (const Error& error) {
    return error.code() == ExitCode::unavailable;
  }
  return false;
}

void expect_alive(const Lifelines& lifelines) {
  const int n_pes = static_cast<int>(lifelines.size());
  const lifeline::State asking(0, n_pes, job_secret, two_hosts(n_pes));
  for (int pe = 0; pe < n_pes; ++pe) {
    EXPECT_TRUE(lifeline::ask(asking, lifelines[0]->addresses(), pe, -1, 20)) << pe;
    EXPECT_NO_THROW(lifelines[static_cast<std::size_t>(pe)]->check());
  }
}

class LifelineAttack : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(, LifelineAttack, testing::Bool(),
                         [](const auto& test) { return test.param ? "Tcp" : "Unix"; });

TEST_P(LifelineAttack, GarbageIsDropped) {
  const Lifelines lifelines = make_lifelines(5, GetParam());
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(100000, '\0'),
        std::string("\x16\x03\x01"), std::string("sL\x04\0\xff\xff\xff\xff", 8),
        lifeline::encode(lifeline::Goodbye{}), lifeline::encode(lifeline::PhaseNotice{1, "x"})}) {
    Socket socket =
        Socket::connect(lifelines[0]->addresses()[1].front(), "the target", in_seconds(20));
    try {
      socket.send_all(bytes.data(), bytes.size(), in_seconds(20));
    } catch (const Error&) {
      // Dropped before all was sent.
    }
    EXPECT_TRUE(is_dropped(socket)) << bytes.substr(0, 8);
  }
  expect_alive(lifelines);
}

TEST_P(LifelineAttack, AnotherJobsConnectionsAreDropped) {
  const Lifelines lifelines = make_lifelines(5, GetParam());
  lifeline::Secret other = job_secret;
  other[15] ^= 1;
  using lifeline::Hello;
  for (const Hello& hello : {Hello{other, 3, 5}, Hello{job_secret, 3, 6}}) {
    Socket greeting = attack(lifelines, 1, lifeline::encode(hello));
    EXPECT_TRUE(is_dropped(greeting));
    Socket question = attack(lifelines, 1, lifeline::encode(lifeline::Query{hello, -1}));
    EXPECT_TRUE(is_dropped(question));
  }
  // Right, but PE 3 is there already; PE 4 has no business with PE 2; nor has PE 2 with itself.
  for (const auto& [target, rank] : {std::pair<std::size_t, int>{1, 3}, {2, 4}, {2, 2}}) {
    Socket twice = attack(lifelines, target, lifeline::encode(Hello{job_secret, rank, 5}));
    EXPECT_TRUE(is_dropped(twice)) << rank;
  }
  expect_alive(lifelines);
}

TEST_P(LifelineAttack, StoppingInMidMessageCostsNothing) {
  const Lifelines lifelines = make_lifelines(5, GetParam());
  const std::string hello = lifeline::encode(lifeline::Hello{job_secret, 3, 5});
  std::vector<Socket> stopped;
  for (std::size_t length = 0; length < hello.size(); ++length)
    stopped.push_back(attack(lifelines, 1, hello.substr(0, length)));
  expect_alive(lifelines);
  EXPECT_TRUE(is_dropped(stopped.back()));
}

TEST_P(LifelineAttack, SilentConnectionsDoNotKeepQuestionsOut) {
  const Lifelines lifelines = make_lifelines(3, GetParam());
  std::vector<Socket> silent;
  for (int i = 0; i < 300; ++i)
    silent.push_back(attack(lifelines, 1, ""));
  expect_alive(lifelines);
  EXPECT_TRUE(is_dropped(silent.front()));
}

TEST_P(LifelineAttack, AQuestionInSinglePiecesIsAnswered) {
  const Lifelines lifelines = make_lifelines(3, GetParam());
  Socket socket = attack(lifelines, 2, "");
  const lifeline::Hello from{job_secret, 0, 3};
  for (const char byte : lifeline::encode(lifeline::Query{from, -1}))
    socket.send_all(&byte, 1, in_seconds(20));
  char first = 0;
  socket.receive_all(&first, 1, in_seconds(20));
  EXPECT_EQ(first, 's');
}

/// Everyone sees another address for one PE's lifeline: nobody listens there.
class LyingBootstrap final : public Bootstrap {
public:
  LyingBootstrap(Bootstrap& real, int victim, const std::string& address)
      : Bootstrap(real.rank(), real.size()), real_(real), victim_(victim), address_(address) {}
  const char* name() const override { return "lying"; }
  void allgather(const void* send, void* receive, std::size_t bytes_per_rank,
                 const Deadline& deadline) override {
    real_.allgather(send, receive, bytes_per_rank, deadline);
    char* block = static_cast<char*>(receive) + static_cast<std::size_t>(victim_) * bytes_per_rank;
    constexpr std::size_t ids_bytes = 16;
    if (calls_++ == 0) {
      std::fill(block + ids_bytes, block + bytes_per_rank, '\0');
      address_.copy(block + ids_bytes, address_.size());
    }
  }
  void alltoall(const void*, void*, std::size_t, const Deadline&) override { FAIL(); }
  void barrier(const Deadline& deadline) override { real_.barrier(deadline); }
  void broadcast(void*, std::size_t, int, const Deadline&) override { FAIL(); }
  void abort(ExitCode, const std::string&) noexcept override {}
  void finish(const Deadline&) override {}

private:
  Bootstrap& real_;
  int victim_;
  std::string address_;
  int calls_ = 0;
};

TEST(LifelineFaults, StartThrowsOnAllPesIfOneCannotConnect) {
  std::string closed;
  {
    const Listener listener(loopback().front());
    closed = listener.address().text();
  }
  std::mutex mutex;
  std::vector<std::string> messages;
  run_bootstrap_threads(6, [&](Bootstrap& bootstrap) {
    LyingBootstrap lying(bootstrap, 1, closed);
    lifeline::Settings settings;
    settings.always_tcp = true;
    settings.connect_limit_s = 0.5;
    try {
      lifeline::start(lying, job_secret, loopback(), two_hosts(6), settings, in_seconds(60));
    } catch (const Error& error) {
      const std::lock_guard lock(mutex);
      messages.push_back(error.message());
      EXPECT_EQ(error.code(), ExitCode::unavailable);
    }
  });
  ASSERT_EQ(messages.size(), 6U);
  for (const std::string& message : messages) {
    EXPECT_EQ(message, messages.front());
    EXPECT_NE(message.find("cannot start the lifeline: PE 2 (host a): cannot connect to PE 1 "
                           "(host b) at " +
                           closed),
              std::string::npos)
        << message;
  }
}

TEST(LifelineFaults, AnImpostorAtAnAddressIsRefused) {
  Listener impostor(loopback().front());
  const std::string address = impostor.address().text();
  std::atomic<bool> over{false};
  std::thread answering([&] {
    std::vector<Socket> held;
    while (!over)
      if (Socket socket = impostor.accept_now()) {
        const std::string welcome = lifeline::encode(lifeline::Welcome{7});
        socket.send_all(welcome.data(), welcome.size(), in_seconds(20));
        held.push_back(std::move(socket));
      } else {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
  });
  std::atomic<int> refused{0};
  run_bootstrap_threads(2, [&](Bootstrap& bootstrap) {
    LyingBootstrap lying(bootstrap, 0, address);
    lifeline::Settings settings;
    settings.always_tcp = true;
    settings.connect_limit_s = 0.5;
    try {
      lifeline::start(lying, job_secret, loopback(), two_hosts(2), settings, in_seconds(60));
    } catch (const Error& error) {
      EXPECT_NE(error.message().find("somebody else answers"), std::string::npos)
          << error.message();
      ++refused;
    }
  });
  over = true;
  answering.join();
  EXPECT_EQ(refused, 2);
}

} // namespace
} // namespace shmemctl
