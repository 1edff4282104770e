// The emulated HCA executes its WQEs, and reports completions as a device does.
#include <gtest/gtest.h>
#include <numeric>
#include <random>

#include "tests/unit/transports/mlx5/emulated_hca_world.h"

namespace shmemctl::test {
namespace {

/// Nothing is to come, and there is no completion left.
void expect_idle(EmulatedWorld& world) {
  EXPECT_EQ(world.hca.poll(), 0u);
  EXPECT_FALSE(world.raw.next());
}

void expect_done(EmulatedWorld& world, Opcode opcode, std::uint64_t index) {
  const std::optional<SeenCompletion> seen = world.raw.next();
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->tail.kind, 0);
  EXPECT_EQ(seen->tail.opcode, static_cast<std::uint8_t>(opcode));
  EXPECT_EQ(seen->tail.index, static_cast<std::uint16_t>(index));
  EXPECT_EQ(seen->tail.qpn, world.queue->view().qpn);
}

TEST(Mlx5Emulated, WriteReadAndNop) {
  EmulatedWorld world;
  std::iota(reinterpret_cast<std::uint8_t*>(world.here.data()),
            reinterpret_cast<std::uint8_t*>(world.here.data()) + 256, std::uint8_t{0});
  world.raw.build([&](auto& out, const WqeHead& head) {
    build_write(out, head, world.remote(512), world.local(16, 100));
  });
  world.raw.build([&](auto& out, const WqeHead& head) {
    build_read(out, head, world.remote(512), world.local(1024, 100));
  });
  world.raw.build([](auto& out, const WqeHead& head) { build_nop(out, head); });
  EXPECT_EQ(world.hca.poll(), 0u) << "nobody has rung";
  world.raw.ring();
  EXPECT_EQ(world.hca.poll(), 3u);
  EXPECT_EQ(std::memcmp(world.there.data() + 512, world.here.data() + 16, 100), 0);
  EXPECT_EQ(std::memcmp(world.here.data() + 1024, world.here.data() + 16, 100), 0);
  EXPECT_EQ(world.there[511], std::byte{0});
  EXPECT_EQ(world.there[612], std::byte{0});
  expect_done(world, Opcode::rdma_write, 0);
  expect_done(world, Opcode::rdma_read, 1);
  expect_done(world, Opcode::nop, 2);
  expect_idle(world);
}

TEST(Mlx5Emulated, OnlyWhatTheRecordSays) {
  EmulatedWorld world;
  for (int i = 0; i < 3; ++i)
    world.raw.build([&](auto& out, const WqeHead& head) {
      build_value_write(out, head, world.remote(0), head.index + 1, 8);
    });
  world.raw.ring(2);
  EXPECT_EQ(world.hca.poll(), 2u);
  EXPECT_EQ(world.at<std::uint64_t>(0), 2u);
  // The doorbell record alone has no effect; the register is polled.
  HostMemory::store_record(world.queue->view().send_record, send_dbrec_value(3));
  EXPECT_EQ(world.hca.poll(), 0u);
  world.raw.ring(3);
  EXPECT_EQ(world.hca.poll(), 1u);
}

TEST(Mlx5Emulated, ADoorbellOfAnotherQueueIsIgnored) {
  EmulatedWorld world;
  world.raw.build([](auto& out, const WqeHead& head) { build_nop(out, head); });
  const QpView& view = world.queue->view();
  HostMemory::store_record(view.send_record, send_dbrec_value(1));
  HostMemory::store_doorbell(view.doorbell, doorbell_value(1, view.qpn + 1), 0);
  EXPECT_EQ(world.hca.poll(), 0u);
}

TEST(Mlx5Emulated, WqesWithoutACqe) {
  EmulatedWorld world;
  for (int i = 0; i < 4; ++i)
    world.raw.build(
        [&](auto& out, const WqeHead& head) {
          build_value_write(out, head, world.remote(8 * head.index), 7, 8);
        },
        i == 2 ? flag_completion : 0);
  world.raw.ring();
  EXPECT_EQ(world.hca.poll(), 4u);
  EXPECT_EQ(world.at<std::uint64_t>(24), 7u);
  expect_done(world, Opcode::rdma_write, 2);
  expect_idle(world);
}

TEST(Mlx5Emulated, InlineDataOfEverySizeOverTheEndOfTheQueue) {
  EmulatedWorld world;
  std::array<unsigned char, 220> data;
  std::iota(data.begin(), data.end(), static_cast<unsigned char>(1));
  for (std::uint32_t size = 1; size <= data.size(); ++size) {
    const std::uint64_t before = world.raw.position();
    world.there.fill(std::byte{0});
    world.raw.build([&](auto& out, const WqeHead& head) {
      build_inline_write(out, head, world.remote(64), data.data(), size);
    });
    world.raw.ring();
    ASSERT_EQ(world.hca.poll(), 1u);
    expect_done(world, Opcode::rdma_write, before);
    world.raw.release();
    EXPECT_EQ(std::memcmp(world.there.data() + 64, data.data(), size), 0) << size;
    EXPECT_EQ(world.there[64 + size], std::byte{0}) << size;
  }
}

TEST(Mlx5Emulated, SeveralPieces) {
  EmulatedWorld world;
  for (std::size_t i = 0; i < 64; ++i)
    world.here[i] = std::byte(i + 1);
  EntryWords entry;
  build_write(entry, world.raw.head(), world.remote(100), world.local(0, 3));
  const auto add = [&](const DataSegment& piece) {
    const unsigned at = entry.count;
    entry.set(at, data_word(piece.size_bytes, piece.lkey));
    entry.set(at + 1, to_wire(piece.address));
  };
  add(world.local(10, 4));
  entry.set(entry.count, to_wire(std::uint64_t{inline_bit | 2} << 32 | 0xaabb0000));
  entry.set(entry.count, 0);
  add(world.local(20, 1));
  entry.set(0, control_word(Opcode::rdma_write, 0, 0, world.queue->view().qpn, entry.count / 2));
  world.raw.put(entry);
  world.raw.ring();
  EXPECT_EQ(world.hca.poll(), 1u);
  const std::uint8_t expected[] = {1, 2, 3, 11, 12, 13, 14, 0xaa, 0xbb, 21, 0};
  EXPECT_EQ(std::memcmp(world.there.data() + 100, expected, sizeof expected), 0);
  const std::optional<SeenCompletion> seen = world.raw.next();
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->size_bytes, 10u);
}

