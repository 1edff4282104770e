// What goes wrong while a job over uid comes together: everybody gets one line that says why.
#include <gtest/gtest.h>

#include <stdexcept>
#include <sys/socket.h>

#include "src/bootstrap/dialer.h"
#include "src/bootstrap/frame.h"
#include "src/bootstrap/interfaces.h"
#include "src/bootstrap/reception.h"
#include "tests/support/soon.h"
#include "tests/unit/bootstrap/uid_world.h"

namespace shmemctl {
namespace {

using test::soon;

using test::run_uid_world;
using test::UidWorld;

void work(Bootstrap& b, const Deadline& deadline) {
  for (int i = 0; i < 3; ++i) {
    const std::vector<int> ranks = allgather_value(b, b.rank(), deadline);
    for (int rank = 0; rank < b.size(); ++rank)
      ASSERT_EQ(ranks[static_cast<std::size_t>(rank)], rank);
  }
  b.finish(deadline);
}

void expect_all(const std::vector<std::optional<Error>>& errors, ExitCode code,
                const std::vector<std::string>& parts) {
  for (std::size_t pe = 0; pe < errors.size(); ++pe) {
    ASSERT_TRUE(errors[pe]) << "PE " << pe << " met no error";
    EXPECT_EQ(errors[pe]->code(), code) << errors[pe]->message();
    for (const std::string& part : parts)
      EXPECT_NE(errors[pe]->message().find(part), std::string::npos)
          << "PE " << pe << ": " << errors[pe]->message();
    EXPECT_FALSE(errors[pe]->fix().empty());
  }
}

Bytes bytes_of(const std::string& text) {
  Bytes bytes;
  for (const char c : text)
    bytes.push_back(static_cast<std::byte>(c));
  return bytes;
}

/// Every way in which a stranger may present itself.
std::vector<Bytes> strange_frames() {
  Join join;
  join.rank = 0;
  join.size = 3;
  const Bytes wrong_secret = encode_frame(FrameKind::join, join.encode());
  FrameHeader huge;
  huge.kind = FrameKind::join;
  huge.size_bytes = ~std::uint64_t{0};
  const auto huge_wire = huge.encode();
  FrameHeader unfinished = huge;
  unfinished.size_bytes = 4000;
  const auto unfinished_wire = unfinished.encode();
  return {{},
          bytes_of("G"),
          bytes_of("GET / HTTP/1.0\r\n\r\nand a long tail of other bytes, more than a header"),
          Bytes(100000, std::byte{0xff}),
          wrong_secret,
          Bytes(wrong_secret.begin(), wrong_secret.begin() + 40),
          encode_frame(FrameKind::join, bytes_of("short")),
          encode_frame(FrameKind::linked),
          encode_frame(FrameKind::hello, Hello{}.encode()),
          Bytes(huge_wire.begin(), huge_wire.end()),
          Bytes(unfinished_wire.begin(), unfinished_wire.end())};
}

TEST(UidStrangers, CostTheJobNothing) {
  auto rendezvous = Rendezvous::start({}, 60);
  const UniqueId id = rendezvous->id();
  std::vector<Socket> strangers;
  for (int i = 0; i < 60; ++i)
    for (const Bytes& frame : strange_frames()) {
      strangers.push_back(Socket::connect(id.addresses[0], "the rendezvous", soon()));
      try {
        strangers.back().send_some(frame.data(), frame.size());
      } catch (const Error&) {
        // It has been shown the door already.
        strangers.pop_back();
      }
    }
  UidWorld world;
  world.n_pes = 5;
  world.arguments = [&](int, UidArguments arguments) {
    arguments.id = id;
    return arguments;
  };
  const auto errors = run_uid_world(world, work);
  for (const auto& error : errors)
    EXPECT_FALSE(error) << error->message();
}

TEST(UidStrangers, MoreThanMayWaitDoNotKeepAPeOut) {
  auto rendezvous = Rendezvous::start({}, 60);
  const UniqueId id = rendezvous->id();
  std::vector<Socket> silent;
  for (std::size_t i = 0; i < Reception::max_waiting + 200; ++i)
    silent.push_back(Socket::connect(id.addresses[0], "the rendezvous", soon()));
  UidWorld world;
  world.n_pes = 3;
  world.arguments = [&](int, UidArguments arguments) {
    arguments.id = id;
    return arguments;
  };
  for (const auto& error : run_uid_world(world, work))
    EXPECT_FALSE(error) << error->message();
}

/// Reads until the other side ends the connection, within the deadline.
bool is_closed_by(Socket& socket, const Deadline& deadline) {
  try {
    for (char byte = 0;;)
      socket.receive_all(&byte, 1, deadline);
  } catch (const Error& error) {
    return error.code() == ExitCode::unavailable;
  }
}

TEST(UidStrangers, AreClosedSoon) {
  auto rendezvous = Rendezvous::start({}, 60);
  std::vector<Socket> strangers;
  for (const Bytes& frame : strange_frames()) {
    strangers.push_back(Socket::connect(rendezvous->id().addresses[0], "the rendezvous", soon()));
    EXPECT_NO_THROW(strangers.back().send_some(frame.data(), frame.size()));
  }
  const Deadline end = soon(10 * Reception::patience_s + 60);
  for (std::size_t i = 0; i < strangers.size(); ++i)
    EXPECT_TRUE(is_closed_by(strangers[i], end)) << "stranger " << i;
}

/// One byte at a time keeps the connection no longer than silence does.
TEST(UidStrangers, CannotStayBySendingSlowly) {
  auto rendezvous = Rendezvous::start({}, 60);
  Join join;
  const Bytes frame = encode_frame(FrameKind::join, join.encode());
  Socket slow = Socket::connect(rendezvous->id().addresses[0], "the rendezvous", soon());
  const Deadline end = soon(10 * Reception::patience_s + 60);
  bool closed = false;
  for (std::size_t at = 0; !closed && !end.passed(); at = std::min(at + 1, frame.size() - 2))
    try {
      if (at < frame.size() - 2)
        slow.send_all(&frame[at], 1, end);
      char byte = 0;
      slow.receive_all(&byte, 1, soon(0.1));
    } catch (const Error& error) {
      closed = error.code() == ExitCode::unavailable;
    }
  EXPECT_TRUE(closed);
}

TEST(UidFaults, AnotherJobsIdIsRefusedWithWordsThatSaySo) {
  auto rendezvous = Rendezvous::start({}, 60);
  UniqueId other = rendezvous->id();
  other.secret = random_secret();
  UidArguments arguments;
  arguments.size = 2;
  arguments.id = other;
  try {
    join_uid(std::move(arguments), soon());
    FAIL() << "it joined";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_NE(error.message().find("belongs to another job"), std::string::npos) << error.message();
    EXPECT_NE(error.message().find(other.addresses[0].text()), std::string::npos);
  }
}

TEST(UidFaults, AnotherVersionIsRefusedWithBothVersions) {
  auto rendezvous = Rendezvous::start({}, 60);
  FrameHeader header;
  header.kind = FrameKind::join;
  header.version = 9;
  const auto wire = header.encode();
  Dialer dialer("the rendezvous", rendezvous->id().addresses, Bytes(wire.begin(), wire.end()));
  try {
    dial(dialer, soon());
    FAIL() << "it was let in";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("speaks version 1"), std::string::npos) << error.message();
    EXPECT_NE(error.message().find("the PE version 9"), std::string::npos) << error.message();
  }
}

TEST(UidFaults, ARankGivenTwiceIsToldToAll) {
  UidWorld world;
  world.n_pes = 5;
  world.arguments = [](int pe, UidArguments arguments) {
    arguments.rank = pe == 4 ? 1 : pe;
    return arguments;
  };
  expect_all(run_uid_world(world, work), ExitCode::usage,
             {"rank 1 was given to two PEs", "process " + std::to_string(getpid())});
}

TEST(UidFaults, ARankOutOfRangeIsToldToAll) {
  for (const int rank : {4, -1, 1000000}) {
    UidWorld world;
    world.n_pes = 4;
    world.arguments = [rank](int pe, UidArguments arguments) {
      arguments.rank = pe == 3 ? rank : pe;
      return arguments;
    };
    expect_all(run_uid_world(world, work), ExitCode::usage,
               {"has rank " + std::to_string(rank) + " in a job of 4 PEs"});
  }
}

TEST(UidFaults, UnequalSizesAreToldToAll) {
  UidWorld world;
  world.n_pes = 4;
  world.arguments = [](int pe, UidArguments arguments) {
    arguments.size = pe == 2 ? 9 : 4;
    return arguments;
  };
  expect_all(run_uid_world(world, work), ExitCode::usage, {"4", "9", "says", "PE 2"});
}

TEST(UidFaults, PesThatNeverComeAreNamedBeforeTheDeadline) {
  UidWorld world;
  world.n_pes = 7;
  world.timeout_s = 5;
  world.arguments = [](int pe, UidArguments arguments) {
    return pe == 3 || pe == 5 ? std::nullopt : std::optional<UidArguments>(std::move(arguments));
  };
  const Deadline end = soon();
  std::vector<std::optional<Error>> errors = run_uid_world(world, work);
  EXPECT_FALSE(end.passed());
  EXPECT_FALSE(errors[3]);
  errors.erase(errors.begin() + 5);
  errors.erase(errors.begin() + 3);
  expect_all(errors, ExitCode::deadline, {"2 of 7 PEs have not joined: PE 3, 5,"});
}

TEST(UidFaults, OfManyThatNeverComeEightAreNamed) {
  UidWorld world;
  world.n_pes = 40;
  world.timeout_s = 5;
  world.arguments = [](int pe, UidArguments arguments) {
    return pe >= 2 ? std::nullopt : std::optional<UidArguments>(std::move(arguments));
  };
  std::vector<std::optional<Error>> errors = run_uid_world(world, work);
  errors.resize(2);
  expect_all(errors, ExitCode::deadline,
             {"38 of 40 PEs have not joined: PE 2, 3, 4, 5, 6, 7, 8, 9 and 30 more"});
}

/// A port that refuses, and that no other program is given meanwhile: bound, and nobody listens.
class RefusingPort {
public:
  RefusingPort() {
    const SocketAddress any = SocketAddress::parse("127.0.0.1:0");
    sockaddr_storage bound{};
    socklen_t length = sizeof bound;
    if (!socket_ || ::bind(socket_.get(), any.raw(), any.length()) != 0 ||
        ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&bound), &length) != 0)
      throw std::runtime_error("a port cannot be bound");
    address_ = SocketAddress(reinterpret_cast<const sockaddr*>(&bound), length);
  }
  const SocketAddress& address() const { return address_; }

