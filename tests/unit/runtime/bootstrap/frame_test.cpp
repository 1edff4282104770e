#include <gtest/gtest.h>

#include "src/runtime/bootstrap/frame.h"
#include "src/runtime/bootstrap/rendezvous.h"

namespace shmemctl {
namespace {

void feed(FrameReader& reader, const Bytes& bytes, std::size_t step) {
  std::size_t at = 0;
  while (at < bytes.size()) {
    const FrameReader::Room room = reader.room();
    if (room.size_bytes == 0)
      return;
    const std::size_t count = std::min({step, room.size_bytes, bytes.size() - at});
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), count, room.at);
    reader.filled(count);
    at += count;
  }
}

Join a_join(int rank, int size) {
  Join join;
  join.rank = rank;
  join.size = size;
  join.nonce = static_cast<std::uint64_t>(rank) + 1000;
  join.remaining_ms = 60000;
  join.who = "host a, process " + std::to_string(100 + rank);
  join.addresses = {"10.0.0." + std::to_string(rank) + ":4711", "[fd00::1]:4711"};
  return join;
}

TEST(UidFrame, IsPutTogetherFromPiecesOfAnySize) {
  const Bytes frame = encode_frame(FrameKind::join, a_join(3, 4).encode());
  for (std::size_t step = 1; step <= frame.size(); ++step) {
    FrameReader reader;
    Bytes more = frame;
    more.push_back(std::byte{0x55});
    feed(reader, more, step);
    ASSERT_TRUE(reader.complete());
    EXPECT_EQ(reader.room().size_bytes, 0u) << "the next frame's bytes are not ours";
    EXPECT_EQ(reader.header().kind, FrameKind::join);
    const std::optional<Join> join = Join::decode(reader.payload());
    ASSERT_TRUE(join);
    EXPECT_EQ(join->rank, 3);
    EXPECT_EQ(join->addresses, a_join(3, 4).addresses);
  }
}

TEST(UidFrame, TheHeaderHasFixedBytes) {
  FrameHeader header;
  header.kind = FrameKind::allgather;
  header.round = 2;
  header.call = 0x01020304;
  header.root = 5;
  header.size_bytes = 0x0102;
  header.block_bytes = 7;
  const auto wire = header.encode();
  const std::array<unsigned, 32> expected = {'S', 'H', 'K', '1', 4, 0, 17, 2, 4, 3, 2,
                                             1,   5,   0,   0,   0, 2, 1,  0, 0, 0, 0,
                                             0,   0,   7,   0,   0, 0, 0,  0, 0, 0};
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(std::to_integer<unsigned>(wire[i]), expected[i]) << i;
}

TEST(UidFrame, IsRefusedBeforeAnythingIsAllocated) {
  FrameHeader header;
  header.kind = FrameKind::allgather;
  const auto problem = [&header](std::uint64_t most) {
    FrameHeader decoded;
    return decode_header(header.encode().data(), most, decoded);
  };
  header.size_bytes = max_frame_bytes;
  EXPECT_EQ(problem(max_frame_bytes), HeaderProblem::none);
  header.size_bytes = max_frame_bytes + 1;
  EXPECT_EQ(problem(max_frame_bytes), HeaderProblem::too_long);
  header.size_bytes = ~std::uint64_t{0};
  EXPECT_EQ(problem(max_frame_bytes), HeaderProblem::too_long);
  header.size_bytes = 0;
  header.version = 1;
  EXPECT_EQ(problem(max_frame_bytes), HeaderProblem::other_version);
  header.version = FrameHeader::protocol_version;
  header.kind = static_cast<FrameKind>(99);
  EXPECT_EQ(problem(max_frame_bytes), HeaderProblem::not_ours);

  FrameReader reader;
  Bytes http;
  for (const char c : std::string("GET / HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n"))
    http.push_back(static_cast<std::byte>(c));
  feed(reader, http, 64);
  EXPECT_EQ(reader.problem(), HeaderProblem::not_ours);
}