TEST(Mlx5Emulated, TheLargestWqe) {
  EmulatedWorld world;
  world.here.fill(std::byte{9});
  EntryWords entry;
  build_write(entry, world.raw.head(), world.remote(0), world.local(0, 1));
  while (entry.count < 2 * max_ds_count) {
    const unsigned at = entry.count;
    entry.set(at, data_word(1, world.memory->lkey()));
    entry.set(at + 1, to_wire(address_of(world.here.data())));
  }
  entry.set(0, control_word(Opcode::rdma_write, 0, 0, world.queue->view().qpn, max_ds_count));
  world.raw.put(entry);
  world.raw.ring();
  EXPECT_EQ(world.hca.poll(), 1u);
  expect_done(world, Opcode::rdma_write, 0);
  EXPECT_EQ(world.there[60], std::byte{9});
  EXPECT_EQ(world.there[61], std::byte{0});
  EXPECT_EQ(world.raw.position(), 16u);
}

TEST(Mlx5Emulated, AnEmptyTransferChecksNoKey) {
  EmulatedWorld world;
  EntryWords entry;
  build_write(entry, world.raw.head(), {1, 2}, {});
  entry.count = 4;
  entry.set(0, control_word(Opcode::rdma_write, 0, 0, world.queue->view().qpn, 2));
  world.raw.put(entry);
  world.raw.ring();
  EXPECT_EQ(world.hca.poll(), 1u);
  expect_done(world, Opcode::rdma_write, 0);
}

