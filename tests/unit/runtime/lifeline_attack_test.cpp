// What strangers send to a lifeline's listener, and addresses that are wrong.
#include <algorithm>
#include <atomic>
#include <gtest/gtest.h>
#include <mutex>
#include <thread>

#include "tests/support/lifeline_world.h"

namespace shmemctl {
namespace {

using namespace test;

/// Sends bytes to a PE's listener as anybody can.
Socket attack(const Lifelines& lifelines, std::size_t pe, const std::string& bytes) {
  Socket socket =
      Socket::connect(lifelines[0]->addresses()[pe].front(), "the target", in_seconds(60));
  socket.send_all(bytes.data(), bytes.size(), in_seconds(60));
  return socket;
}

bool is_dropped(Socket& socket) {
  try {
    char byte = 0;
    socket.receive_all(&byte, 1, in_seconds(60));
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
        Socket::connect(lifelines[0]->addresses()[1].front(), "the target", in_seconds(60));
    try {
      socket.send_all(bytes.data(), bytes.size(), in_seconds(60));
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
    socket.send_all(&byte, 1, in_seconds(60));
  char first = 0;
  socket.receive_all(&first, 1, in_seconds(60));
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

TEST(LifelineStart, ThrowsOnAllPesIfOneCannotConnect) {
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
    settings.connect_limit_s = 4;
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

TEST(LifelineStart, AnImpostorAtAnAddressIsRefused) {
  Listener impostor(loopback().front());
  const std::string address = impostor.address().text();
  std::atomic<bool> over{false};
  std::thread answering([&] {
    std::vector<Socket> held;
    while (!over)
      if (Socket socket = impostor.accept_now()) {
        const std::string welcome = lifeline::encode(lifeline::Welcome{7});
        socket.send_all(welcome.data(), welcome.size(), in_seconds(60));
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
    settings.connect_limit_s = 4;
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
