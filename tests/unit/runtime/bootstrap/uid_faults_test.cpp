// Failures while a job connects over uid: every PE gets one line with the reason.
#include <gtest/gtest.h>

#include <stdexcept>
#include <sys/socket.h>

#include "src/runtime/bootstrap/acceptor.h"
#include "src/runtime/bootstrap/connect_peers.h"
#include "src/runtime/bootstrap/dialer.h"
#include "src/runtime/bootstrap/frame.h"
#include "src/runtime/bootstrap/interfaces.h"
#include "tests/support/soon.h"
#include "tests/unit/runtime/bootstrap/uid_world.h"

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

/// Every kind of first message of an unauthenticated peer.
std::vector<Bytes> strange_frames() {
  Join join;
  join.rank = 0;
  join.size = 3;
  const Bytes unasked = encode_frame(FrameKind::join, encode_proven({}, join.encode()));
  const Bytes connect_request = encode_frame(FrameKind::connect_request, encode_nonce({}));
  Bytes wrong_proof = connect_request;
  wrong_proof.insert(wrong_proof.end(), unasked.begin(), unasked.end());
  Bytes knock_twice = connect_request;
  knock_twice.insert(knock_twice.end(), connect_request.begin(), connect_request.end());
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
          unasked,
          wrong_proof,
          connect_request,
          knock_twice,
          Bytes(unasked.begin(), unasked.begin() + 40),
          encode_frame(FrameKind::connect_request, bytes_of("short")),
          encode_frame(FrameKind::join, bytes_of("short")),
          encode_frame(FrameKind::linked),
          encode_frame(FrameKind::hello, Hello{}.encode()),
          Bytes(huge_wire.begin(), huge_wire.end()),
          Bytes(unfinished_wire.begin(), unfinished_wire.end())};
}

