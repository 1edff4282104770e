// Neighbours that connect while connections are cut, delayed, or made by others: a PE whose
// connection is lost before all PEs are connected connects again, and is accepted.
#include <atomic>
#include <chrono>
#include <functional>
#include <gtest/gtest.h>
#include <list>
#include <thread>

#include "src/runtime/bootstrap/connect_peers.h"
#include "src/runtime/bootstrap/dialer.h"
#include "src/runtime/bootstrap/frame.h"
#include "src/runtime/bootstrap/interfaces.h"
#include "tests/support/soon.h"

namespace shmemctl {
namespace {

using test::soon;

// Sizes of the frames that the two sides exchange.
const std::size_t request_bytes = encode_frame(FrameKind::connect_request, encode_nonce({})).size();
const std::size_t hello_bytes =
    encode_frame(FrameKind::hello, encode_proven({}, Hello{}.encode())).size();
const std::size_t linked_bytes = encode_frame(FrameKind::linked).size();
const std::size_t challenge_bytes = request_bytes;
const std::size_t all_from_dialer = request_bytes + hello_bytes + linked_bytes;
constexpr std::size_t no_end = 1 << 20; ///< more bytes than both sides ever send

/// A Unix socket: what is sent there has arrived when sending returns.
Listener new_listener() {
  return Listener(SocketAddress::abstract_unix(random_unix_name()));
}

/// What happens to the first connection through a relay; later ones are forwarded.
struct FirstConnection {
  enum class End {
    cut_at,     ///< both sides see the end after a given number of forwarded bytes
    cut_behind, ///< as cut_at, once further bytes arrive
    held        ///< later bytes are held back for ever
  };
  End end = End::cut_at;
  /// Bytes that are forwarded before the end.
  std::size_t from_dialer = no_end, from_listener = no_end;
};

/// Forwards connections, and counts those over which a PE has sent all its frames.
class ConnectionRelay {
public:
  ConnectionRelay(SocketAddress target, FirstConnection first)
      : target_(std::move(target)), first_(first), thread_([this] { run(); }) {}
  ~ConnectionRelay() {
    stop_.store(true);
    thread_.join();
  }
  ConnectionRelay(const ConnectionRelay&) = delete;
  ConnectionRelay& operator=(const ConnectionRelay&) = delete;

  std::string address() const { return listener_.address().text(); }
  int accepted() const { return accepted_.load(); }
  int confirmed() const { return confirmed_.load(); }

private:
  struct Pair {
    Socket dialer, listener;
    FirstConnection plan;
    std::size_t from_dialer = 0, from_listener = 0;
  };

