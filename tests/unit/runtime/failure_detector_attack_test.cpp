// What other processes send to a failure detector's listener, and wrong addresses.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <gtest/gtest.h>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "src/base/archive.h"
#include "src/base/text.h"
#include "tests/support/failure_detector_world.h"

namespace shmemctl {
namespace {

using namespace test;

/// Sends bytes to a PE's listener as anybody can.
Socket attack(const FailureDetectors& detectors, std::size_t pe, const std::string& bytes) {
  Socket socket =
      Socket::connect(detectors[0]->addresses()[pe].front(), "the target", in_seconds(60));
  socket.send_all(bytes.data(), bytes.size(), in_seconds(60));
  return socket;
}

/// Connects and is challenged, as anybody is.
struct Challenged {
  Socket socket;
  Handshake handshake;
  void say(const failure_detector::Message& message) {
    const std::string bytes = failure_detector::encode(message);
    socket.send_all(bytes.data(), bytes.size(), in_seconds(60));
  }
};
Challenged connect_request(const FailureDetectors& detectors, std::size_t pe) {
  Challenged one{attack(detectors, pe, ""), {}};
  one.handshake = failure_detector::request_challenge(one.socket, in_seconds(60), {});
  return one;
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

/// Whether the detector drops the connection after the earlier messages.
bool is_dropped_after_messages(Socket& socket) {
  try {
    char byte = 0;
    for (;;)
      socket.receive_all(&byte, 1, in_seconds(60));
  } catch (const Error& error) {
    return error.code() == ExitCode::unavailable;
  }
}

void expect_alive(const FailureDetectors& detectors) {
  const int n_pes = static_cast<int>(detectors.size());
  const failure_detector::State asking(0, n_pes, job_secret, two_hosts(n_pes));
  for (int pe = 0; pe < n_pes; ++pe) {
    EXPECT_TRUE(failure_detector::ask(asking, detectors[0]->addresses(), pe, -1, 20)) << pe;
    EXPECT_NO_THROW(detectors[static_cast<std::size_t>(pe)]->check());
  }
}

class FailureDetectorAttack : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(, FailureDetectorAttack, testing::Bool(),
                         [](const auto& test) { return test.param ? "Tcp" : "Unix"; });

TEST_P(FailureDetectorAttack, GarbageIsDropped) {
  const FailureDetectors detectors = make_failure_detectors(5, GetParam());
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(100000, '\0'),
        std::string("\x16\x03\x01"), std::string("sL\x04\0\xff\xff\xff\xff", 8),
        failure_detector::encode(failure_detector::Goodbye{}),
        failure_detector::encode(failure_detector::PhaseNotice{1, "x"})}) {
    Socket socket =
        Socket::connect(detectors[0]->addresses()[1].front(), "the target", in_seconds(60));
    try {
      socket.send_all(bytes.data(), bytes.size(), in_seconds(60));
    } catch (const Error&) {
      // Dropped before everything was sent.
    }
    EXPECT_TRUE(is_dropped(socket)) << bytes.substr(0, 8);
  }
  expect_alive(detectors);
}

TEST_P(FailureDetectorAttack, AnotherJobsConnectionsAreDropped) {
  const FailureDetectors detectors = make_failure_detectors(5, GetParam());
  failure_detector::Secret other = job_secret;
  other[15] ^= 1;
  using failure_detector::Hello;
  using failure_detector::Query;
  struct Claim {
    failure_detector::Secret secret;
    Hello hello;
  };
  for (const Claim& claim : {Claim{other, {{}, 3, 5}}, Claim{job_secret, {{}, 3, 6}}}) {
    Challenged greeting = connect_request(detectors, 1);
    greeting.say(failure_detector::proven(greeting.handshake, claim.secret, claim.hello));
    EXPECT_TRUE(is_dropped(greeting.socket));
    Challenged question = connect_request(detectors, 1);
    question.say(
        failure_detector::proven(question.handshake, claim.secret, Query{claim.hello, -1}));
    EXPECT_TRUE(is_dropped(question.socket));
  }
  // Correct, but PE 3 is connected already; PE 4 is not a neighbour of PE 2; nor is PE 2 of itself.
  for (const auto& [target, rank] : {std::pair<std::size_t, int>{1, 3}, {2, 4}, {2, 2}}) {
    Challenged twice = connect_request(detectors, target);
    twice.say(failure_detector::proven(twice.handshake, job_secret, Hello{{}, rank, 5}));
    EXPECT_TRUE(is_dropped(twice.socket)) << rank;
  }
  expect_alive(detectors);
}

/// Messages of one connection are invalid on another, and without a challenge.
TEST_P(FailureDetectorAttack, ARecordedMessageIsDropped) {
  const FailureDetectors detectors = make_failure_detectors(5, GetParam());
  const failure_detector::Query query{{{}, 0, 5}, -1};
  Challenged real = connect_request(detectors, 1);
  const failure_detector::Message recorded =
      failure_detector::proven(real.handshake, job_secret, query);
  real.say(recorded);
  EXPECT_TRUE(failure_detector::receive_message(real.socket, in_seconds(60), {}));
  Challenged replay = connect_request(detectors, 1);
  replay.say(recorded);
  EXPECT_TRUE(is_dropped(replay.socket));
  // With the same nonce of the dialer, too: the listener's is a different one.
  Socket again =
      attack(detectors, 1,
             failure_detector::encode(failure_detector::ConnectionRequest{real.handshake.dialer}) +
                 failure_detector::encode(recorded));
  EXPECT_TRUE(failure_detector::receive_message(again, in_seconds(60), {})) << "the challenge";
  EXPECT_TRUE(is_dropped(again));
  Socket at_once = attack(detectors, 1, failure_detector::encode(recorded));
  EXPECT_TRUE(is_dropped(at_once));
  const std::string knock_twice = failure_detector::encode(failure_detector::ConnectionRequest{}) +
                                  failure_detector::encode(failure_detector::ConnectionRequest{});
  Socket twice = attack(detectors, 1, knock_twice);
  EXPECT_TRUE(failure_detector::receive_message(twice, in_seconds(60), {}));
  EXPECT_TRUE(is_dropped(twice));
  expect_alive(detectors);
}

TEST_P(FailureDetectorAttack, AnIncompleteMessageDoesNotDisturb) {
  const FailureDetectors detectors = make_failure_detectors(5, GetParam());
  const std::string connect_request =
      failure_detector::encode(failure_detector::ConnectionRequest{});
  std::vector<Socket> stopped;
  for (std::size_t length = 0; length < connect_request.size(); ++length)
    stopped.push_back(attack(detectors, 1, connect_request.substr(0, length)));
  expect_alive(detectors);
  EXPECT_TRUE(is_dropped(stopped.back()));
}

TEST_P(FailureDetectorAttack, SilentConnectionsDoNotBlockQueries) {
  const FailureDetectors detectors = make_failure_detectors(3, GetParam());
  std::vector<Socket> silent;
  for (int i = 0; i < 300; ++i)
    silent.push_back(attack(detectors, 1, ""));
  expect_alive(detectors);
  EXPECT_TRUE(is_dropped(silent.front()));
}

TEST_P(FailureDetectorAttack, AQueryInSingleBytesGetsAReply) {
  const FailureDetectors detectors = make_failure_detectors(3, GetParam());
  Challenged one = connect_request(detectors, 2);
  const failure_detector::Query query{{{}, 0, 3}, -1};
  for (const char byte :
       failure_detector::encode(failure_detector::proven(one.handshake, job_secret, query)))
    one.socket.send_all(&byte, 1, in_seconds(60));
  const auto answer = failure_detector::receive_message(one.socket, in_seconds(60), {});
  ASSERT_TRUE(answer);
  EXPECT_TRUE(std::holds_alternative<failure_detector::Status>(*answer));
  EXPECT_TRUE(failure_detector::is_proven(one.handshake, job_secret, *answer));
}

/// All PEs get a wrong address for one PE's failure detector: nothing listens there.
class LyingBootstrap final : public Bootstrap {
public:
  LyingBootstrap(Bootstrap& real, int victim, const std::string& address)
      : Bootstrap(real.rank(), real.size()), real_(real), victim_(victim), address_(address) {}
  const char* name() const override { return "lying"; }
  void allgather(const void* send, void* receive, std::size_t bytes_per_rank,
                 const Deadline& deadline) override {
    real_.allgather(send, receive, bytes_per_rank, deadline);
    char* block = static_cast<char*>(receive) + static_cast<std::size_t>(victim_) * bytes_per_rank;
    const int call = calls_++;
    if (call > 1)
      return;
    // The ids of a machine and its network, which are this PE's too, come before the addresses.
    std::string message(16, '\0');
    if (call == 1)
      message.assign(static_cast<const char*>(send), message.size());
    message += to_bytes(split_blanks(address_));
    const std::uint64_t length = message.size();
    if (call == 0) // the lengths come first
      std::memcpy(block, &length, sizeof length);
    else
      message.copy(block, bytes_per_rank);
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

/// Also by PEs that are connected already: the end of other PEs is no second failure for them.
TEST(FailureDetectorStart, AFailureOfAllPesIsPrintedOnce) {
  constexpr int n_pes = 6;
  std::string closed;
  {
    const Listener listener(loopback().front());
    closed = listener.address().text();
  }
  // An address that refuses connections, and none at all.
  for (const std::string& address : {closed, std::string()}) {
    std::mutex mutex;
    std::vector<std::pair<int, std::string>> prints;
    std::vector<std::string> printed;
    run_bootstrap_threads(n_pes, [&](Bootstrap& bootstrap) {
      LyingBootstrap lying(bootstrap, 1, address);
      failure_detector::Settings settings;
      settings.always_tcp = true;
      settings.connect_limit_s = 4;
      settings.printer = [&, pe = bootstrap.rank()](const Error& error) {
        const std::lock_guard lock(mutex);
        prints.emplace_back(pe, error.message());
      };
      try {
        failure_detector::start(lying, job_secret, loopback(), two_hosts(n_pes), settings,
                                in_seconds(60));
      } catch (const Error& error) {
        const std::lock_guard lock(mutex);
        if (error.printed())
          printed.push_back(error.message());
      }
    });
    ASSERT_EQ(prints.size(), 1U);
    EXPECT_EQ(prints[0].first, 0);
    EXPECT_EQ(printed, std::vector<std::string>(n_pes, prints[0].second));
  }
}

TEST(FailureDetectorStart, ThrowsOnAllPesIfOneCannotConnect) {
  std::string closed;
  {
    const Listener listener(loopback().front());
    closed = listener.address().text();
  }
  std::mutex mutex;
  std::vector<std::string> messages;
  run_bootstrap_threads(6, [&](Bootstrap& bootstrap) {
    LyingBootstrap lying(bootstrap, 1, closed);
    failure_detector::Settings settings;
    settings.always_tcp = true;
    settings.connect_limit_s = 4;
    try {
      failure_detector::start(lying, job_secret, loopback(), two_hosts(6), settings,
                              in_seconds(60));
    } catch (const Error& error) {
      const std::lock_guard lock(mutex);
      messages.push_back(error.message());
      EXPECT_EQ(error.code(), ExitCode::unavailable);
    }
  });
  ASSERT_EQ(messages.size(), 6U);
  for (const std::string& message : messages) {
    EXPECT_EQ(message, messages.front());
    EXPECT_NE(message.find("failure detector: cannot start: PE 2 (host a): PE 1 "
                           "(host b) at " +
                           closed + ": cannot connect"),
              std::string::npos)
        << message;
  }
}

/// Sends the same to every peer that connects, without the secret.
class Impostor {
public:
  explicit Impostor(std::string script)
      : listener_(loopback().front()), thread_([this, script = std::move(script)] {
          while (!over_)
            if (Socket socket = listener_.accept_now()) {
              socket.send_all(script.data(), script.size(), in_seconds(60));
              held_.push_back(std::move(socket));
            } else {
              std::this_thread::sleep_for(std::chrono::milliseconds(1));
            }
        }) {}
  ~Impostor() {
    over_ = true;
    thread_.join();
  }
  std::string address() const { return listener_.address().text(); }

private:
  Listener listener_;
  std::vector<Socket> held_;
  std::atomic<bool> over_{false};
  std::thread thread_;
};

TEST(FailureDetectorStart, AnImpostorAtAnAddressIsRefused) {
  using failure_detector::encode;
  // It cannot know the proof: a Welcome that looks right does not get it any further.
  for (const auto& [script, words] :
       {std::pair{encode(failure_detector::Welcome{{}, 7}), "not a PE of this version of shmemctl"},
        std::pair{encode(failure_detector::Challenge{}) + encode(failure_detector::Welcome{{}, 0}),
                  "another process listens"}}) {
    const Impostor impostor(script);
    std::atomic<int> refused{0};
    run_bootstrap_threads(2, [&, words = words](Bootstrap& bootstrap) {
      LyingBootstrap lying(bootstrap, 0, impostor.address());
      failure_detector::Settings settings;
      settings.always_tcp = true;
      settings.connect_limit_s = 4;
      try {
        failure_detector::start(lying, job_secret, loopback(), two_hosts(2), settings,
                                in_seconds(60));
      } catch (const Error& error) {
        EXPECT_NE(error.message().find(words), std::string::npos) << error.message();
        EXPECT_NE(error.message().find(impostor.address()), std::string::npos) << error.message();
        ++refused;
      }
    });
    EXPECT_EQ(refused, 2);
  }
}

/// Starts failure detectors of `n_pes` that get other addresses of PE 0; returns the messages of
/// those that fail.
std::vector<std::string> start_with_addresses(int n_pes, const std::string& of_first) {
  std::mutex mutex;
  std::vector<std::string> messages;
  std::vector<std::unique_ptr<FailureDetector>> made(static_cast<std::size_t>(n_pes));
  run_bootstrap_threads(n_pes, [&](Bootstrap& bootstrap) {
    LyingBootstrap lying(bootstrap, 0, of_first);
    failure_detector::Settings settings;
    settings.always_tcp = true;
    settings.connect_limit_s = 4;
    try {
      made[static_cast<std::size_t>(bootstrap.rank())] = failure_detector::start(
          lying, job_secret, loopback(), two_hosts(n_pes), settings, in_seconds(60));
    } catch (const Error& error) {
      const std::lock_guard lock(mutex);
      messages.push_back(error.message());
    }
  });
  return messages;
}

/// An IPv6 link-local address of an interface that is not here ended the job with exit code 2.
TEST(FailureDetectorStart, AddressesOfOtherHostsInterfacesAreSkipped) {
  const auto messages = start_with_addresses(1, "[fe80::1%enp250s0np0]:4711 127.0.0.1:9");
  EXPECT_TRUE(messages.empty()) << messages.front();
  // If there are no others, all PEs report the problem, and it is not the name.
  for (const std::string& message : start_with_addresses(2, "[fe80::1%enp250s0np0]:9")) {
    EXPECT_NE(message.find("PE 1 (host b)"), std::string::npos) << message;
    EXPECT_EQ(message.find("enp250s0np0"), std::string::npos) << message;
  }
}

/// The best address comes first; the following ones are mostly useless to other hosts.
TEST(FailureDetectorStart, ReportsTheErrorOfTheFirstAddress) {
  std::string first, last;
  {
    const Listener one(loopback().front()), other(loopback().front());
    first = one.address().text();
    last = other.address().text();
  }
  const auto messages = start_with_addresses(2, first + " " + last);
  ASSERT_EQ(messages.size(), 2U);
  for (const std::string& message : messages) {
    EXPECT_NE(message.find(first), std::string::npos) << message;
    EXPECT_EQ(message.find(last), std::string::npos) << message;
  }
}

/// Another PE's text may contain control characters.
class WordyBootstrap final : public Bootstrap {
public:
  static constexpr std::size_t words_bytes = 200;
  explicit WordyBootstrap(Bootstrap& real) : Bootstrap(real.rank(), real.size()), real_(real) {}
  const char* name() const override { return "wordy"; }
  void allgather(const void* send, void* receive, std::size_t bytes_per_rank,
                 const Deadline& deadline) override {
    real_.allgather(send, receive, bytes_per_rank, deadline);
    char* last =
        static_cast<char*>(receive) + static_cast<std::size_t>(size() - 1) * bytes_per_rank;
    const std::uint64_t length = words_bytes;
    const int call = calls_++; // 0 and 1 are lengths and addresses
    if (call == 2)
      *last = 1; // "cannot connect"
    if (call == 3)
      std::memcpy(last, &length, sizeof length);
    if (call == 4) {
      std::fill_n(last, bytes_per_rank, 'x');
      *last = 27; // ESC
    }
  }
  void alltoall(const void*, void*, std::size_t, const Deadline&) override { FAIL(); }
  void barrier(const Deadline& deadline) override { real_.barrier(deadline); }
  void broadcast(void*, std::size_t, int, const Deadline&) override { FAIL(); }
  void abort(ExitCode, const std::string&) noexcept override {}
  void finish(const Deadline&) override {}

private:
  Bootstrap& real_;
  int calls_ = 0;
};

TEST(FailureDetectorStart, TextOfAnotherPeIsPrintedAsText) {
  std::mutex mutex;
  std::vector<std::string> messages;
  run_bootstrap_threads(3, [&](Bootstrap& bootstrap) {
    WordyBootstrap wordy(bootstrap);
    try {
      failure_detector::start(wordy, job_secret, {}, two_hosts(3), {}, in_seconds(60));
    } catch (const Error& error) {
      const std::lock_guard lock(mutex);
      messages.push_back(error.message());
    }
  });
  EXPECT_EQ(messages,
            std::vector<std::string>(3, "failure detector: cannot start: \\x1b" +
                                            std::string(WordyBootstrap::words_bytes - 1, 'x')));
}

/// A neighbour whose Welcome was lost connects again; the connection that it has abandoned is not a
/// lost PE.
TEST(FailureDetectorThread, AReconnectingNeighbourReplacesItsConnection) {
  failure_detector::State state(0, 2, job_secret, two_hosts(2));
  std::vector<Listener> listeners;
  listeners.emplace_back(loopback().front());
  const SocketAddress address = listeners[0].address();
  failure_detector::Thread thread(state, std::move(listeners), {1});
  const auto come = [&] {
    Challenged one{Socket::connect(address, "PE 0", in_seconds(60)), {}};
    one.handshake = failure_detector::request_challenge(one.socket, in_seconds(60), {});
    one.say(failure_detector::proven(one.handshake, job_secret, failure_detector::Hello{{}, 1, 2}));
    EXPECT_TRUE(failure_detector::receive_message(one.socket, in_seconds(60), {})) << "the Welcome";
    return one;
  };
  come(); // and disconnects
  Challenged held = come();
  EXPECT_EQ(thread.wait_linked({1}, in_seconds(0.2)), 1) << "it has not said that it was let in";
  Challenged used = come();
  EXPECT_TRUE(is_dropped_after_messages(held.socket));
  used.say(failure_detector::PhaseNotice{1, "heap"});
  EXPECT_EQ(thread.wait_linked({1}, in_seconds(60)), -1);
  EXPECT_EQ(state.failure(), nullptr);
  // From now on its loss is detected, and no connection may replace it.
  Challenged late{Socket::connect(address, "PE 0", in_seconds(60)), {}};
  late.handshake = failure_detector::request_challenge(late.socket, in_seconds(60), {});
  late.say(failure_detector::proven(late.handshake, job_secret, failure_detector::Hello{{}, 1, 2}));
  EXPECT_TRUE(is_dropped(late.socket));
  used.socket.close();
  EXPECT_TRUE(eventually([&] { return state.failed(); }));
  EXPECT_NE(state.failure()->message.find("PE 1 (host b) was lost in phase heap"),
            std::string::npos);
}

} // namespace
} // namespace shmemctl