TEST(UidUnauthenticated, DoNotAffectTheJob) {
  auto rendezvous = Rendezvous::start({}, 60);
  const UniqueId id = rendezvous->id();
  std::vector<Socket> strangers;
  for (int i = 0; i < 60; ++i)
    for (const Bytes& frame : strange_frames()) {
      strangers.push_back(Socket::connect(id.addresses[0], "the rendezvous", soon()));
      try {
        strangers.back().send_some(frame.data(), frame.size());
      } catch (const Error&) {
        // It has been rejected already.
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

TEST(UidUnauthenticated, MoreThanTheLimitDoNotKeepAPeOut) {
  auto rendezvous = Rendezvous::start({}, 60);
  const UniqueId id = rendezvous->id();
  std::vector<Socket> silent;
  for (std::size_t i = 0; i < Acceptor::max_waiting + 200; ++i)
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

TEST(UidUnauthenticated, AreClosedAfterTheHandshakeTimeout) {
  auto rendezvous = Rendezvous::start({}, 60);
  std::vector<Socket> strangers;
  for (const Bytes& frame : strange_frames()) {
    strangers.push_back(Socket::connect(rendezvous->id().addresses[0], "the rendezvous", soon()));
    EXPECT_NO_THROW(strangers.back().send_some(frame.data(), frame.size()));
  }
  const Deadline end = soon(10 * Acceptor::handshake_timeout_s + 60);
  for (std::size_t i = 0; i < strangers.size(); ++i)
    EXPECT_TRUE(is_closed_by(strangers[i], end)) << "stranger " << i;
}

/// One byte at a time does not keep the connection open longer than silence.
TEST(UidUnauthenticated, CannotStayBySendingSlowly) {
  auto rendezvous = Rendezvous::start({}, 60);
  Join join;
  const Bytes frame = encode_frame(FrameKind::join, encode_proven({}, join.encode()));
  Socket slow = Socket::connect(rendezvous->id().addresses[0], "the rendezvous", soon());
  const Deadline end = soon(10 * Acceptor::handshake_timeout_s + 60);
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

TEST(UidFaults, AnotherJobsIdIsRejectedWithThatReason) {
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
    EXPECT_NE(error.message().find("has another secret"), std::string::npos) << error.message();
    EXPECT_NE(error.message().find(other.addresses[0].text()), std::string::npos);
  }
}

TEST(UidFaults, AnotherVersionIsRefusedWithBothVersions) {
  auto rendezvous = Rendezvous::start({}, 60);
  FrameHeader header;
  header.kind = FrameKind::join;
  header.version = 9;
  const auto wire = header.encode();
  Socket other = Socket::connect(rendezvous->id().addresses[0], "the rendezvous", soon());
  other.send_all(wire.data(), wire.size(), soon());
  const FrameReader response = await_from_rendezvous(other, soon());
  ASSERT_EQ(response.header().kind, FrameKind::failure);
  const std::string text = FailureReport::decode(response.payload()).value().text;
  EXPECT_NE(text.find("uses version 4"), std::string::npos) << text;
  EXPECT_NE(text.find("connects uses version 9"), std::string::npos) << text;
}

/// All that a PE has sent to the rendezvous, replayed by a peer that has recorded it.
TEST(UidFaults, ARecordedJoinIsRefusedAndEndsNothing) {
  auto rendezvous = Rendezvous::start({}, 60);
  const UniqueId id = rendezvous->id();
  Join join;
  join.rank = 1;
  join.size = 3;
  join.remaining_ms = 30000;
  const Nonce nonce = random_nonce();
  const Bytes connect_request = encode_frame(FrameKind::connect_request, encode_nonce(nonce));
  // The proof of the recorded connection; what the listener sent there does not matter.
  const Handshake before{nonce, random_nonce()};
  const Bytes contents = join.encode();
  const Bytes frame = encode_frame(
      FrameKind::join,
      encode_proven(dialer_proof(before, id.secret, FrameKind::join, contents), contents));
  Socket replay = Socket::connect(id.addresses[0], "the rendezvous", soon());
  replay.send_all(connect_request.data(), connect_request.size(), soon());
  EXPECT_EQ(await_from_rendezvous(replay, soon()).header().kind, FrameKind::challenge);
  replay.send_all(frame.data(), frame.size(), soon());
  const FrameReader response = await_from_rendezvous(replay, soon());
  ASSERT_EQ(response.header().kind, FrameKind::failure);
  EXPECT_NE(FailureReport::decode(response.payload()).value().text.find("another job"),
            std::string::npos);
  UidWorld world;
  world.n_pes = 3;
  world.arguments = [&](int, UidArguments arguments) {
    arguments.id = id;
    return arguments;
  };
  for (const auto& error : run_uid_world(world, work))
    EXPECT_FALSE(error) << error->message();
}

/// A listener at the rendezvous's address learns nothing of the secret, and cannot send a valid
/// welcome.
TEST(UidFaults, AnImpostorLearnsNoSecretAndIsNotBelieved) {
  Listener impostor(SocketAddress::parse("127.0.0.1:0"));
  UniqueId id;
  id.secret = random_secret();
  id.addresses = {impostor.address()};
  std::string received;
  std::thread answering([&] {
    Socket socket = impostor.accept(soon());
    const auto receive = [&](std::size_t size_bytes) {
      std::string part(size_bytes, '\0');
      socket.receive_all(part.data(), part.size(), soon());
      received += part;
    };
    receive(FrameHeader::wire_bytes + sizeof(Nonce));
    const Bytes challenge = encode_frame(FrameKind::challenge, encode_nonce(random_nonce()));
    socket.send_all(challenge.data(), challenge.size(), soon());
    receive(FrameHeader::wire_bytes + sizeof(Proof));
    const Bytes welcome = encode_frame(FrameKind::welcome, encode_nonce({}));
    socket.send_all(welcome.data(), welcome.size(), soon());
  });
  UidArguments arguments;
  arguments.size = 2;
  arguments.id = id;
  try {
    join_uid(std::move(arguments), soon());
    ADD_FAILURE() << "it joined";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::unavailable);
    EXPECT_NE(error.message().find("does not have the secret"), std::string::npos)
        << error.message();
  }
  answering.join();
  EXPECT_EQ(received.find(std::string(id.secret.begin(), id.secret.end())), std::string::npos);
}

TEST(UidFaults, ADuplicateRankIsReportedToAll) {
  UidWorld world;
  world.n_pes = 5;
  world.arguments = [](int pe, UidArguments arguments) {
    arguments.rank = pe == 4 ? 1 : pe;
    return arguments;
  };
  expect_all(run_uid_world(world, work), ExitCode::usage,
             {"rank 1 was given to two PEs", "process " + std::to_string(getpid())});
}

TEST(UidFaults, ARankOutOfRangeIsReportedToAll) {
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

TEST(UidFaults, UnequalSizesAreReportedToAll) {
  UidWorld world;
  world.n_pes = 4;
  world.arguments = [](int pe, UidArguments arguments) {
    arguments.size = pe == 2 ? 9 : 4;
    return arguments;
  };
  expect_all(run_uid_world(world, work), ExitCode::usage, {"4", "9", "says", "PE 2"});
}

TEST(UidFaults, MissingPesAreNamedBeforeTheDeadline) {
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
  expect_all(errors, ExitCode::deadline, {"2 of 7 PEs have not joined: PE 3, 5:"});
}

TEST(UidFaults, EightOfManyMissingPesAreNamed) {
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

/// A port that refuses connections and that no other program can get meanwhile: bound, not
/// listening.
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

TEST(UidFaults, AMissingRendezvousIsATimeout) {
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

/// A listener at the rendezvous's address that never replies.
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
    EXPECT_NE(error.message().find("connected, but no answer"), std::string::npos)
        << error.message();
  }
}

TEST(UidFaults, AnEndedRendezvousIsDetectedAtOnce) {
  std::unique_ptr<Rendezvous> rendezvous = Rendezvous::start({}, 600);
  const UniqueId id = rendezvous->id();
  std::optional<Error> error;
  const Deadline deadline = soon(300);
  // Joins manually, so that it can close the connection after it was accepted.
  Join join;
  join.rank = 0;
  join.size = 2;
  join.remaining_ms = 300000;
  Dialer dialer("the rendezvous", id.addresses,
                Introduction{FrameKind::join, join.encode(), id.secret});
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
  EXPECT_NE(FailureReport::decode(reader.payload())->text.find("ran the rendezvous exited"),
            std::string::npos);
}

/// Joins as a PE would, and then closes the connection.
TEST(UidFaults, APeLostDuringTheJoinIsReportedToAll) {
  auto rendezvous = Rendezvous::start({}, 60);
  const UniqueId id = rendezvous->id();
  Join join;
  join.rank = 3;
  join.size = 4;
  join.remaining_ms = 30000;
  join.who = "host x, process 99";
  Dialer dialer("the rendezvous", id.addresses,
                Introduction{FrameKind::join, join.encode(), id.secret});
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

/// Until all PEs are connected, each may have to connect again: the loss of one ends the job.
TEST(UidFaults, APeThatIsLostBeforeAllAreConnectedIsReportedToAll) {
  auto rendezvous = Rendezvous::start({}, 60);
  const UniqueId id = rendezvous->id();
  std::vector<Socket> members;
  for (const int rank : {0, 1}) {
    Join join;
    join.rank = rank;
    join.size = 2;
    join.remaining_ms = 60000;
    join.who = "host x, process 9" + std::to_string(rank);
    Dialer dialer("the rendezvous", id.addresses,
                  Introduction{FrameKind::join, join.encode(), id.secret});
    members.push_back(dial(dialer, soon()));
  }
  for (Socket& member : members)
    ASSERT_EQ(await_from_rendezvous(member, soon()).header().kind, FrameKind::neighbours);
  const Bytes linked = encode_frame(FrameKind::linked);
  members[0].send_all(linked.data(), linked.size(), soon());
  members[0].close();
  const FrameReader response = await_from_rendezvous(members[1], soon(30));
  ASSERT_EQ(response.header().kind, FrameKind::failure);
  EXPECT_NE(FailureReport::decode(response.payload())
                .value()
                .text.find("PE 0 (host x, process 90) was lost while PEs joined"),
            std::string::npos);
}

/// It joins and receives its neighbours, but connects to none of them.
TEST(UidFaults, APeThatDoesNotConnectToItsNeighboursIsNamed) {
  auto rendezvous = Rendezvous::start({}, 60);
  const UniqueId id = rendezvous->id();
  Listener deaf(SocketAddress::parse("127.0.0.1:0"));
  Join join;
  join.rank = 3;
  join.size = 4;
  join.remaining_ms = 1000;
  join.addresses = {deaf.address().text()};
  Dialer dialer("the rendezvous", id.addresses,
                Introduction{FrameKind::join, join.encode(), id.secret});
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
  expect_all(errors, ExitCode::deadline, {"PE 3"});
}

/// The waiting PE gets the reason from the PE that knows it: the pair, the direction, the address
/// and the error.
TEST(UidFaults, ABlockedConnectionIsNamedByItsEnds) {
  const RefusingPort blocked;
  auto rendezvous = Rendezvous::start({}, 60);
  const UniqueId id = rendezvous->id();
  // PE 2 runs, but its addresses cannot be reached from the others.
  Join join;
  join.rank = 2;
  join.size = 3;
  join.remaining_ms = 4000;
  join.who = "host c, process 7";
  join.addresses = {blocked.address().text(), "[::1]:9"};
  Dialer dialer("the rendezvous", id.addresses,
                Introduction{FrameKind::join, join.encode(), id.secret});
  const Socket member = dial(dialer, soon());
  UidWorld world;
  world.n_pes = 3;
  world.timeout_s = 4;
  world.arguments = [&](int pe, UidArguments arguments) -> std::optional<UidArguments> {
    if (pe == 2)
      return std::nullopt;
    arguments.id = id;
    return arguments;
  };
  std::vector<std::optional<Error>> errors = run_uid_world(world, work);
  errors.resize(2);
  // PE 1 connects to PE 2 at a distance of 1; PE 0 at one of 2.
  expect_all(errors, ExitCode::deadline,
             {"cannot connect to PE 2", blocked.address().text() + ": Connection refused"});
}

} // namespace
} // namespace shmemctl