TEST(Mlx5Emulated, OldValuesArriveAsFromADevice) {
  EmulatedWorld world;
  world.set_there(64, std::uint64_t{0x1122334455667788});
  world.raw.build([&](auto& out, const WqeHead& head) {
    build_atomic(out, head, world.remote(64), atomic_add(8, 1), world.local(0, 8));
  });
  world.raw.build([&](auto& out, const WqeHead& head) {
    build_atomic(out, head, world.remote(64), atomic_add(4, 1), world.local(8, 4));
  });
  world.raw.ring();
  EXPECT_EQ(world.hca.poll(), 2u);
  EXPECT_EQ(world.at<std::uint64_t>(64), 0x112233445566778au);
  EXPECT_EQ(world.at_here<std::uint64_t>(0), 0x1122334455667788u);
  EXPECT_EQ(std::memcmp(world.here.data() + 8, "\x55\x66\x77\x89\0\0\0\0", 8), 0) << "big-endian";
  EXPECT_EQ(old_value_4(world.at_here<std::uint32_t>(8)), 0x55667789u);
}

/// Bit by bit, as the masks are defined.
std::uint64_t reference(const AtomicFields& fields, std::uint64_t old) {
  const unsigned bits = fields.size_bytes * 8u;
  const auto bit = [](std::uint64_t word, unsigned i) { return word >> i & 1; };
  std::uint64_t result = 0;
  if (fields.opcode == Opcode::atomic_fa || fields.opcode == Opcode::atomic_masked_fa) {
    std::uint64_t carry = 0;
    for (unsigned i = 0; i < bits; ++i) {
      const std::uint64_t sum = bit(old, i) + bit(fields.operand, i) + carry;
      result |= (sum & 1) << i;
      carry =
          fields.opcode == Opcode::atomic_masked_fa && bit(fields.operand_mask, i) ? 0 : sum >> 1;
    }
    return result;
  }
  bool equal = true;
  for (unsigned i = 0; i < bits; ++i)
    if (fields.opcode == Opcode::atomic_cs || bit(fields.compare_mask, i))
      equal = equal && bit(old, i) == bit(fields.compare, i);
  for (unsigned i = 0; i < bits; ++i) {
    const bool swapped =
        equal && (fields.opcode == Opcode::atomic_cs || bit(fields.operand_mask, i));
    result |= bit(swapped ? fields.operand : old, i) << i;
  }
  return result;
}

TEST(Mlx5Emulated, AtomicsBitByBit) {
  EmulatedWorld world;
  std::mt19937_64 random(7);
  const auto word = [&]() -> std::uint64_t {
    switch (random() % 4) {
    case 0:
      return 0;
    case 1:
      return ~0ull;
    case 2:
      return random() & 0xff;
    default:
      return random();
    }
  };
  for (int round = 0; round < 20'000; ++round) {
    const std::uint8_t size = random() % 2 == 0 ? 4 : 8;
    const Opcode opcodes[] = {Opcode::atomic_masked_cs, Opcode::atomic_masked_fa, Opcode::atomic_cs,
                              Opcode::atomic_fa};
    AtomicFields fields{
        opcodes[random() % (size == 4 ? 2 : 4)], size, word(), word(), word(), word()};
    if (size == 4)
      for (std::uint64_t* field :
           {&fields.operand, &fields.compare, &fields.operand_mask, &fields.compare_mask})
        *field &= 0xffffffff;
    std::uint64_t old = random() % 2 == 0 ? fields.compare : word();
    const std::uint64_t beside = random();
    world.set_there(64, beside);
    if (size == 4) {
      old &= 0xffffffff;
      world.set_there(64, static_cast<std::uint32_t>(old));
    } else {
      world.set_there(64, old);
    }
    const std::uint64_t index = world.raw.position();
    world.raw.build([&](auto& out, const WqeHead& head) {
      build_atomic(out, head, world.remote(64), fields, world.local(8, size));
    });
    world.raw.ring();
    ASSERT_EQ(world.hca.poll(), 1u);
    expect_done(world, fields.opcode, index);
    world.raw.release();
    const std::uint64_t is = size == 4 ? world.at<std::uint32_t>(64) : world.at<std::uint64_t>(64);
    ASSERT_EQ(is, reference(fields, old)) << static_cast<int>(fields.opcode) << " of " << int{size};
    if (size == 4) {
      ASSERT_EQ(world.at<std::uint32_t>(68), static_cast<std::uint32_t>(beside >> 32));
    }
    const std::uint64_t brought =
        size == 4 ? old_value_4(world.at_here<std::uint32_t>(8)) : world.at_here<std::uint64_t>(8);
    ASSERT_EQ(brought, old);
  }
}

