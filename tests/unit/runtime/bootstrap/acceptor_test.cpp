// Accepting connections: what may happen in the callback of an accepted connection.
#include <gtest/gtest.h>

#include "src/runtime/bootstrap/acceptor.h"
#include "tests/support/soon.h"

namespace shmemctl {
namespace {

using test::soon;

bool is_closed(Socket& socket) {
  try {
    char byte = 0;
    socket.receive_all(&byte, 1, soon());
  } catch (const Error& error) {
    return error.code() == ExitCode::unavailable;
  }
  return false;
}

/// A caller that waits for one PE may have found it while other connections are still pending.
/// (Before the fix this read connections that were destroyed: AddressSanitizer and ThreadSanitizer
/// report it.)
TEST(Acceptor, MayBeClosedInItsCallback) {
  std::vector<Listener> listeners;
  listeners.emplace_back(SocketAddress::parse("127.0.0.1:0"));
  const SocketAddress address = listeners[0].address();
  const Secret secret = random_secret();
  Acceptor acceptor(std::move(listeners), secret);
  const Bytes contents(100, std::byte{7});
  const Bytes connect_request = encode_frame(FrameKind::connect_request, encode_nonce({}));
  std::vector<Socket> guests;
  for (int i = 0; i < 5; ++i) {
    guests.push_back(Socket::connect(address, "a long name of the reception", soon()));
    ASSERT_EQ(guests.back().send_some(connect_request.data(), connect_request.size()),
              connect_request.size());
  }
  Socket established;
  int arrived = 0;
  PollSet set;
  const auto turn = [&] {
    set.clear();
    acceptor.prepare(set);
    set.wait();
    acceptor.advance(set, FrameKind::hello, [&](AcceptedPeer accepted) {
      ++arrived;
      acceptor.close();
      established = std::move(accepted.socket);
      EXPECT_TRUE(accepted.proven);
      EXPECT_EQ(accepted.contents, contents);
    });
  };
  std::vector<Bytes> frames;
  for (Socket& guest : guests) {
    FrameReader reader;
    for (const Deadline end = soon();; turn()) {
      reader.read(guest);
      if (reader.complete() || end.passed())
        break;
    }
    ASSERT_TRUE(reader.complete()) << "no challenge";
    const Handshake handshake{{}, decode_nonce(reader.payload()).value()};
    frames.push_back(encode_frame(
        FrameKind::hello,
        encode_proven(dialer_proof(handshake, secret, FrameKind::hello, contents), contents)));
  }
  for (std::size_t i = 0; i < guests.size(); ++i)
    ASSERT_EQ(guests[i].send_some(frames[i].data(), frames[i].size()), frames[i].size());
  for (const Deadline end = soon(); arrived == 0 && !end.passed();)
    turn();
  EXPECT_EQ(arrived, 1);
  EXPECT_EQ(acceptor.waiting(), 0U);
  EXPECT_TRUE(acceptor.listeners().empty());
  for (std::size_t i = 1; i < guests.size(); ++i)
    EXPECT_TRUE(is_closed(guests[i])) << i;
}

} // namespace
} // namespace shmemctl
