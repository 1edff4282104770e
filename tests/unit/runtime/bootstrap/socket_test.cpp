#include "src/base/socket.h"

#include <cstring>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <vector>

#include "src/base/error.h"
#include "src/runtime/bootstrap/interfaces.h"
#include "tests/support/findings.h"
#include "tests/support/soon.h"

namespace shmemctl {
namespace {

using test::soon;
using testing::contains;

template <class Action>
Error error_from(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  return {ExitCode::ok, "nothing", "throw", "no Error was thrown", ""};
}

TEST(SocketAddress, RoundTripsThroughText) {
  for (const char* text :
       {"10.0.0.1:4711", "0.0.0.0:0", "255.255.255.255:65535", "[::1]:80", "[fd00::2]:4711",
        "[::]:1", "[fe80::1%lo]:4711", "unix:shmemctl-1", "unix:a%b:c[d]"}) {
    SCOPED_TRACE(text);
    EXPECT_EQ(SocketAddress::parse(text).text(), text);
  }
}

TEST(SocketAddress, RejectsMalformedTexts) {
  for (const std::string text : {"",
                                 ":",
                                 "10.0.0.1",
                                 "10.0.0.1:",
                                 "10.0.0.1:x",
                                 "10.0.0.1:65536",
                                 "10.0.0.1:-1",
                                 "10.0.0.1:+1",
                                 "10.0.0.1: 1",
                                 "10.0.0:1",
                                 "010.0.0.1.5:1",
                                 "localhost:80",
                                 "::1:80",
                                 "[::1]",
                                 "[::1]80",
                                 "[::1:80",
                                 "[::g]:80",
                                 "[fe80::1%]:1",
                                 "[fe80::1%no-such-interface]:1",
                                 "[fe80::1%0]:1",
                                 "unix:",
                                 "unix:a b",
                                 "unix:a,b",
                                 "unix:\n"}) {
    SCOPED_TRACE(text);
    const Error error = error_from([&] { SocketAddress::parse(text); });
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_FALSE(error.fix().empty());
  }
  EXPECT_EQ(error_from([] { SocketAddress::parse(std::string("1.2.3.4:1\0", 10)); }).code(),
            ExitCode::usage);
  EXPECT_EQ(error_from([] { SocketAddress::parse(std::string(5000, '1') + ":1"); }).code(),
            ExitCode::usage);
}

TEST(SocketAddress, UnixNamesHaveAtMostAHundredBytes) {
  EXPECT_EQ(SocketAddress::abstract_unix(std::string(100, 'a')).text(),
            "unix:" + std::string(100, 'a'));
  EXPECT_THROW(SocketAddress::abstract_unix(std::string(101, 'a')), Error);
}

TEST(SocketAddress, ChangesItsPort) {
  EXPECT_EQ(SocketAddress::parse("10.0.0.1:1").with_port(4711).text(), "10.0.0.1:4711");
  EXPECT_EQ(SocketAddress::parse("[::1]:1").with_port(4711).text(), "[::1]:4711");
  EXPECT_EQ(SocketAddress::parse("[::1]:4711").port(), 4711);
  EXPECT_EQ(SocketAddress::parse("unix:a").with_port(4711).text(), "unix:a");
  EXPECT_EQ(SocketAddress().text(), "");
}

/// Every kind of address that this machine can listen on.
std::vector<SocketAddress> local_addresses() {
  std::vector<SocketAddress> addresses = {SocketAddress::abstract_unix(random_unix_name())};
  for (const InterfaceAddress& each : interface_addresses())
    if (each.up)
      addresses.push_back(each.address);
  return addresses;
}

TEST(Socket, CarriesBytesOverEveryFamily) {
  for (const SocketAddress& address : local_addresses()) {
    SCOPED_TRACE(address.text());
    Listener listener(address);
    Socket client = Socket::connect(listener.address(), "PE 1", soon());
    Socket server = listener.accept(soon());
    std::vector<unsigned char> sent(3 << 20), received(sent.size());
    for (std::size_t i = 0; i < sent.size(); ++i)
      sent[i] = static_cast<unsigned char>(i * 7 + i / 251);
    std::thread sender([&] { client.send_all(sent.data(), sent.size(), soon()); });
    server.receive_all(received.data(), received.size(), soon());
    sender.join();
    EXPECT_EQ(sent, received);
  }
}

TEST(Socket, DescriptorsAreClosedOnExecAndDoNotBlock) {
  Listener listener(SocketAddress::parse("127.0.0.1:0"));
  Socket client = Socket::connect(listener.address(), "PE 1", soon());
  Socket server = listener.accept(soon());
  for (const int descriptor : {listener.descriptor(), client.descriptor(), server.descriptor()}) {
    EXPECT_NE(fcntl(descriptor, F_GETFD) & FD_CLOEXEC, 0);
    EXPECT_NE(fcntl(descriptor, F_GETFL) & O_NONBLOCK, 0);
  }
}

TEST(Socket, ConnectsToAListenerThatStartsLater) {
  const SocketAddress address = SocketAddress::abstract_unix(random_unix_name());
  int checks = 0;
  Listener listener;
  // The check runs between two attempts: the first attempt has been refused by then.
  Socket client = Socket::connect(address, "PE 1", soon(), [&] {
    if (++checks == 2)
      listener = Listener(address);
  });
  EXPECT_TRUE(listener.accept(soon()));
  EXPECT_EQ(client.peer(), "PE 1");
}

TEST(Socket, TimesOutWithoutAListener) {
  const SocketAddress address = Listener(SocketAddress::parse("127.0.0.1:0")).address();
  const Error error = error_from([&] { Socket::connect(address, "PE 7", soon(0.1)); });
  EXPECT_EQ(error.code(), ExitCode::deadline);
  EXPECT_TRUE(contains(error.message(), "PE 7")) << error.message();
  EXPECT_TRUE(contains(error.message(), address.text())) << error.message();
  EXPECT_TRUE(contains(error.message(), "refused")) << error.message();
}

TEST(Socket, SilenceEndsAtTheDeadlineAndNamesThePeer) {
  Listener listener(SocketAddress::parse("127.0.0.1:0"));
  Socket client = Socket::connect(listener.address(), "PE 7", soon());
  char byte = 0;
  const Error error = error_from([&] { client.receive_all(&byte, 1, soon(0.1)); });
  EXPECT_EQ(error.code(), ExitCode::deadline);
  EXPECT_TRUE(contains(error.message(), "PE 7")) << error.message();
}

TEST(Socket, ASendToABlockedPeerTimesOut) {
  Listener listener(SocketAddress::parse("127.0.0.1:0"));
  Socket client = Socket::connect(listener.address(), "PE 7", soon());
  const std::vector<char> much(64 << 20);
  const Error error = error_from([&] { client.send_all(much.data(), much.size(), soon(0.2)); });
  EXPECT_EQ(error.code(), ExitCode::deadline);
}

TEST(Socket, NamesThePeerThatClosed) {
  Listener listener(SocketAddress::parse("127.0.0.1:0"));
  Socket client = Socket::connect(listener.address(), "PE 7", soon());
  listener.accept(soon()).close();
  char byte = 0;
  const Error receive = error_from([&] { client.receive_all(&byte, 1, soon()); });
  EXPECT_EQ(receive.code(), ExitCode::unavailable);
  EXPECT_TRUE(contains(receive.message(), "PE 7")) << receive.message();
  const std::vector<char> much(8 << 20);
  const Error send = error_from([&] { client.send_all(much.data(), much.size(), soon()); });
  EXPECT_EQ(send.code(), ExitCode::unavailable);
}

TEST(Socket, DataSentBeforeTheCloseCanBeRead) {
  Listener listener(SocketAddress::parse("127.0.0.1:0"));
  Socket client = Socket::connect(listener.address(), "PE 7", soon());
  Socket server = listener.accept(soon());
  server.send_all("last", 4, soon());
  server.end_sending();
  char words[5] = {};
  client.receive_all(words, 4, soon());
  EXPECT_STREQ(words, "last");
  EXPECT_THROW(client.receive_some(words, 1), Error);
}

TEST(Socket, ACheckEndsAWait) {
  Listener listener(SocketAddress::parse("127.0.0.1:0"));
  Socket client = Socket::connect(listener.address(), "PE 7", soon());
  const WaitCheck check = [] {
    throw Error(ExitCode::unavailable, "the job", "go on", "PE 3 failed", "look at it");
  };
  char byte = 0;
  EXPECT_TRUE(contains(error_from([&] { client.receive_all(&byte, 1, soon(), check); }).message(),
                       "PE 3 failed"));
  EXPECT_TRUE(contains(error_from([&] {
                         listener.accept(soon());
                         listener.accept(soon(), check);
                       }).message(),
                       "PE 3 failed"));
}

TEST(Socket, NothingToReadIsNoEnd) {
  Listener listener(SocketAddress::parse("127.0.0.1:0"));
  EXPECT_FALSE(listener.accept_now());
  Socket client = Socket::connect(listener.address(), "PE 7", soon());
  char byte = 0;
  EXPECT_EQ(client.receive_some(&byte, 1), 0u);
  EXPECT_EQ(client.receive_some(&byte, 0), 0u);
}

TEST(Listener, TheDeadlineOfAnAccept) {
  Listener listener(SocketAddress::parse("127.0.0.1:0"));
  EXPECT_EQ(error_from([&] { listener.accept(soon(0.1)); }).code(), ExitCode::deadline);
}

TEST(Listener, ATakenPortAndAForeignAddressAreRefused) {
  Listener first(SocketAddress::parse("127.0.0.1:0"));
  const Error taken = error_from([&] { Listener second(first.address()); });
  EXPECT_EQ(taken.code(), ExitCode::unavailable);
  EXPECT_TRUE(contains(taken.message(), first.address().text()));
  EXPECT_EQ(error_from([] { Listener other(SocketAddress::parse("192.0.2.77:0")); }).code(),
            ExitCode::unavailable);
}

/// Opens more sockets than the soft limit allows. In a child: the limit is the process's.
int open_many_sockets() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = 24;
  if (limit.rlim_max < 64 || setrlimit(RLIMIT_NOFILE, &limit) != 0)
    return 2;
  try {
    std::vector<Listener> listeners;
    for (int i = 0; i < 40; ++i)
      listeners.emplace_back(SocketAddress::parse("127.0.0.1:0"));
  } catch (const Error&) {
    return 1;
  }
  return 0;
}

TEST(Listener, RaisesTheSoftLimitOfOpenFiles) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0)
    _exit(open_many_sockets());
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

} // namespace
} // namespace shmemctl