TEST(Mlx5Emulated, CollapsedCq) {
  QpOptions options = EmulatedWorld::small_ring();
  options.completions = CqMode::collapsed;
  EmulatedWorld world(options);
  EXPECT_TRUE(is_unwritten(world.raw.first().tail));
  for (std::uint64_t i = 0; i < 100; ++i) {
    world.raw.build([](auto& out, const WqeHead& head) { build_nop(out, head); });
    world.raw.ring();
    EXPECT_EQ(world.hca.poll(), 1u);
    EXPECT_EQ(world.raw.first().tail.index, i);
    EXPECT_FALSE(is_error(world.raw.first().tail));
  }
}

TEST(Mlx5Emulated, OwnMemoryForTheQueue) {
  QpOptions options = EmulatedWorld::small_ring();
  const QpLayout layout = qp_layout(options);
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  const std::unique_ptr<void, Free> memory(std::aligned_alloc(4096, layout.size_bytes));
  std::memset(memory.get(), 0, layout.size_bytes);
  std::memset(static_cast<std::byte*>(memory.get()) + layout.completions_offset, 0xff,
              layout.cqe_count * 64);
  options.memory = memory.get();
  options.memory_bytes = layout.size_bytes - 1;
  EXPECT_THROW(EmulatedWorld{options}, Error);
  options.memory_bytes = layout.size_bytes;
  EmulatedWorld world(options);
  for (int i = 0; i < 40; ++i) {
    world.raw.build([](auto& out, const WqeHead& head) { build_nop(out, head); });
    world.raw.ring();
    EXPECT_EQ(world.hca.poll(), 1u);
    EXPECT_TRUE(world.raw.next());
    world.raw.release();
  }
}

TEST(Mlx5Emulated, KeysEndWithTheirMemory) {
  EmulatedWorld world;
  world.raw.build([&](auto& out, const WqeHead& head) {
    build_write(out, head, world.remote(0), world.local(0, 8));
  });
  world.memory.reset();
  world.raw.ring();
  EXPECT_EQ(world.hca.poll(), 1u);
  const std::optional<SeenCompletion> seen = world.raw.next();
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->failure.syndrome, static_cast<std::uint8_t>(Syndrome::local_protection));
}

TEST(Mlx5Emulated, QueuesThatCannotBe) {
  EmulatedWorld world;
  const auto refused = [&](std::uint32_t wqebbs, std::uint32_t signal_every) {
    QpOptions options;
    options.wqebbs = wqebbs;
    options.signal_every = signal_every;
    EXPECT_THROW(world.hca.create_queue(options), Error) << wqebbs << " " << signal_every;
  };
  refused(0, 1);
  refused(8, 1);
  refused(100, 1);
  refused(32768, 64);
  refused(65536, 1);
  refused(64, 0);
  refused(64, 3);
  refused(64, 32);
}

} // namespace
} // namespace shmemctl::test
