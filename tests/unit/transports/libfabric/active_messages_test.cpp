// What a PE does for its peers, whatever they send and in whatever order.
#if __has_include(<rdma/fabric.h>)

#include <algorithm>
#include <gtest/gtest.h>
#include <random>

#include "transports/libfabric/active_messages.h"

namespace shmemctl::fabric {
namespace {

/// PE 2 of 4, with 64 words in region 1; nothing is registered anywhere.
class FabricTarget : public testing::Test {
protected:
  FabricTarget() {
    memory_.set_region({1, reinterpret_cast<std::byte*>(words_.data()), sizeof words_, {}});
  }
  static Message request(AtomicOp op, std::uint64_t offset_bytes, std::uint64_t operand) {
    Message message;
    message.op = op;
    message.from_pe = 1;
    message.operation = 5;
    message.generation = 9;
    message.region = 1;
    message.offset_bytes = offset_bytes;
    message.operand = operand;
    return message;
  }
  static Message signal(int from_pe, std::uint32_t sequence, std::uint32_t writes) {
    Message message = request(AtomicOp::add, 8, 1);
    message.kind = MessageKind::signal;
    message.from_pe = static_cast<std::uint32_t>(from_pe);
    message.sequence = sequence;
    message.writes = writes;
    return message;
  }

  std::array<std::uint64_t, 64> words_{};
  MemoryMap memory_{4};
  ImmediateSpace immediates_{4};
  Target target_{memory_, 2, immediates_};
};

TEST_F(FabricTarget, ExecutesAndReplies) {
  words_[1] = 40;
  const auto reply = target_.on_request(request(AtomicOp::add, 8, 2));
  ASSERT_TRUE(reply);
  EXPECT_EQ(words_[1], 42u);
  EXPECT_EQ(reply->kind, MessageKind::reply);
  EXPECT_EQ(reply->operand, 40u);
  EXPECT_EQ(reply->refused, 0);
  EXPECT_EQ(reply->operation, 5u);
  EXPECT_EQ(reply->generation, 9u);
  EXPECT_EQ(reply->from_pe, 2u);
  EXPECT_EQ(Target::receiver(*reply), 1);
}

TEST_F(FabricTarget, RefusesWhatIsNotInItsMemory) {
  const auto refused = [&](const std::function<void(Message&)>& change) {
    Message message = request(AtomicOp::add, 8, 1);
    change(message);
    const auto reply = target_.on_request(message);
    return reply && reply->refused == 1;
  };
  EXPECT_TRUE(refused([](Message& m) { m.offset_bytes = sizeof words_; }));
  EXPECT_TRUE(refused([](Message& m) { m.offset_bytes = sizeof words_ - 4; }));
  EXPECT_TRUE(refused([](Message& m) { m.offset_bytes = 12; })) << "not aligned";
  EXPECT_TRUE(refused([](Message& m) { m.offset_bytes = ~std::uint64_t{0} - 7; }));
  EXPECT_TRUE(refused([](Message& m) { m.region = 0; })) << "there is no such region";
  EXPECT_TRUE(refused([](Message& m) { m.region = 1000; }));
  EXPECT_TRUE(std::all_of(words_.begin(), words_.end(), [](auto word) { return word == 0; }));
}

TEST_F(FabricTarget, PutsSmallWords) {
  Message message = request(AtomicOp::set, 6, 0xffff'1234);
  message.word_bytes = 2;
  ASSERT_TRUE(target_.on_request(message));
  EXPECT_EQ(words_[0], std::uint64_t{0x1234} << 48);
}

TEST_F(FabricTarget, SignalWithoutPayloadComesAtOnce) {
  ASSERT_TRUE(target_.on_request(signal(1, 3, 0)));
  EXPECT_EQ(words_[1], 1u);
}

TEST_F(FabricTarget, SignalWaitsForItsPayload) {
  EXPECT_FALSE(target_.on_request(signal(1, 3, 2)));
  EXPECT_FALSE(target_.on_payload(immediates_.encode(1, 3)));
  EXPECT_EQ(words_[1], 0u);
  EXPECT_TRUE(target_.on_payload(immediates_.encode(1, 3)));
  EXPECT_EQ(words_[1], 1u);
}

TEST_F(FabricTarget, PayloadMayComeFirst) {
  EXPECT_FALSE(target_.on_payload(immediates_.encode(1, 3)));
  EXPECT_FALSE(target_.on_payload(immediates_.encode(1, 3)));
  EXPECT_TRUE(target_.on_request(signal(1, 3, 2)));
  EXPECT_EQ(words_[1], 1u);
}

TEST_F(FabricTarget, OtherSendersAndNumbersDoNotCount) {
  EXPECT_FALSE(target_.on_request(signal(1, 3, 1)));
  EXPECT_FALSE(target_.on_payload(immediates_.encode(0, 3)));
  EXPECT_FALSE(target_.on_payload(immediates_.encode(1, 4)));
  EXPECT_FALSE(target_.on_payload(0x7fff'ffff));
  EXPECT_EQ(words_[1], 0u);
  EXPECT_TRUE(target_.on_payload(immediates_.encode(1, 3)));
}

/// All parts of many signals in random order: each signal is executed once, never before its
/// payload.
TEST_F(FabricTarget, AnyOrder) {
  std::mt19937 random(1);
  struct Event {
    int pe;
    std::uint32_t sequence;
    bool is_signal;
  };
  for (int round = 0; round < 200; ++round) {
    std::vector<Event> events;
    std::map<std::pair<int, std::uint32_t>, std::uint32_t> missing;
    for (int pe = 0; pe < 4; ++pe)
      for (std::uint32_t sequence = 0; sequence < 5; ++sequence) {
        const std::uint32_t writes = random() % 4;
        missing[{pe, sequence}] = writes + 1;
        events.push_back({pe, sequence, true});
        for (std::uint32_t i = 0; i < writes; ++i)
          events.push_back({pe, sequence, false});
      }
    std::map<std::pair<int, std::uint32_t>, std::uint32_t> writes = missing;
    std::shuffle(events.begin(), events.end(), random);
    words_[1] = 0;
    for (const Event& event : events) {
      const auto key = std::pair(event.pe, event.sequence);
      const auto reply = event.is_signal
                             ? target_.on_request(signal(event.pe, event.sequence, writes[key] - 1))
                             : target_.on_payload(immediates_.encode(event.pe, event.sequence));
      EXPECT_EQ(reply.has_value(), --missing[key] == 0);
    }
    EXPECT_EQ(words_[1], 20u);
  }
}

} // namespace
} // namespace shmemctl::fabric

#endif
