// A shared receive queue and a target's replies, without a job.
#include <gtest/gtest.h>

#include <poll.h>

#include "tests/support/expect_error.h"
#include "tests/unit/transports/ibrc/fake_world.h"
#include "transports/ibrc/am_responder.h"
#include "transports/verbs/shared_receives.h"

namespace shmemctl::test {
namespace {

using ibrc::AtomicMessage;

std::unique_ptr<verbs::Device> open_first(const FakeVerbs& fake) {
  verbs::Survey survey = verbs::survey(fake.functions());
  return std::move(survey.devices.at(0));
}

/// A queue pair to another one of the same device.
void connect(verbs::QueuePair& one, const verbs::QueuePair& other) {
  rc::QpPath path;
  path.peer_qpn = other.number();
  ASSERT_EQ(rc::move_qp(rc::QpState::reset, rc::QpState::rts,
                        [&](rc::QpState state) { return one.modify(state, path); }),
            0);
}

bool readable(int descriptor, int timeout_ms) {
  pollfd event{descriptor, POLLIN, 0};
  return ::poll(&event, 1, timeout_ms) == 1;
}

/// Sends its number `count` times, and waits for `done`.
class Receiving : public testing::Test {
protected:
  static constexpr std::size_t size_bytes = 8;

  void send(std::uint64_t value) {
    ibv_sge element{reinterpret_cast<std::uintptr_t>(&value), size_bytes, 0};
    ibv_send_wr request;
    std::memset(&request, 0, sizeof request);
    request.sg_list = &element;
    request.num_sge = 1;
    request.opcode = IBV_WR_SEND;
    request.send_flags = IBV_SEND_INLINE;
    ibv_send_wr* refused = nullptr;
    ASSERT_EQ(::ibv_post_send(from_.get(), &request, &refused), 0);
  }
  template <class Condition>
  void wait(Condition&& condition) {
    const Deadline deadline = Deadline::after(std::chrono::seconds(60));
    while (!condition() && !deadline.passed())
      std::this_thread::yield();
    ASSERT_TRUE(condition());
  }
  void receive() {
    receives_.poll([&](std::uint32_t queue_pair, const std::byte* bytes, std::size_t length) {
      EXPECT_EQ(queue_pair, to_.number());
      ASSERT_EQ(length, size_bytes);
      std::uint64_t value = 0;
      std::memcpy(&value, bytes, sizeof value);
      received_.push_back(value);
    });
  }

  void SetUp() override {
    connect(from_, to_);
    connect(to_, from_);
  }

