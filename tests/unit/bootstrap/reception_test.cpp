// Where strangers connect: what happens while they are heard.
#include "src/bootstrap/reception.h"

#include <gtest/gtest.h>

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

/// Who waits for one PE may have heard it while others stand behind it. (Without the mend this
/// reads guests that are gone: AddressSanitizer and ThreadSanitizer show it.)
TEST(Reception, MayBeClosedByWhoeverHearsAGuest) {
  std::vector<Listener> listeners;
  listeners.emplace_back(SocketAddress::parse("127.0.0.1:0"));
  const SocketAddress address = listeners[0].address();
  Reception reception(std::move(listeners));
  const Bytes frame = encode_frame(FrameKind::hello, Bytes(100, std::byte{7}));
  std::vector<Socket> guests;
  for (int i = 0; i < 5; ++i) {
    guests.push_back(Socket::connect(address, "a long name of the reception", soon()));
    ASSERT_EQ(guests.back().send_some(frame.data(), frame.size()), frame.size());
  }
  Socket heard;
  int arrived = 0;
  PollSet set;
  for (const Deadline end = soon(); arrived == 0 && !end.passed();) {
    set.clear();
    reception.prepare(set);
    set.wait();
    reception.advance(set, FrameKind::hello, [&](Socket socket, const Bytes& payload) {
      ++arrived;
      reception.close();
      heard = std::move(socket);
      EXPECT_EQ(payload, Bytes(100, std::byte{7}));
    });
  }
  EXPECT_EQ(arrived, 1);
  EXPECT_EQ(reception.waiting(), 0U);
  EXPECT_TRUE(reception.listeners().empty());
  for (std::size_t i = 1; i < guests.size(); ++i)
    EXPECT_TRUE(is_closed(guests[i])) << i;
}

} // namespace
} // namespace shmemctl
