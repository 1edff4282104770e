// What the software HCA refuses, with which syndrome, and what becomes of the queue.
#include <functional>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "tests/unit/mlx5/soft_world.h"

namespace shmemctl::test {
namespace {

/// The entry at the front of the queue fails so.
void expect_failure(SoftWorld& world, std::uint64_t index, Syndrome syndrome, SoftCause cause) {
  const std::optional<SeenCompletion> seen = world.raw.next();
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->tail.kind, static_cast<std::uint8_t>(CompletionKind::requester_error));
  EXPECT_EQ(seen->failure.syndrome, static_cast<std::uint8_t>(syndrome));
  EXPECT_EQ(seen->failure.vendor_syndrome, static_cast<std::uint8_t>(cause))
      << text_of(static_cast<SoftCause>(seen->failure.vendor_syndrome));
  EXPECT_EQ(seen->failure.index, static_cast<std::uint16_t>(index));
}

void add_nop(SoftWorld& world, std::uint8_t flags = flag_completion) {
  world.raw.build([](auto& out, const EntryHead& head) { build_nop(out, head); }, flags);
}

struct Malformed {
  const char* name;
  std::function<void(SoftWorld&, EntryWords&)> make;
  Syndrome syndrome;
  SoftCause cause;
};

EntryWords good_write(SoftWorld& world) {
  EntryWords entry;
  build_write(entry, world.raw.head(0), world.remote(0), world.local(0, 8));
  return entry;
}
void set_control(SoftWorld& world, EntryWords& entry, Opcode opcode, std::uint8_t modifier,
                 std::uint32_t octowords) {
  entry.set(
      0, control_word(opcode, modifier, world.raw.position(), world.queue->view().qpn, octowords));
}

std::vector<Malformed> malformed_entries() {
  using Entry = EntryWords;
  using World = SoftWorld;
  const auto write_of = [](std::function<LocalPiece(World&)> local,
                           std::function<RemotePiece(World&)> remote) {
    return [=](World& world, Entry& entry) {
      build_write(entry, world.raw.head(0), remote(world), local(world));
    };
  };
  const auto read_of = [](std::function<LocalPiece(World&)> local,
                          std::function<RemotePiece(World&)> remote) {
    return [=](World& world, Entry& entry) {
      build_read(entry, world.raw.head(0), remote(world), local(world));
    };
  };
  const auto atomic_of = [](AtomicFields fields, std::uint32_t local_bytes,
                            std::function<RemotePiece(World&)> remote) {
    return [=](World& world, Entry& entry) {
      build_atomic(entry, world.raw.head(0), remote(world), fields, world.local(0, local_bytes));
    };
  };
  const auto here = [](World& world) { return world.local(0, 8); };
  const auto there = [](World& world) { return world.remote(0); };
  const auto with_key = [](std::uint32_t key) {
    return [key](World& world) { return RemotePiece{world.remote(0).address, key}; };
  };
  return {
      {"an index of another place",
       [](World& world, Entry& entry) {
         entry = good_write(world);
         entry.set(0, control_word(Opcode::rdma_write, 0, world.raw.position() + 16,
                                   world.queue->view().qpn, 3));
       },
       Syndrome::local_operation, SoftCause::wrong_index},
      {"another queue's number",
       [](World& world, Entry& entry) {
         entry = good_write(world);
         entry.set(0, control_word(Opcode::rdma_write, 0, world.raw.position(),
                                   world.queue->view().qpn ^ 1, 3));
       },
       Syndrome::local_operation, SoftCause::wrong_queue},
      {"zeros",
       [](World&, Entry& entry) {
         for (unsigned i = 0; i < 8; ++i)
           entry.set(i, 0);
       },
       Syndrome::local_operation, SoftCause::wrong_queue},
      {"a size of 0",
       [](World& world, Entry& entry) {
         entry = good_write(world);
         set_control(world, entry, Opcode::rdma_write, 0, 0);
       },
       Syndrome::local_operation, SoftCause::bad_size},
      {"an unknown operation",
       [](World& world, Entry& entry) {
         entry = good_write(world);
         set_control(world, entry, static_cast<Opcode>(0x0a), 0, 3);
       },
       Syndrome::local_operation, SoftCause::unknown_opcode},
      {"a WRITE without an address",
       [](World& world, Entry& entry) {
         entry = good_write(world);
         set_control(world, entry, Opcode::rdma_write, 0, 1);
       },
       Syndrome::local_operation, SoftCause::bad_size},
      {"more blocks than the record tells of",
       [](World& world, Entry& entry) {
         entry = good_write(world);
         set_control(world, entry, Opcode::rdma_write, 0, 63);
       },
       Syndrome::local_operation, SoftCause::behind_producer},
      {"an atomic without a result",
       [](World& world, Entry& entry) {
         build_atomic(entry, world.raw.head(0), world.remote(0), atomic_add(8, 1),
                      world.local(0, 8));
         set_control(world, entry, Opcode::atomic_fa, 0, 3);
       },
       Syndrome::local_operation, SoftCause::bad_size},
      {"an atomic with a modifier that it must not have",
       [](World& world, Entry& entry) {
         build_atomic(entry, world.raw.head(0), world.remote(0), atomic_add(8, 1),
                      world.local(0, 8));
         set_control(world, entry, Opcode::atomic_fa, 9, 4);
       },
       Syndrome::local_operation, SoftCause::bad_modifier},
      {"a masked atomic of 16 bytes",
       [](World& world, Entry& entry) {
         build_atomic(entry, world.raw.head(0), world.remote(0), atomic_xor(8, 1),
                      world.local(0, 8));
         set_control(world, entry, Opcode::atomic_masked_fa, 10, 4);
       },
       Syndrome::local_operation, SoftCause::bad_modifier},
      {"inline data that is longer than its entry",
       [](World& world, Entry& entry) {
         build_value_write(entry, world.raw.head(0), world.remote(0), 1, 8);
         entry.set(4, to_wire(std::uint64_t{inline_bit | 13} << 32));
       },
       Syndrome::local_operation, SoftCause::bad_inline},
      {"inline data of 2 GiB",
       [](World& world, Entry& entry) {
         build_value_write(entry, world.raw.head(0), world.remote(0), 1, 8);
         entry.set(4, ~0ull);
       },
       Syndrome::local_operation, SoftCause::bad_inline},
      {"a READ into the entry",
       [](World& world, Entry& entry) {
         build_value_write(entry, world.raw.head(0), world.remote(0), 1, 8);
         set_control(world, entry, Opcode::rdma_read, 0, 3);
       },
       Syndrome::local_operation, SoftCause::bad_inline},
      {"a piece of 0 bytes, which is 2 GiB",
       write_of([](World& world) { return world.local(0, 0); }, there), Syndrome::local_length,
       SoftCause::message_too_long},
      {"one byte over 1 GiB",
       write_of([](World& world) { return world.local(0, (1u << 30) + 1); }, there),
       Syndrome::local_length, SoftCause::message_too_long},
      {"an atomic with a result of another size", atomic_of(atomic_add(8, 1), 4, there),
       Syndrome::local_length, SoftCause::bad_result_piece},
      {"a local key of nobody",
       write_of(
           [](World& world) {
             return LocalPiece{world.local(0, 8).address, 0x99900, 8};
           },
           there),
       Syndrome::local_protection, SoftCause::unknown_lkey},
      {"the device's invalid key",
       write_of(
           [](World& world) {
             return LocalPiece{world.local(0, 8).address, 0x100, 8};
           },
           there),
       Syndrome::local_protection, SoftCause::unknown_lkey},
      {"before the local memory",
       write_of(
           [](World& world) {
             return LocalPiece{world.local(0, 8).address - 1, world.memory->lkey(), 8};
           },
           there),
       Syndrome::local_protection, SoftCause::lkey_bounds},
      {"over the end of the local memory",
       read_of([](World& world) { return world.local(SoftWorld::size_bytes - 7, 8); }, there),
       Syndrome::local_protection, SoftCause::lkey_bounds},
      {"a local address that wraps around",
       write_of(
           [](World& world) {
             return LocalPiece{~0ull - 3, world.memory->lkey(), 8};
           },
           there),
       Syndrome::local_protection, SoftCause::lkey_bounds},
      {"a remote key of nobody", write_of(here, with_key(0x123456)), Syndrome::remote_access,
       SoftCause::unknown_rkey},
      {"before the remote memory",
       write_of(here,
                [](World& world) {
                  return RemotePiece{world.remote(0).address - 1, SoftWorld::rkey};
                }),
       Syndrome::remote_access, SoftCause::rkey_bounds},
      {"over the end of the remote memory",
       read_of(here, [](World& world) { return world.remote(SoftWorld::size_bytes - 7); }),
       Syndrome::remote_access, SoftCause::rkey_bounds},
      {"a remote address that wraps around",
       write_of(here,
                [](World&) {
                  return RemotePiece{~0ull - 3, SoftWorld::rkey};
                }),
       Syndrome::remote_access, SoftCause::rkey_bounds},
      {"a WRITE where only READs are allowed", write_of(here, with_key(SoftWorld::rkey_read_only)),
       Syndrome::remote_access, SoftCause::rkey_access},
      {"a READ where only WRITEs are allowed", read_of(here, with_key(SoftWorld::rkey_write_only)),
       Syndrome::remote_access, SoftCause::rkey_access},
      {"an atomic where only WRITEs are allowed",
       atomic_of(atomic_add(8, 1), 8, with_key(SoftWorld::rkey_write_only)),
       Syndrome::remote_access, SoftCause::rkey_access},
      {"an atomic over the end",
       atomic_of(atomic_add(8, 1), 8,
                 [](World& world) { return world.remote(SoftWorld::size_bytes); }),
       Syndrome::remote_access, SoftCause::rkey_bounds},
      {"an atomic of 8 bytes at 4",
       atomic_of(atomic_add(8, 1), 8, [](World& world) { return world.remote(4); }),
       Syndrome::remote_invalid_request, SoftCause::misaligned},
      {"an atomic of 4 bytes at 2",
       atomic_of(atomic_swap(4, 1), 4, [](World& world) { return world.remote(2); }),
       Syndrome::remote_invalid_request, SoftCause::misaligned},
  };
}

TEST(Mlx5SoftErrors, EveryMalformedEntry) {
  for (const Malformed& malformed : malformed_entries())
    for (const bool beside : {false, true}) {
      SCOPED_TRACE(malformed.name);
      SoftWorld world;
      world.here.fill(std::byte{0x11});
      world.there.fill(std::byte{0x22});
      if (beside) { // its index is not 0, and what is before it succeeds
        add_nop(world);
        add_nop(world, 0);
      }
      const std::uint64_t index = world.raw.position();
      EntryWords entry;
      malformed.make(world, entry);
      world.raw.put(entry, 1);
      add_nop(world);
      world.raw.build(
          [&](auto& out, const EntryHead& head) {
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
      // What follows is flushed, whether it asked for a completion or not. An entry that says it is
      // longer takes those behind it with it.
      const bool swallows = malformed.cause == SoftCause::behind_producer;
      for (std::uint64_t behind = 1; behind <= 2 && !swallows; ++behind)
        expect_failure(world, index + behind, Syndrome::flushed, SoftCause::flushed);
      EXPECT_FALSE(world.raw.next());
      for (const std::byte byte : world.there)
        ASSERT_EQ(byte, std::byte{0x22});
      for (const std::byte byte : world.here)
        ASSERT_EQ(byte, std::byte{0x11});
      EXPECT_EQ(world.queue->detail(static_cast<std::uint16_t>(index)), text_of(malformed.cause));
      EXPECT_FALSE(world.queue->fatal_event());
    }
}

TEST(Mlx5SoftErrors, AReadNeedsLocalWriteAccess) {
  SoftWorld world;
  const auto read_only = world.hca.register_memory({world.here.data(), 64, 0});
  world.raw.build([&](auto& out, const EntryHead& head) {
    build_write(out, head, world.remote(0), {address_of(world.here.data()), read_only->lkey(), 8});
  });
  world.raw.build([&](auto& out, const EntryHead& head) {
    build_read(out, head, world.remote(0), {address_of(world.here.data()), read_only->lkey(), 8});
  });
  world.raw.ring();
  EXPECT_EQ(world.hca.poll(), 2u);
  EXPECT_FALSE(is_error(world.raw.next()->tail));
  expect_failure(world, 1, Syndrome::local_protection, SoftCause::lkey_access);
}

TEST(Mlx5SoftErrors, AQueueThatIsNotConnected) {
  SoftWorld world(SoftWorld::small_ring(), false);
  add_nop(world);
  world.raw.build([&](auto& out, const EntryHead& head) {
    build_value_write(out, head, world.remote(0), 1, 8);
  });
  world.raw.ring();
  EXPECT_EQ(world.hca.poll(), 2u);
  EXPECT_TRUE(world.raw.next());
  expect_failure(world, 1, Syndrome::local_operation, SoftCause::not_connected);
}

TEST(Mlx5SoftErrors, ConnectedTwice) {
  SoftWorld world;
  EXPECT_THROW(world.queue->connect(world.queue->local()), Error);
}

TEST(Mlx5SoftErrors, InjectedOnes) {
  for (const Syndrome syndrome :
       {Syndrome::local_protection, Syndrome::remote_access, Syndrome::remote_operation,
        Syndrome::retries_exceeded, Syndrome::receiver_not_ready, Syndrome::remote_aborted,
        Syndrome::bad_response})
    for (const std::uint64_t after : {0u, 1u, 5u}) {
      SoftWorld world;
      world.soft_queue().inject({after, syndrome});
      for (int i = 0; i < 8; ++i)
        world.raw.build([&](auto& out, const EntryHead& head) {
          build_value_write(out, head, world.remote(8 * head.index), 1, 8);
        });
      world.raw.ring();
      EXPECT_EQ(world.hca.poll(), 8u);
      for (std::uint64_t i = 0; i < after; ++i)
        EXPECT_FALSE(is_error(world.raw.next()->tail));
      expect_failure(world, after, syndrome, SoftCause::injected);
      for (std::uint64_t i = after + 1; i < 8; ++i)
        expect_failure(world, i, Syndrome::flushed, SoftCause::flushed);
      EXPECT_EQ(world.soft_queue().executed(), after);
      for (std::uint64_t i = 0; i < 8; ++i)
        EXPECT_EQ(world.at<std::uint64_t>(8 * i), i < after ? 1u : 0u);
    }
}

TEST(Mlx5SoftErrors, AfterAnErrorTheOneCompletionEntryHasTheLastFlush) {
  QueueOptions options = SoftWorld::small_ring();
  options.completions = CompletionMode::collapsed;
  SoftWorld world(options);
  world.soft_queue().inject({1, Syndrome::remote_access});
  for (int i = 0; i < 4; ++i)
    add_nop(world);
  world.raw.ring();
  EXPECT_EQ(world.hca.poll(), 4u);
  const SeenCompletion seen = world.raw.first();
  EXPECT_EQ(seen.tail.index, 3);
  EXPECT_EQ(seen.failure.syndrome, static_cast<std::uint8_t>(Syndrome::flushed));
  EXPECT_EQ(world.queue->detail(1), text_of(SoftCause::injected));
}

TEST(Mlx5SoftErrors, AFullCompletionQueueEndsTheQueue) {
  SoftWorld world;
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
  // The sixteen are there, unharmed; nothing more comes, whatever is posted.
  for (std::uint64_t i = 0; i < 16; ++i)
    EXPECT_EQ(world.raw.next()->tail.index, i);
  EXPECT_FALSE(world.raw.next());
  world.raw.give_back();
  add_nop(world);
  world.raw.ring();
  EXPECT_EQ(world.hca.poll(), 0u);
}

TEST(Mlx5SoftErrors, ATakenEntryMakesRoomForOne) {
  SoftWorld world;
  for (int i = 0; i < 16; ++i)
    add_nop(world);
  world.raw.ring();
  EXPECT_EQ(world.hca.poll(), 16u);
  EXPECT_TRUE(world.raw.next());
  world.raw.give_back();
  add_nop(world);
  world.raw.ring();
  EXPECT_EQ(world.hca.poll(), 1u);
  EXPECT_FALSE(world.queue->fatal_event());
}

TEST(Mlx5SoftErrors, ARecordThatIsTooFarAhead) {
  SoftWorld world;
  add_nop(world);
  world.raw.ring(17);
  EXPECT_EQ(world.hca.poll(), 0u);
  ASSERT_TRUE(world.queue->fatal_event());
  expect_failure(world, 0, Syndrome::local_operation, SoftCause::queue_overrun);
  world.raw.ring(1);
  EXPECT_EQ(world.hca.poll(), 0u);
}

TEST(Mlx5SoftErrors, ARecordThatGoesBack) {
  SoftWorld world;
  add_nop(world);
  add_nop(world);
  world.raw.ring();
  EXPECT_EQ(world.hca.poll(), 2u);
  world.raw.ring(1);
  EXPECT_EQ(world.hca.poll(), 0u);
  EXPECT_TRUE(world.queue->fatal_event());
}

/// A lap too many: what the device reads is not what stands there by its index.
TEST(Mlx5SoftErrors, AnOverwrittenEntry) {
  SoftWorld world;
  for (int i = 0; i < 17; ++i)
    add_nop(world);
  world.raw.ring(16);
  EXPECT_GT(world.hca.poll(), 0u);
  expect_failure(world, 0, Syndrome::local_operation, SoftCause::wrong_index);
}

/// The peer's side fails by itself.
class FailingExecutor final : public Executor {
public:
  int writes_left = 2;
  bool fails_at_finish = false;
  Outcome write(const RemotePiece&, std::span<const BytePiece>, std::uint64_t) override {
    if (writes_left-- == 0 && !fails_at_finish)
      throw Error(ExitCode::unavailable, "below", "put", "PE 3 is gone", "look at PE 3");
    return {};
  }
  Outcome read(const RemotePiece&, std::span<const BytePiece>, std::uint64_t) override {
    return {Syndrome::remote_operation, SoftCause::transport};
  }
  Outcome atomic(const RemotePiece&, const AtomicFields&, std::uint64_t&) override { return {}; }
  Outcome finish() override {
    if (fails_at_finish)
      throw Error(ExitCode::unavailable, "below", "quiet", "PE 3 is gone", "look at PE 3");
    return {};
  }
};

TEST(Mlx5SoftErrors, ATransportBelowThatThrows) {
  for (const bool at_finish : {false, true}) {
    auto way = std::make_shared<FailingExecutor>();
    way->fails_at_finish = at_finish;
    SoftHca hca(SoftWorld::soft_options(way));
    const auto queue = hca.create_queue(SoftWorld::small_ring());
    queue->connect(queue->local());
    RawQueue raw(queue->view());
    for (int i = 0; i < 4; ++i)
      raw.build([](auto& out, const EntryHead& head) {
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
