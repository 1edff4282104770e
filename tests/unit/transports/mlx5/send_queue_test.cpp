// The send queue's arithmetic around its end and around 2^16, on a device that is polled.
#include <gtest/gtest.h>
#include <random>

#include "src/abi/send_queue.h"
#include "tests/unit/transports/mlx5/emulated_hca_world.h"

namespace shmemctl::test {
namespace {

using Send = SendQueue<DeviceShape, HostMemory>;

/// Publishes and rings; false if another producer is first.
bool publish(const Send& send, std::uint64_t first, std::uint32_t wqebbs,
             const Signalled& signalled, DoorbellMode doorbell) {
  send.written();
  const PublishResult turn = send.try_publish(first, wqebbs, signalled, doorbell);
  return turn == PublishResult::done ||
         (turn == PublishResult::ring && send.try_ring(first + wqebbs));
}

/// One producer and its device, in one thread.
class Poster {
public:
  Poster(EmulatedWorld& world) : world_(world), send_(world.queue->view()) {}

  /// WQEs of one or two WQEBBs, each writing its number to its own slot; returns the first WQEBB.
  std::uint64_t post(const std::vector<unsigned>& sizes, DoorbellMode doorbell,
                     bool completion = false) {
    std::uint32_t wqebbs = 0;
    for (const unsigned size : sizes)
      wqebbs += size;
    const std::uint64_t first = send_.reserve(wqebbs);
    while (!send_.has_room(first + wqebbs, known_) &&
           !send_.poll_for_room(first + wqebbs, known_)) {
      if (world_.hca.poll() == 0 && ++fruitless_ > 3)
        throw std::runtime_error("no room, and nothing to do");
    }
    fruitless_ = 0;
    Signalled signalled{0, 0};
    std::uint64_t start = first;
    for (const unsigned size : sizes) {
      const bool completes = completion || send_.completes(start, size);
      if (completes)
        signalled = {start + 1, start + size};
      const WqeHead head{start, send_.view().qpn,
                         static_cast<std::uint8_t>(completes ? flag_completion : 0)};
      WqeSlot slot(send_, start);
      unsigned char data[92] = {};
      ++number_;
      std::memcpy(data + 84, &number_, 8);
      if (size == 1)
        build_value_write(slot, head, world_.remote(8 * (number_ % places)), number_, 8);
      else // the number is at the WQE's very end
        build_inline_write(slot, head, world_.remote(1024 + 92 * (number_ % 16)), data, 92);
      start += size;
    }
    if (!publish(send_, first, wqebbs, signalled, doorbell))
      throw std::runtime_error("not our turn");
    return first;
  }

  void expect_all_there() {
    const Send::Target target = send_.target();
    EXPECT_TRUE(target.needs_nop || send_.try_flush());
    std::uint64_t complete = target.complete;
    if (target.needs_nop) {
      const std::uint64_t start = send_.reserve(1);
      while (!send_.has_room(start + 1, known_) && !send_.poll_for_room(start + 1, known_))
        world_.hca.poll();
      WqeSlot slot(send_, start);
      build_nop(slot, {start, send_.view().qpn, flag_completion});
      EXPECT_TRUE(publish(send_, start, 1, {start + 1, start + 1}, DoorbellMode::now));
      complete = start + 1;
    }
    for (int turn = 0; turn < 100'000 && send_.completed() < complete; ++turn) {
      world_.hca.poll();
      send_.poll();
    }
    EXPECT_GE(send_.completed(), complete);
    EXPECT_EQ(send_.failure(), 0u);
    EXPECT_FALSE(world_.queue->fatal_event());
  }