TEST(UidFrame, ContentsSurviveAndAnyShorteningIsNoticed) {
  const Hello hello{3, 5, 1};
  EXPECT_EQ(Hello::decode(hello.encode())->to, 5);
  Neighbours neighbours;
  neighbours.addresses = {{"a", "b"}, {}, {"c"}};
  EXPECT_EQ(Neighbours::decode(neighbours.encode())->addresses, neighbours.addresses);
  const FailureReport report{ExitCode::deadline, 7, "text", "fix"};
  EXPECT_EQ(FailureReport::decode(report.encode())->code, ExitCode::deadline);
  EXPECT_EQ(FailureReport::decode(report.encode())->reporter, 7);

  const Nonce nonce = {9, 8, 7};
  EXPECT_EQ(decode_nonce(encode_nonce(nonce)), nonce);
  const Proven proven = decode_proven(encode_proven(nonce, hello.encode())).value();
  EXPECT_EQ(proven.proof, nonce);
  EXPECT_EQ(proven.contents, hello.encode());
  EXPECT_FALSE(decode_proven(Bytes(sizeof(Proof) - 1)));

  const auto none_shorter = [](const Bytes& whole, const auto& decode) {
    for (std::size_t size = 0; size < whole.size(); ++size)
      EXPECT_FALSE(decode(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size))));
    Bytes longer = whole;
    longer.push_back(std::byte{0});
    EXPECT_FALSE(decode(longer));
  };
  none_shorter(a_join(0, 1).encode(), [](const Bytes& b) { return Join::decode(b).has_value(); });
  none_shorter(hello.encode(), [](const Bytes& b) { return Hello::decode(b).has_value(); });
  none_shorter(encode_nonce(nonce), [](const Bytes& b) { return decode_nonce(b).has_value(); });
  none_shorter(neighbours.encode(),
               [](const Bytes& b) { return Neighbours::decode(b).has_value(); });
  none_shorter(report.encode(),
               [](const Bytes& b) { return FailureReport::decode(b).has_value(); });
}

TEST(UidFrame, ForeignTextCannotBreakALine) {
  Join join = a_join(0, 1);
  join.who = "host\nforged line";
  EXPECT_EQ(Join::decode(join.encode())->who, "host\\x0aforged line");
}

using Verdict = Membership::Verdict;

TEST(UidMembership, IsCompleteWhenAllRanksAreThere) {
  Membership members;
  for (const int rank : {4, 2, 0, 1}) {
    EXPECT_EQ(members.add(a_join(rank, 5)).verdict, Verdict::welcome);
    EXPECT_FALSE(members.complete());
  }
  EXPECT_EQ(members.missing(), "1 of 5 PEs has not joined: PE 3");
  EXPECT_EQ(members.add(a_join(3, 5)).verdict, Verdict::welcome);
  EXPECT_TRUE(members.complete());
  const Neighbours neighbours = members.neighbours_of(3);
  ASSERT_EQ(neighbours.addresses.size(), 3u);
  EXPECT_EQ(neighbours.addresses[0].at(0), "10.0.0.4:4711");
  EXPECT_EQ(neighbours.addresses[1].at(0), "10.0.0.0:4711");
  EXPECT_EQ(neighbours.addresses[2].at(0), "10.0.0.2:4711");
}

TEST(UidMembership, NamesBothOfARankGivenTwice) {
  Membership members;
  members.add(a_join(1, 4));
  EXPECT_EQ(members.add(a_join(1, 4)).verdict, Verdict::duplicate) << "the same PE, by its nonce";
  Join other = a_join(1, 4);
  other.nonce = 5;
  other.who = "host b, process 7";
  const Membership::Decision response = members.add(other);
  EXPECT_EQ(response.verdict, Verdict::conflict);
  EXPECT_EQ(response.problem.text,
            "rank 1 was given to two PEs: host a, process 101 and host b, process 7");
}

TEST(UidMembership, NamesBothOfUnequalSizes) {
  Membership members;
  members.add(a_join(1, 4));
  const Membership::Decision response = members.add(a_join(3, 5));
  EXPECT_EQ(response.verdict, Verdict::conflict);
  EXPECT_EQ(response.problem.text,
            "PE 1 (host a, process 101) says that the job has 4 PEs, and PE 3 "
            "(host a, process 103) says 5");
}

TEST(UidMembership, RejectsImpossibleRanksAndSizes) {
  for (const auto& [rank, size] : std::vector<std::pair<int, int>>{
           {4, 4}, {-1, 4}, {0, 0}, {0, -1}, {0, Membership::max_pes + 1}}) {
    Membership members;
    EXPECT_EQ(members.add(a_join(rank, size)).verdict, Verdict::conflict) << rank << " " << size;
    EXPECT_EQ(members.joined(), 0);
  }
}

TEST(UidMembership, ListsEightMissingRanksAtMost) {
  Membership members;
  members.add(a_join(2, 100));
  EXPECT_EQ(members.missing(),
            "99 of 100 PEs have not joined: PE 0, 1, 3, 4, 5, 6, 7, 8 and 91 more");
}

} // namespace
} // namespace shmemctl
