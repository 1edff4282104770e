// Deferred doorbells, staged transfers, and traffic counters of ports.
#include <atomic>

#include "tests/unit/transports/mlx5/transports/mlx5_world.h"

namespace shmemctl::test {
namespace {

std::uint64_t acquire_word(const std::byte* place) {
  return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(const_cast<std::byte*>(place)))
      .load(std::memory_order_acquire);
}

void await_word(const TransportPe& me, std::size_t offset_bytes, std::uint64_t value) {
  const Deadline deadline = me.deadline();
  while (acquire_word(me.heap + offset_bytes) != value) {
    me.transport->progress();
    me.health->check();
    if (deadline.passed())
      throw std::runtime_error("PE " + std::to_string(me.pe) + " waits in vain");
    std::this_thread::yield();
  }
}

/// Nothing but progress() follows them.
TEST(Mlx5Posting, NonblockingPutsArrive) {
  for (const Variant variant : {Variant::ibdevx, Variant::ibgda})
    run_mlx5(variant, [](TransportPe& me) {
      for (std::uint64_t round = 1; round <= 200; ++round) {
        const std::uint64_t first = round * 1000;
        if (me.pe == 0) {
          // Each to its own word: puts are not ordered.
          for (std::uint64_t i = 0; i < round % 40 + 1; ++i) {
            const std::uint64_t value = first + i;
            me.transport->put(0, heap_at(1, 4096 + i * 8), &value, sizeof value, false);
          }
          await_word(me, 128, round);
        } else {
          for (std::uint64_t i = 0; i < round % 40 + 1; ++i)
            await_word(me, 4096 + i * 8, first + i);
          me.transport->put(0, heap_at(0, 128), &round, sizeof round, false);
        }
      }
      me.transport->quiet(0);
      me.barrier();
    });
}

/// More than the pool has, in both directions, without a wait between them.
TEST(Mlx5Posting, StagedTransfersShareThePool) {
  run_mlx5(Variant::ibdevx, [](TransportPe& me) {
    constexpr std::size_t size_bytes = 900000;
    std::vector<std::byte> source(size_bytes), back(size_bytes);
    for (std::size_t i = 0; i < size_bytes; ++i)
      source[i] = static_cast<std::byte>(i * 13 + static_cast<unsigned>(me.pe));
    for (const int to : {0, 1})
      me.transport->put(0, heap_at(to, static_cast<std::size_t>(me.pe) * (1 << 20)), source.data(),
                        size_bytes, false);
    me.transport->quiet(0);
    for (const int from : {0, 1}) {
      std::fill(back.begin(), back.end(), std::byte{0});
      me.transport->get(0, back.data(), heap_at(from, static_cast<std::size_t>(me.pe) * (1 << 20)),
                        size_bytes, false);
      me.transport->quiet(0);
      EXPECT_EQ(back, source);
    }
    me.barrier();
  });
}

TEST(Mlx5Posting, TrafficIsThatOfThePort) {
  run_mlx5(Variant::ibgda, [](TransportPe& me) {
    std::vector<std::byte> data(5000);
    for (const int context : {0, 1}) {
      me.transport->put(context, heap_at(1 - me.pe, 64), data.data(), data.size(), true);
      me.transport->get(context, data.data(), heap_at(1 - me.pe, 64), 100, true);
      me.transport->atomic(context, heap_at(1 - me.pe, 0), {AtomicOp::add, 8, 1});
    }
    const std::vector<NicTraffic> traffic = me.transport->traffic();
    ASSERT_EQ(traffic.size(), 1u);
    EXPECT_EQ(traffic[0].nic, (HcaPort{"emulated-mlx5", 1}));
    EXPECT_EQ(traffic[0].put_bytes, 10000u);
    EXPECT_EQ(traffic[0].get_bytes, 200u);
    EXPECT_EQ(traffic[0].operations, 6u);
    me.barrier();
  });
}

} // namespace
} // namespace shmemctl::test