  static constexpr std::uint64_t places = 100;
  Send& send() { return send_; }
  std::uint64_t number() const { return number_; }

private:
  EmulatedWorld& world_;
  Send send_;
  std::uint64_t known_ = 0, number_ = 0;
  int fruitless_ = 0;
};

QpOptions options_of(std::uint32_t wqebbs, std::uint32_t signal_every, CqMode mode) {
  QpOptions options;
  options.wqebbs = wqebbs;
  options.signal_every = signal_every;
  options.completions = mode;
  return options;
}

/// Where the latest WQEs left their numbers.
void expect_written(EmulatedWorld& world, std::uint64_t number, unsigned wqebbs) {
  if (wqebbs == 1)
    EXPECT_EQ(world.at<std::uint64_t>(8 * (number % Poster::places)), number);
  else
    EXPECT_EQ(world.at<std::uint64_t>(1024 + 92 * (number % 16) + 84), number);
}

class Mlx5QueueOfSize : public testing::TestWithParam<std::tuple<std::uint32_t, CqMode>> {};

TEST_P(Mlx5QueueOfSize, ThroughTheWrapOfTheDevicesIndex) {
  const auto [wqebbs, mode] = GetParam();
  EmulatedWorld world(options_of(wqebbs, wqebbs / 4, mode));
  Poster poster(world);
  std::mt19937 random(wqebbs);
  std::uint64_t checked = 0;
  while (poster.send().view().words->reserved < 3 * 65536 + 100) {
    const unsigned size = random() % 3 == 0 ? 2 : 1;
    poster.post({size}, random() % 4 == 0 ? DoorbellMode::now : DoorbellMode::later,
                random() % 8 == 0);
    if (random() % 64 == 0) {
      poster.expect_all_there();
      expect_written(world, poster.number(), size);
      ++checked;
    }
  }
  poster.expect_all_there();
  EXPECT_GT(checked, 100u);
}

INSTANTIATE_TEST_SUITE_P(Sizes, Mlx5QueueOfSize,
                         testing::Combine(testing::Values(16u, 32u, 256u, 4096u, 16384u),
                                          testing::Values(CqMode::ring, CqMode::collapsed)));

/// Every first WQEBB of a queue of 16, for every pattern of sizes that a reservation can have.
TEST(Mlx5Queue, EveryPatternAtEveryPlace) {
  std::vector<std::vector<unsigned>> patterns;
  for (unsigned count = 1; count <= 5; ++count)
    for (unsigned bits = 0; bits < 1u << count; ++bits) {
      std::vector<unsigned> pattern;
      for (unsigned i = 0; i < count; ++i)
        pattern.push_back(1 + (bits >> i & 1));
      patterns.push_back(pattern);
    }
  for (const CqMode mode : {CqMode::ring, CqMode::collapsed})
    for (const std::uint32_t signal_every : {1u, 2u, 4u})
      for (const std::vector<unsigned>& pattern : patterns)
        for (unsigned place = 0; place < 16; ++place) {
          EmulatedWorld world(options_of(16, signal_every, mode));
          Poster poster(world);
          for (unsigned i = 0; i < place; ++i)
            poster.post({1}, DoorbellMode::later);
          for (int round = 0; round < 3; ++round)
            poster.post(pattern, DoorbellMode::now);
          poster.expect_all_there();
          expect_written(world, poster.number(), pattern.back());
        }
}

TEST(Mlx5Queue, TheLargestReservation) {
  for (const std::uint32_t signal_every : {1u, 2u, 4u})
    for (unsigned place = 0; place < 40; ++place) {
      EmulatedWorld world(options_of(16, signal_every, CqMode::ring));
      Poster poster(world);
      for (unsigned i = 0; i < place; ++i)
        poster.post({i % 3 == 0 ? 2u : 1u}, DoorbellMode::later);
      const std::uint32_t most = poster.send().max_reserved();
      EXPECT_EQ(most, 16 - signal_every - 1);
      for (int round = 0; round < 4; ++round)
        poster.post(std::vector<unsigned>(most, 1), DoorbellMode::later);
      poster.expect_all_there();
    }
}

TEST(Mlx5Queue, OneDoorbellForMany) {
  EmulatedWorld world(options_of(64, 16, CqMode::ring));
  Poster poster(world);
  const QpView& view = world.queue->view();
  for (int i = 0; i < 10; ++i)
    poster.post({1}, DoorbellMode::later);
  EXPECT_EQ(*view.doorbell, 0u);
  EXPECT_EQ(world.hca.poll(), 0u);
  EXPECT_TRUE(poster.send().try_flush());
  EXPECT_EQ(*view.doorbell, doorbell_value(10, view.qpn));
  EXPECT_EQ(*view.send_record, send_dbrec_value(10));
  EXPECT_EQ(world.hca.poll(), 10u);
  // Nothing new: nothing is written.
  *view.doorbell = 0;
  EXPECT_TRUE(poster.send().try_flush());
  EXPECT_EQ(*view.doorbell, 0u);
}

TEST(Mlx5Queue, ALaterReservationRingsTheDoorbell) {
  EmulatedWorld world(options_of(64, 16, CqMode::ring));
  const QpView& view = world.queue->view();
  Send send(view);
  const auto write_nop = [&](std::uint64_t start) {
    WqeSlot slot(send, start);
    build_nop(slot, {start, view.qpn, 0});
  };
  const std::uint64_t one = send.reserve(1), other = send.reserve(1), last = send.reserve(1);
  for (const std::uint64_t start : {one, other, last})
    write_nop(start);
  EXPECT_FALSE(publish(send, other, 1, {0, 0}, DoorbellMode::now)) << "not its turn";
  EXPECT_TRUE(publish(send, one, 1, {0, 0}, DoorbellMode::now));
  EXPECT_EQ(*view.doorbell, 0u);
  EXPECT_TRUE(publish(send, other, 1, {0, 0}, DoorbellMode::later));
  EXPECT_EQ(*view.doorbell, 0u);
  EXPECT_TRUE(publish(send, last, 1, {0, 0}, DoorbellMode::later)) << "rings for the first";
  EXPECT_EQ(*view.doorbell, doorbell_value(3, view.qpn));
  EXPECT_EQ(world.hca.poll(), 3u);
}

TEST(Mlx5Queue, DoorbellsHaveAMaximumInterval) {
  QpOptions options = options_of(64, 16, CqMode::ring);
  options.ring_every = 4;
  EmulatedWorld world(options);
  const QpView& view = world.queue->view();
  Send send(view);
  std::vector<std::uint64_t> starts;
  for (int i = 0; i < 10; ++i)
    starts.push_back(send.reserve(1));
  for (const std::uint64_t start : starts) {
    WqeSlot slot(send, start);
    build_nop(slot, {start, view.qpn, 0});
    EXPECT_TRUE(publish(send, start, 1, {0, 0}, DoorbellMode::now));
    const std::uint64_t rung = (start + 1) / 4 * 4;
    EXPECT_EQ(*view.send_record, send_dbrec_value(start == 9 ? 10 : rung));
  }
}

TEST(Mlx5Queue, AFailureIsKept) {
  for (const CqMode mode : {CqMode::ring, CqMode::collapsed}) {
    EmulatedWorld world(options_of(16, 4, mode));
    world.emulated_queue().inject({2, Syndrome::remote_access});
    Poster poster(world);
    for (int i = 0; i < 3; ++i)
      poster.post({1}, DoorbellMode::now, true);
    world.hca.poll();
    poster.send().poll();
    const Failure failure = Failure::from_word(poster.send().failure());
    EXPECT_EQ(failure.syndrome, 0x13);
    EXPECT_EQ(failure.index, 2);
    for (int i = 0; i < 3; ++i)
      poster.post({1}, DoorbellMode::now, true);
    world.hca.poll();
    poster.send().poll();
    EXPECT_EQ(Failure::from_word(poster.send().failure()).syndrome, 0x13) << "not the flushes";
    EXPECT_LE(poster.send().completed(), 2u);
  }
}

} // namespace
} // namespace shmemctl::test