  void run() {
    while (!stop_.load()) {
      if (Socket dialer = listener_.accept_now()) {
        const bool is_first = accepted_.fetch_add(1) == 0;
        const FirstConnection plan = is_first ? first_ : FirstConnection{};
        try {
          pairs_.push_back({std::move(dialer), Socket::connect(target_, "the PE", soon(5)), plan});
        } catch (const Error&) {
          continue; // the PE has stopped listening, which makes the test fail
        }
      }
      pairs_.remove_if([this](Pair& pair) { return !forward(pair); });
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  /// False if the connection has ended or is to end.
  bool forward(Pair& pair) {
    try {
      const std::size_t before = pair.from_dialer;
      const bool goes_on = forward(pair.plan.end, pair.dialer, pair.listener, pair.from_dialer,
                                   pair.plan.from_dialer) &&
                           forward(pair.plan.end, pair.listener, pair.dialer, pair.from_listener,
                                   pair.plan.from_listener);
      if (before < all_from_dialer && pair.from_dialer >= all_from_dialer)
        confirmed_.fetch_add(1);
      return goes_on;
    } catch (const Error&) {
      return false;
    }
  }

  static bool forward(FirstConnection::End end, Socket& from, Socket& to, std::size_t& count,
                      std::size_t limit) {
    std::byte byte{};
    while (count < limit && from.receive_some(&byte, 1) == 1) {
      to.send_all(&byte, 1, soon());
      ++count;
    }
    if (count < limit || end == FirstConnection::End::held)
      return true;
    return end == FirstConnection::End::cut_behind && from.receive_some(&byte, 1) == 0;
  }

  Listener listener_ = new_listener();
  const SocketAddress target_;
  const FirstConnection first_;
  std::list<Pair> pairs_;
  std::atomic<int> accepted_{0}, confirmed_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_; // declared last: the thread uses everything above
};

/// One of two PEs, as a thread that connects to the other. The test is the rendezvous.
class LinkingPe {
public:
  LinkingPe(int rank, const Secret& secret) : rank_(rank), secret_(secret) {
    Listener rendezvous = new_listener();
    to_rendezvous_ = Socket::connect(rendezvous.address(), "the rendezvous", soon());
    from_pe_ = rendezvous.accept(soon());
    listeners_.push_back(new_listener());
    address_ = listeners_[0].address();
  }
  ~LinkingPe() {
    if (thread_.joinable())
      thread_.join();
  }
  LinkingPe(const LinkingPe&) = delete;
  LinkingPe& operator=(const LinkingPe&) = delete;

  const SocketAddress& address() const { return address_; }

  /// @param addresses of the other PE, as the rendezvous would send them
  void start(std::vector<std::string> addresses) {
    neighbours_.addresses = {std::move(addresses)};
    thread_ = std::thread([this] {
      try {
        sockets_ = connect_neighbours({rank_, 2, secret_, &neighbours_, &to_rendezvous_},
                                      std::move(listeners_), soon());
      } catch (const Error& error) {
        problem_ = error.message();
      }
    });
  }
  /// Until it reports to the rendezvous that it is connected.
  void await_linked() {
    EXPECT_EQ(await_from_rendezvous(from_pe_, soon()).header().kind, FrameKind::linked);
  }
  /// Reports that all PEs are connected, and waits for the PE.
  NeighbourSockets& finish() {
    const Bytes frame = encode_frame(FrameKind::linked);
    from_pe_.send_all(frame.data(), frame.size(), soon());
    thread_.join();
    EXPECT_EQ(problem_, "");
    return sockets_;
  }

private:
  const int rank_;
  const Secret secret_;
  Socket to_rendezvous_, from_pe_;
  std::vector<Listener> listeners_;
  SocketAddress address_;
  Neighbours neighbours_;
  NeighbourSockets sockets_;
  std::string problem_;
  std::thread thread_;
};

void expect_connected(Socket& from, Socket& to) {
  const char sent = 'x';
  char received = 0;
  from.send_all(&sent, 1, soon());
  to.receive_all(&received, 1, soon());
  EXPECT_EQ(received, sent);
}

void expect_linked(LinkingPe& first, LinkingPe& second) {
  NeighbourSockets& left = first.finish();
  NeighbourSockets& right = second.finish();
  ASSERT_EQ(left.forward.size(), 1U);
  ASSERT_EQ(right.forward.size(), 1U);
  expect_connected(left.forward[0], right.backward[0]);
  expect_connected(right.forward[0], left.backward[0]);
}

bool becomes_true(const std::function<bool()>& condition) {
  for (const Deadline end = soon(); !end.passed();) {
    if (condition())
      return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

/// Says hello to PE 1 as PE 0 does.
Dialer dialer_of_pe_0(const SocketAddress& address, const Secret& secret) {
  return {"PE 1", {address}, Introduction{FrameKind::hello, Hello{0, 1, 0}.encode(), secret}};
}

TEST(UidLinking, ANeighbourWhoseConnectionIsCutComesAgain) {
  using End = FirstConnection::End;
  struct Case {
    const char* what;
    FirstConnection first;
    int confirmed; ///< connections through the relay over which PE 0 has sent all
  };
  const std::vector<Case> cases = {
      {"before the hello", {End::cut_behind, request_bytes, no_end}, 1},
      {"before the welcome", {End::cut_behind, no_end, challenge_bytes}, 1},
      {"before the confirmation", {End::cut_behind, request_bytes + hello_bytes, no_end}, 1},
      {"when it was in use", {End::cut_at, all_from_dialer, no_end}, 2}};
  for (const Case& each : cases) {
    SCOPED_TRACE(each.what);
    const Secret secret = random_secret();
    LinkingPe first(0, secret), second(1, secret);
    ConnectionRelay relay(second.address(), each.first);
    first.start({relay.address()});
    second.start({first.address().text()});
    EXPECT_TRUE(becomes_true([&] { return relay.confirmed() == each.confirmed; }));
    first.await_linked();
    second.await_linked();
    EXPECT_EQ(relay.accepted(), 2);
    expect_linked(first, second);
  }
}

/// PE 0 gets no reply from the first address for a second, and tries the other one. PE 1 accepts
/// both connections: the one that PE 0 confirms is used.
TEST(UidLinking, TheConnectionThatTheNeighbourConfirmsIsUsed) {
  const Secret secret = random_secret();
  LinkingPe first(0, secret), second(1, secret);
  ConnectionRelay relay(second.address(), {FirstConnection::End::held, no_end, challenge_bytes});
  first.start({relay.address(), second.address().text()});
  second.start({first.address().text()});
  first.await_linked();
  second.await_linked();
  EXPECT_EQ(relay.accepted(), 1);
  expect_linked(first, second);
}

TEST(UidLinking, AConnectionThatStaysSilentIsReplaced) {
  const Secret secret = random_secret();
  LinkingPe first(0, secret), second(1, secret);
  second.start({first.address().text()});
  Dialer dialer = dialer_of_pe_0(second.address(), secret);
  const Socket silent = dial(dialer, soon());
  first.start({second.address().text()});
  first.await_linked();
  second.await_linked();
  expect_linked(first, second);
}

TEST(UidLinking, AnImpostorThatConnectsFirstIsRefused) {
  const Secret secret = random_secret();
  LinkingPe first(0, secret), second(1, secret);
  second.start({first.address().text()});
  Dialer impostor = dialer_of_pe_0(second.address(), random_secret());
  try {
    dial(impostor, soon());
    ADD_FAILURE() << "it was let in";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("a PE of another job"), std::string::npos) << error.message();
  }
  first.start({second.address().text()});
  first.await_linked();
  second.await_linked();
  expect_linked(first, second);
}

/// Both PEs are connected, but perhaps not all others: PE 1 still accepts PE 0, and uses the latest
/// connection.
TEST(UidLinking, ReceptionIsOpenUntilAllPesAreConnected) {
  const Secret secret = random_secret();
  LinkingPe first(0, secret), second(1, secret);
  first.start({second.address().text()});
  second.start({first.address().text()});
  first.await_linked();
  second.await_linked();
  first.finish(); // otherwise the PE would connect again when its connection is replaced
  Dialer dialer = dialer_of_pe_0(second.address(), secret);
  Socket again = dial(dialer, soon());
  const Bytes linked = encode_frame(FrameKind::linked);
  again.send_all(linked.data(), linked.size(), soon());
  expect_connected(again, second.finish().backward[0]);
}

} // namespace
} // namespace shmemctl