private:
  FileDescriptor socket_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  SocketAddress address_;
};

TEST(UidFaults, ARendezvousThatIsNotThereEndsAtTheDeadline) {
  const RefusingPort nobody;
  UidArguments arguments;
  arguments.size = 2;
  arguments.id.addresses = {nobody.address()};
  try {
    join_uid(std::move(arguments), soon(2));
    FAIL() << "it joined";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::deadline);
    EXPECT_NE(error.message().find("rendezvous at 127.0.0.1"), std::string::npos)
        << error.message();
    EXPECT_NE(error.message().find("refused"), std::string::npos) << error.message();
  }
}

/// Something listens where the rendezvous should be and never answers.
TEST(UidFaults, ASilentRendezvousEndsAtTheDeadline) {
  Listener mute(SocketAddress::parse("127.0.0.1:0"));
  UidArguments arguments;
  arguments.size = 2;
  arguments.id.addresses = {mute.address()};
  try {
    join_uid(std::move(arguments), soon(2));
    FAIL() << "it joined";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::deadline);
    EXPECT_NE(error.message().find("no answer"), std::string::npos) << error.message();
  }
}

TEST(UidFaults, ARendezvousThatEndsEarlyIsNoticedAtOnce) {
  std::unique_ptr<Rendezvous> rendezvous = Rendezvous::start({}, 600);
  const UniqueId id = rendezvous->id();
  std::optional<Error> error;
  const Deadline deadline = soon(300);
  // Presents itself by hand, so that the end comes after it was let in.
  Join join;
  join.secret = id.secret;
  join.rank = 0;
  join.size = 2;
  join.remaining_ms = 300000;
  Dialer dialer("the rendezvous", id.addresses, encode_frame(FrameKind::join, join.encode()));
  Socket member = dial(dialer, deadline);
  rendezvous.reset();
  FrameReader reader;
  while (!reader.complete()) {
    std::byte byte{};
    member.receive_all(&byte, 1, deadline);
    *reader.room().at = byte;
    reader.filled(1);
  }
  ASSERT_EQ(reader.header().kind, FrameKind::failure);
  EXPECT_NE(FailureReport::decode(reader.payload())->text.find("held the rendezvous ended"),
            std::string::npos);
}