  FakeVerbs fake_{{roce_device("fake0")}};
  std::unique_ptr<verbs::Device> device_ = open_first(fake_);
  verbs::CompletionQueue completions_ =
      verbs::own(fake_.functions()->create_cq(device_->context(), 64, nullptr, nullptr, 0),
                 fake_.functions()->destroy_cq);
  verbs::SharedReceives receives_{*device_, 2, size_bytes};
  verbs::QueuePair from_{*device_, completions_.get(), 16, 64, receives_.place()};
  verbs::QueuePair to_{*device_, completions_.get(), 16, 64, receives_.place()};
  std::vector<std::uint64_t> received_;
};

TEST_F(Receiving, WhatFindsNoReceiveComesWhenThereIsOne) {
  for (std::uint64_t value = 0; value < 5; ++value)
    send(value);
  wait([&] { return fake_.not_ready > 0; });
  EXPECT_EQ(fake_.messages.load(), 2u);
  wait([&] {
    receive();
    return received_.size() >= 5;
  });
  EXPECT_EQ(received_, (std::vector<std::uint64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(fake_.misuse(), "");
}

TEST_F(Receiving, TheDescriptorTellsOfMessages) {
  receives_.arm();
  EXPECT_FALSE(readable(receives_.descriptor(), 0));
  send(7);
  EXPECT_TRUE(readable(receives_.descriptor(), 30000));
  receives_.clear_events();
  EXPECT_FALSE(readable(receives_.descriptor(), 0));
  receive();
  // Only the next one after arm().
  send(8);
  wait([&] {
    receive();
    return received_.size() == 2;
  });
  EXPECT_FALSE(readable(receives_.descriptor(), 0));
  receives_.arm();
  send(9);
  EXPECT_TRUE(readable(receives_.descriptor(), 30000));
}

TEST_F(Receiving, ACqThatCannotBePolledIsAnError) {
  fake_.poll_error = -1;
  expect_error(ExitCode::unavailable,
               {"CQ", "cannot read completions", "ibv_poll_cq returned -1", "device fake0"},
               [&] { receive(); });
  fake_.poll_error = 0;
}

TEST(SharedReceives, DevicesSayHowManyTheyHold) {
  FakeDevice none = roce_device("fake0");
  none.max_srq = 0;
  FakeDevice few = roce_device("fake0");
  few.max_srq_wr = 100;
  FakeDevice short_queues = roce_device("fake0");
  short_queues.max_cqe = 50;
  const std::pair<FakeDevice, std::uint32_t> cases[] = {
      {roce_device("fake0"), 4096}, {none, 0}, {few, 100}, {short_queues, 50}};
  for (const auto& [device, expected] : cases) {
    FakeVerbs fake({device});
    EXPECT_EQ(verbs::max_shared_receives(*open_first(fake)), expected);
  }
}

/// A target of one PE that is its own peer, with two credits.
class Answering : public testing::Test {
protected:
  static constexpr std::uint32_t queue_pair = 4711;

  Answering() {
    ibrc::UsedDevice used;
    used.device = open_first(fake_);
    used.events = std::make_unique<verbs::AsyncEvents>(*used.device);
    job_.devices.push_back(std::move(used));
    job_.nics.push_back(std::make_unique<ibrc::Nic>());
    job_.nics[0]->port = job_.devices[0].device->port(1);
    regions_.set({1, reinterpret_cast<std::byte*>(words_), sizeof words_, {}});
    responder_ = std::make_unique<ibrc::AmResponder>(job_, regions_, 2, 1);
    ibrc::Endpoint& endpoint = responder_->add_peer(0, 0, 0);
    connect(endpoint.queue_pair, endpoint.queue_pair);
    registered_ = verbs::register_memory(*job_.devices[0].device, block_, sizeof block_,
                                         verbs::MemoryKind::host, {}, "a block");
    place_ = {2, reinterpret_cast<std::uintptr_t>(block_), {registered_->rkey}};
    responder_->add_source(0, queue_pair, 0, 0);
  }
  void ask(std::uint32_t from, const ibrc::AtomicMessage& message) {
    const AtomicMessage::Bytes bytes = encode(message);
    responder_->on_message(0, from, bytes.data(), bytes.size());
  }
  std::uint64_t block_word(std::size_t at) {
    return std::atomic_ref(block_[at / 8]).load(std::memory_order_acquire);
  }
  void await_done(std::uint64_t count) {
    const Deadline deadline = Deadline::after(std::chrono::seconds(60));
    while (block_word(ibrc::ReplyBlock::done_at) != count && !deadline.passed()) {
      responder_->poll();
      responder_->send();
      std::this_thread::yield();
    }
    ASSERT_EQ(block_word(ibrc::ReplyBlock::done_at), count);
  }

  static AtomicMessage add(std::uint64_t value) { return {{AtomicOp::add, 8, value}, 1, 0, true}; }

  FakeVerbs fake_{{roce_device("fake0")}};
  ibrc::JobView job_;
  RegionTable regions_;
  alignas(8) std::uint64_t words_[2] = {};
  alignas(8) std::uint64_t block_[64] = {};
  std::unique_ptr<ibrc::AmResponder> responder_;
  verbs::MemoryRegion registered_;
  ibrc::ReplyAddress place_;
};

TEST_F(Answering, ValuesAreThereWhenTheCountIs) {
  ASSERT_TRUE(responder_->set_place(0, place_));
  const ibrc::ReplyBlock layout{2};
  for (std::uint64_t number = 0; number < 100; ++number) {
    ask(queue_pair, add(1));
    await_done(number + 1);
    EXPECT_EQ(block_word(layout.value_at(number)), number);
    EXPECT_EQ(block_word(ibrc::ReplyBlock::refused_at), 0u);
  }
  EXPECT_FALSE(responder_->pending());
}

TEST_F(Answering, MoreRequestsThanCreditsAreRefused) {
  ASSERT_TRUE(responder_->set_place(0, place_));
  for (int i = 0; i < 5; ++i)
    ask(queue_pair, add(1));
  EXPECT_EQ(words_[0], 2u); // the other requests are not executed
  await_done(2);
  EXPECT_EQ(block_word(ibrc::ReplyBlock::refused_at),
            ibrc::refused_word(2, ibrc::Refusal::too_many));
}

TEST_F(Answering, TheFirstRefusalIsReported) {
  ASSERT_TRUE(responder_->set_place(0, place_));
  ask(queue_pair, add(1));
  responder_->on_message(0, queue_pair, "garbage", 7);
  await_done(2);
  EXPECT_EQ(block_word(ibrc::ReplyBlock::refused_at),
            ibrc::refused_word(1, ibrc::Refusal::malformed));
  ask(queue_pair, {{AtomicOp::add, 8, 1}, 9, 0, true});
  await_done(3);
  EXPECT_EQ(block_word(ibrc::ReplyBlock::refused_at),
            ibrc::refused_word(1, ibrc::Refusal::malformed));
}

TEST_F(Answering, StrangersAreNotServed) {
  ASSERT_TRUE(responder_->set_place(0, place_));
  ask(queue_pair + 1, add(1));
  responder_->on_message(5, queue_pair, &words_, sizeof words_);
  EXPECT_EQ(words_[0], 0u);
  EXPECT_FALSE(responder_->pending());
}

TEST_F(Answering, UnwritableReplyAddressesAreRefused) {
  ibrc::ReplyAddress other = place_;
  other.credits = 3;
  EXPECT_FALSE(responder_->set_place(0, other));
  other = place_;
  other.keys.clear();
  EXPECT_FALSE(responder_->set_place(0, other));
  other = place_;
  other.address += 4;
  EXPECT_FALSE(responder_->set_place(0, other));
}

TEST_F(Answering, ACqThatCannotBePolledIsAnError) {
  ASSERT_TRUE(responder_->set_place(0, place_));
  ask(queue_pair, add(1));
  responder_->send();
  fake_.poll_error = -2;
  expect_error(ExitCode::unavailable, {"ibv_poll_cq returned -2", "device fake0"},
               [&] { responder_->poll(); });
  fake_.poll_error = 0;
  await_done(1);
}

/// A peer to which no reply can be sent is dropped, and nothing waits for it.
TEST_F(Answering, APeerThatIsGoneCostsNothing) {
  place_.keys[0] = 1; // no such memory
  ASSERT_TRUE(responder_->set_place(0, place_));
  for (std::uint64_t i = 1; i <= 2000; ++i) {
    ask(queue_pair, add(1));
    responder_->send();
    const Deadline deadline = Deadline::after(std::chrono::seconds(60));
    while (responder_->pending() && !deadline.passed()) {
      responder_->poll();
      responder_->send();
    }
    responder_->poll();
    ASSERT_FALSE(responder_->pending());
  }
  EXPECT_EQ(block_word(ibrc::ReplyBlock::done_at), 0u);
  EXPECT_EQ(fake_.misuse(), "");
}

} // namespace
} // namespace shmemctl::test
