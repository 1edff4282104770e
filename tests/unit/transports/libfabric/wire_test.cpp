// Messages between PEs: round trips, and malformed ones are refused.
#include <cstring>
#include <gtest/gtest.h>
#include <random>

#include "transports/libfabric/wire.h"

namespace shmemctl::fabric {
namespace {

Message some_message() {
  Message message;
  message.kind = MessageKind::signal;
  message.op = AtomicOp::add;
  message.from_pe = 3;
  message.operation = 17;
  message.generation = 5;
  message.region = 1;
  message.sequence = 99;
  message.writes = 4;
  message.offset_bytes = 4096;
  message.operand = 7;
  return message;
}

std::optional<Message> read_changed(const std::function<void(Message&)>& change) {
  Message message = some_message();
  change(message);
  return read_message(&message, sizeof message, 4);
}

TEST(FabricMessage, IsReadAsItWasWritten) {
  const auto read = read_changed([](Message&) {});
  ASSERT_TRUE(read);
  const Message before = some_message();
  EXPECT_EQ(std::memcmp(&*read, &before, sizeof before), 0);
}

TEST(FabricMessage, AnythingElseIsRefused) {
  const Message good = some_message();
  EXPECT_FALSE(read_message(&good, sizeof good - 1, 4));
  EXPECT_FALSE(read_changed([](Message& m) { m.magic ^= 1; }));
  EXPECT_FALSE(read_changed([](Message& m) { m.kind = static_cast<MessageKind>(0); }));
  EXPECT_FALSE(read_changed([](Message& m) { m.kind = static_cast<MessageKind>(4); }));
  EXPECT_FALSE(read_changed([](Message& m) { m.op = static_cast<AtomicOp>(8); }));
  EXPECT_FALSE(read_changed([](Message& m) { m.from_pe = 4; }));
  EXPECT_FALSE(read_changed([](Message& m) { m.from_pe = 0xffffffff; }));
  EXPECT_FALSE(read_changed([](Message& m) { m.word_bytes = 3; }));
  EXPECT_FALSE(read_changed([](Message& m) { m.word_bytes = 2; })) << "only words that are put";
  EXPECT_TRUE(read_changed([](Message& m) {
    m.word_bytes = 2;
    m.op = AtomicOp::set;
  }));
}

TEST(FabricImmediate, TellsSenderAndNumber) {
  for (const int n_pes : {1, 2, 3, 1000, 1 << 20}) {
    const ImmediateSpace space(n_pes);
    EXPECT_GE(space.numbers(), 1u);
    for (const int pe : {0, n_pes / 2, n_pes - 1})
      for (const std::uint32_t sequence : {0u, 1u, space.numbers() - 1, space.numbers(), ~0u}) {
        const auto sender = space.decode(space.encode(pe, sequence));
        ASSERT_TRUE(sender) << n_pes << " PEs, PE " << pe << ", " << sequence;
        EXPECT_EQ(sender->pe, pe);
        EXPECT_EQ(sender->sequence, sequence % space.numbers());
      }
  }
}

TEST(FabricImmediate, OtherDataIsNone) {
  const ImmediateSpace space(3);
  EXPECT_FALSE(space.decode(0));
  EXPECT_FALSE(space.decode(0x2000'0000));
  EXPECT_FALSE(space.decode(0xffff'ffff));
  EXPECT_FALSE(space.decode(std::uint64_t{1} << 32 | space.encode(1, 1)));
  // 2^28 is not a multiple of 3: the remainder belongs to no PE.
  EXPECT_FALSE(space.decode(0x1fff'ffff));
}

TEST(FabricLocalInfo, SaysWhatThereIsOrWhyNot) {
  const LocalInfo there = read_local_info(to_text(LocalInfo{{}, "tcp;ofi_rxm", "efa", 2, true}));
  EXPECT_EQ(there.problem, "");
  EXPECT_EQ(there.provider, "tcp;ofi_rxm");
  EXPECT_EQ(there.profile, "efa");
  EXPECT_EQ(there.address_format, 2u);
  EXPECT_TRUE(there.loopback);
  EXPECT_EQ(read_local_info(to_text(LocalInfo{"no such file", {}, {}, 0, false})).problem,
            "no such file");
  EXPECT_LE(to_text(LocalInfo{std::string(5000, 'x'), {}, {}, 0, false}).size(), 1024u);
  for (const char* text : {"", "yes", "yes\n", "no", "no\n", "yes\n\n\n\n", "maybe\na\nb\n1\n0",
                           "yes\na\nb\n1\n0\nmore"})
    EXPECT_NE(read_local_info(text).problem, "") << text;
}

TEST(FabricEndpoints, AreReadAsTheyWereWritten) {
  const std::vector<EndpointName> names = {{"eth0", std::string("\0\2\xff", 3)}, {"rxe0", ""}};
  using Names = std::vector<EndpointName>;
  const std::string text = to_bytes(names);
  EXPECT_EQ(from_bytes<Names>(text), names);
  for (std::size_t size_bytes = 0; size_bytes < text.size(); ++size_bytes)
    EXPECT_FALSE(from_bytes<Names>(text.substr(0, size_bytes))) << size_bytes;
  EXPECT_FALSE(from_bytes<Names>(text + "x"));
}

TEST(FabricKeys, AreReadAsTheyWereWritten) {
  PieceKey key{4096, 8192, std::vector<PieceKey::EndpointKey>(max_endpoints, {7, 1})};
  const std::string text = to_bytes(key);
  EXPECT_LE(text.size(), 256u);
  EXPECT_EQ(from_bytes<PieceKey>(text), key);
  for (std::size_t size_bytes = 0; size_bytes < text.size(); ++size_bytes)
    EXPECT_FALSE(from_bytes<PieceKey>(text.substr(0, size_bytes))) << size_bytes;
  key.by_endpoint.push_back({1, 1});
  EXPECT_FALSE(from_bytes<PieceKey>(to_bytes(key))) << "too many";
  EXPECT_FALSE(from_bytes<PieceKey>(to_bytes(PieceKey{~std::uint64_t{0}, 2, {}}))) << "wraps";
}

} // namespace
} // namespace shmemctl::fabric