/// Joins as a PE would, and then goes away.
TEST(UidFaults, APeLostWhileOthersComeIsToldToAll) {
  auto rendezvous = Rendezvous::start({}, 60);
  const UniqueId id = rendezvous->id();
  Join join;
  join.secret = id.secret;
  join.rank = 3;
  join.size = 4;
  join.remaining_ms = 30000;
  join.who = "host x, process 99";
  Dialer dialer("the rendezvous", id.addresses, encode_frame(FrameKind::join, join.encode()));
  Socket lost = dial(dialer, soon());
  UidWorld world;
  world.n_pes = 4;
  world.arguments = [&](int pe, UidArguments arguments) -> std::optional<UidArguments> {
    if (pe == 3)
      return std::nullopt;
    arguments.id = id;
    if (pe == 2)
      lost.close();
    return arguments;
  };
  std::vector<std::optional<Error>> errors = run_uid_world(world, work);
  errors.resize(3);
  expect_all(errors, ExitCode::unavailable, {"PE 3 (host x, process 99) was lost"});
}

/// It joins and is told its neighbours, but connects to none of them.
TEST(UidFaults, APeThatDoesNotConnectToItsNeighboursIsNamed) {
  auto rendezvous = Rendezvous::start({}, 60);
  const UniqueId id = rendezvous->id();
  Listener deaf(SocketAddress::parse("127.0.0.1:0"));
  Join join;
  join.secret = id.secret;
  join.rank = 3;
  join.size = 4;
  join.remaining_ms = 1000;
  join.addresses = {deaf.address().text()};
  Dialer dialer("the rendezvous", id.addresses, encode_frame(FrameKind::join, join.encode()));
  const Socket stuck = dial(dialer, soon());
  UidWorld world;
  world.n_pes = 4;
  world.arguments = [&](int pe, UidArguments arguments) -> std::optional<UidArguments> {
    if (pe == 3)
      return std::nullopt;
    arguments.id = id;
    return arguments;
  };
  std::vector<std::optional<Error>> errors = run_uid_world(world, work);
  errors.resize(3);
  expect_all(errors, ExitCode::deadline, {"3"});
}

} // namespace
} // namespace shmemctl
