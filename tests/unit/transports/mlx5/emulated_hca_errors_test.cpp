// What the emulated HCA refuses, with which syndrome, and the state of the QP afterwards.
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "tests/unit/transports/mlx5/malformed_wqes.h"

namespace shmemctl::test {
namespace {

/// The WQE at the front of the queue fails so.
void expect_failure(EmulatedWorld& world, std::uint64_t index, Syndrome syndrome,
                    EmulatedFault cause) {
  const std::optional<SeenCompletion> seen = world.raw.next();
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->tail.kind, static_cast<std::uint8_t>(CqeKind::requester_error));
  EXPECT_EQ(seen->failure.syndrome, static_cast<std::uint8_t>(syndrome));
  EXPECT_EQ(seen->failure.vendor_syndrome, static_cast<std::uint8_t>(cause))
      << text_of(static_cast<EmulatedFault>(seen->failure.vendor_syndrome));
  EXPECT_EQ(seen->failure.index, static_cast<std::uint16_t>(index));
}

void add_nop(EmulatedWorld& world, std::uint8_t flags = flag_completion) {
  world.raw.build([](auto& out, const WqeHead& head) { build_nop(out, head); }, flags);
}

TEST(Mlx5EmulatedErrors, EveryMalformedWqe) {
  for (const Malformed& malformed : malformed_entries())
    for (const bool beside : {false, true}) {
      SCOPED_TRACE(malformed.name);
      EmulatedWorld world;
      world.here.fill(std::byte{0x11});
      world.there.fill(std::byte{0x22});
      if (beside) { // the WQE's index is not 0, and the WQEs before it succeed
        add_nop(world);
        add_nop(world, 0);
      }
      const std::uint64_t index = world.raw.position();
      EntryWords entry;
      malformed.make(world, entry);
      world.raw.put(entry, 1);
      add_nop(world);
      world.raw.build(
          [&](auto& out, const WqeHead& head) {
            build_value_write(out, head, world.remote(8), 1, 8);
          },
          0);
      world.raw.ring();
      while (world.hca.poll() > 0) {
      }
      if (beside) {
        const std::optional<SeenCompletion> good = world.raw.next();
        ASSERT_TRUE(good);
        EXPECT_FALSE(is_error(good->tail));
      }
      expect_failure(world, index, malformed.syndrome, malformed.cause);
      // Later WQEs are flushed, whether they requested a completion or not. A WQE that claims to be
      // longer includes those after it.
      const bool swallows = malformed.cause == EmulatedFault::behind_producer;
      for (std::uint64_t behind = 1; behind <= 2 && !swallows; ++behind)
        expect_failure(world, index + behind, Syndrome::flushed, EmulatedFault::flushed);
      EXPECT_FALSE(world.raw.next());
      for (const std::byte byte : world.there)
        ASSERT_EQ(byte, std::byte{0x22});
      for (const std::byte byte : world.here)
        ASSERT_EQ(byte, std::byte{0x11});
      EXPECT_EQ(world.queue->detail(static_cast<std::uint16_t>(index)), text_of(malformed.cause));
      EXPECT_FALSE(world.queue->fatal_event());
    }
}

TEST(Mlx5EmulatedErrors, AReadNeedsLocalWriteAccess) {
  EmulatedWorld world;
  const auto read_only = world.hca.register_memory({world.here.data(), 64, 0});
  world.raw.build([&](auto& out, const WqeHead& head) {
    build_write(out, head, world.remote(0), {address_of(world.here.data()), read_only->lkey(), 8});
  });
  world.raw.build([&](auto& out, const WqeHead& head) {
    build_read(out, head, world.remote(0), {address_of(world.here.data()), read_only->lkey(), 8});
  });
  world.raw.ring();
  EXPECT_EQ(world.hca.poll(), 2u);
  EXPECT_FALSE(is_error(world.raw.next()->tail));
  expect_failure(world, 1, Syndrome::local_protection, EmulatedFault::lkey_access);
}

TEST(Mlx5EmulatedErrors, AQueueThatIsNotConnected) {
  EmulatedWorld world(EmulatedWorld::small_ring(), false);
  add_nop(world);
  world.raw.build(
      [&](auto& out, const WqeHead& head) { build_value_write(out, head, world.remote(0), 1, 8); });
  world.raw.ring();
  EXPECT_EQ(world.hca.poll(), 2u);
  EXPECT_TRUE(world.raw.next());
  expect_failure(world, 1, Syndrome::local_operation, EmulatedFault::not_connected);
}

TEST(Mlx5EmulatedErrors, ConnectedTwice) {
  EmulatedWorld world;
  EXPECT_THROW(world.queue->connect(world.queue->local()), Error);
}

TEST(Mlx5EmulatedErrors, InjectedOnes) {
  for (const Syndrome syndrome :
       {Syndrome::local_protection, Syndrome::remote_access, Syndrome::remote_operation,
        Syndrome::retries_exceeded, Syndrome::receiver_not_ready, Syndrome::remote_aborted,
        Syndrome::bad_response})
    for (const std::uint64_t after : {0u, 1u, 5u}) {
      EmulatedWorld world;
      world.emulated_queue().inject({after, syndrome});
      for (int i = 0; i < 8; ++i)
        world.raw.build([&](auto& out, const WqeHead& head) {
          build_value_write(out, head, world.remote(8 * head.index), 1, 8);
        });
      world.raw.ring();
      EXPECT_EQ(world.hca.poll(), 8u);
      for (std::uint64_t i = 0; i < after; ++i)
        EXPECT_FALSE(is_error(world.raw.next()->tail));
      expect_failure(world, after, syndrome, EmulatedFault::injected);
      for (std::uint64_t i = after + 1; i < 8; ++i)
        expect_failure(world, i, Syndrome::flushed, EmulatedFault::flushed);
      EXPECT_EQ(world.emulated_queue().executed(), after);
      for (std::uint64_t i = 0; i < 8; ++i)
        EXPECT_EQ(world.at<std::uint64_t>(8 * i), i < after ? 1u : 0u);
    }
}

TEST(Mlx5EmulatedErrors, AfterAnErrorTheCollapsedCqShowsTheLastFlush) {
  QpOptions options = EmulatedWorld::small_ring();
  options.completions = CqMode::collapsed;
  EmulatedWorld world(options);
  world.emulated_queue().inject({1, Syndrome::remote_access});
  for (int i = 0; i < 4; ++i)
    add_nop(world);
  world.raw.ring();
  EXPECT_EQ(world.hca.poll(), 4u);
  const SeenCompletion seen = world.raw.first();
  EXPECT_EQ(seen.tail.index, 3);
  EXPECT_EQ(seen.failure.syndrome, static_cast<std::uint8_t>(Syndrome::flushed));
  EXPECT_EQ(world.queue->detail(1), text_of(EmulatedFault::injected));
}

TEST(Mlx5EmulatedErrors, AFullCompletionQueueEndsTheQueue) {
  EmulatedWorld world;
  for (int lap = 0; lap < 2; ++lap) {
    for (int i = 0; i < 16; ++i)
      add_nop(world);
    world.raw.ring();
    if (lap == 0) {
      EXPECT_EQ(world.hca.poll(), 16u);
      EXPECT_FALSE(world.queue->fatal_event());
      continue;
    }
    EXPECT_GT(world.hca.poll(), 0u);
  }
  const std::optional<std::string> event = world.queue->fatal_event();
  ASSERT_TRUE(event);
  EXPECT_NE(event->find("completion queue is full"), std::string::npos);
  // The sixteen are there, undamaged; nothing more arrives, whatever is posted.
  for (std::uint64_t i = 0; i < 16; ++i)
    EXPECT_EQ(world.raw.next()->tail.index, i);
  EXPECT_FALSE(world.raw.next());
  world.raw.release();
  add_nop(world);
  world.raw.ring();
  EXPECT_EQ(world.hca.poll(), 0u);
}

TEST(Mlx5EmulatedErrors, AConsumedCqeMakesRoomForOne) {
  EmulatedWorld world;
  for (int i = 0; i < 16; ++i)
    add_nop(world);
  world.raw.ring();
  EXPECT_EQ(world.hca.poll(), 16u);
  EXPECT_TRUE(world.raw.next());
  world.raw.release();
  add_nop(world);
  world.raw.ring();
  EXPECT_EQ(world.hca.poll(), 1u);
  EXPECT_FALSE(world.queue->fatal_event());
}

TEST(Mlx5EmulatedErrors, ARecordThatIsTooFarAhead) {
  EmulatedWorld world;
  add_nop(world);
  world.raw.ring(17);
  EXPECT_EQ(world.hca.poll(), 0u);
  ASSERT_TRUE(world.queue->fatal_event());
  expect_failure(world, 0, Syndrome::local_operation, EmulatedFault::queue_overrun);
  world.raw.ring(1);
  EXPECT_EQ(world.hca.poll(), 0u);
}

TEST(Mlx5EmulatedErrors, ADoorbellRecordThatDecreases) {
  EmulatedWorld world;
  add_nop(world);
  add_nop(world);
  world.raw.ring();
  EXPECT_EQ(world.hca.poll(), 2u);
  world.raw.ring(1);
  EXPECT_EQ(world.hca.poll(), 0u);
  EXPECT_TRUE(world.queue->fatal_event());
}

/// A lap too many: what the device reads is not what is there by its index.
TEST(Mlx5EmulatedErrors, AnOverwrittenWqe) {
  EmulatedWorld world;
  for (int i = 0; i < 17; ++i)
    add_nop(world);
  world.raw.ring(16);
  EXPECT_GT(world.hca.poll(), 0u);
  expect_failure(world, 0, Syndrome::local_operation, EmulatedFault::wrong_index);
}

/// Only the peer's side fails.
class FailingExecutor final : public Executor {
public:
  int writes_left = 2;
  bool fails_at_finish = false;
  Outcome check(const RaddrSegment&, std::uint64_t, unsigned) const override { return {}; }
  Outcome write(const RaddrSegment&, std::span<const BytePiece>, std::uint64_t) override {
    if (writes_left-- == 0 && !fails_at_finish)
      throw Error(ExitCode::unavailable, "below", "put", "PE 3 is gone", "look at PE 3");
    return {};
  }
  Outcome read(const RaddrSegment&, std::span<const BytePiece>, std::uint64_t) override {
    return {Syndrome::remote_operation, EmulatedFault::transport};
  }
  Outcome atomic(const RaddrSegment&, const AtomicFields&, std::uint64_t&) override { return {}; }
  Outcome finish() override {
    if (fails_at_finish)
      throw Error(ExitCode::unavailable, "below", "quiet", "PE 3 is gone", "look at PE 3");
    return {};
  }
};

TEST(Mlx5EmulatedErrors, ATransportBelowThatThrows) {
  for (const bool at_finish : {false, true}) {
    auto way = std::make_shared<FailingExecutor>();
    way->fails_at_finish = at_finish;
    EmulatedHca hca(EmulatedWorld::emulated_options(way));
    const auto queue = hca.create_queue(EmulatedWorld::small_ring());
    queue->connect(queue->local());
    RawQueue raw(queue->view());
    for (int i = 0; i < 4; ++i)
      raw.build([](auto& out, const WqeHead& head) {
        build_value_write(out, head, {64, 1}, 1, 8);
      });
    raw.ring();
    EXPECT_EQ(hca.poll(), 4u);
    for (std::uint64_t i = 0; i < 4; ++i) {
      const std::optional<SeenCompletion> seen = raw.next();
      ASSERT_TRUE(seen);
      const std::uint64_t failed = at_finish ? 0 : 2;
      EXPECT_EQ(is_error(seen->tail), i >= failed);
      if (i >= failed) {
        EXPECT_EQ(seen->failure.syndrome, i == failed ? 0x15 : 0x05);
      }
      if (i == failed) {
        EXPECT_NE(queue->detail(seen->failure.index).find("PE 3 is gone"), std::string::npos);
      }
    }
    EXPECT_FALSE(raw.next());
  }
}

} // namespace
} // namespace shmemctl::test
