// How work requests are posted: how many doorbells, completions and NICs it takes.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <thread>

#include "tests/unit/transports/ibrc/fake_world.h"

namespace shmemctl::test {
namespace {

/// What `body`, on PE 0, used.
struct Cost {
  std::uint64_t doorbells = 0, requests = 0, completions = 0;
};
Cost cost_of(FakeVerbs& fake, const TransportWorldOptions& wanted,
             const std::function<void(TransportPe&)>& body) {
  Cost cost;
  run_over(
      fake,
      [&](TransportPe& me) {
        if (me.pe == 0) {
          cost = {fake.doorbells, fake.requests, fake.completions};
          body(me);
          me.transport->quiet(0);
          cost = {fake.doorbells - cost.doorbells, fake.requests - cost.requests,
                  fake.completions - cost.completions};
        }
        me.barrier();
      },
      wanted);
  return cost;
}

TEST(Posting, OneSmallPutTakesOneRequest) {
  FakeVerbs fake({roce_device("fake0")});
  const Cost cost = cost_of(
      fake, {}, [](TransportPe& me) { me.transport->put(0, heap_at(1, 0), "12345678", 8, false); });
  EXPECT_EQ(cost.doorbells, 1u);
  EXPECT_EQ(cost.requests, 1u);
  EXPECT_EQ(cost.completions, 1u);
}

TEST(Posting, APutAndItsSignalShareADoorbell) {
  FakeVerbs fake({roce_device("fake0")});
  for (const SignalOp op : {SignalOp::set, SignalOp::add})
    for (const std::size_t size_bytes : {std::size_t{0}, std::size_t{64}, std::size_t{100000}}) {
      const Cost cost = cost_of(fake, {}, [&](TransportPe& me) {
        me.transport->put_signal(0, heap_at(1, 4096), me.heap + 200000, size_bytes, heap_at(1, 0),
                                 7, op, false);
      });
      EXPECT_EQ(cost.doorbells, 1u) << size_bytes;
      EXPECT_EQ(cost.requests, size_bytes == 0 ? 1u : 2u) << size_bytes;
      EXPECT_EQ(cost.completions, 1u) << size_bytes;
    }
}

TEST(Posting, PartsOfALargePutShareADoorbell) {
  FakeDevice device = roce_device("fake0");
  device.ports[0].max_message_bytes = 10000;
  FakeVerbs fake({device});
  const Cost cost = cost_of(fake, {}, [](TransportPe& me) {
    me.transport->put(0, heap_at(1, 0), me.heap + (1 << 20), 160000, false);
  });
  EXPECT_EQ(cost.requests, 16u);
  EXPECT_EQ(cost.doorbells, 2u);
  EXPECT_LE(cost.completions, 2u);
}

TEST(Posting, FewOfManySmallPutsAskForACompletion) {
  FakeVerbs fake({roce_device("fake0")});
  constexpr std::uint64_t times = 4000;
  const Cost cost = cost_of(fake, {}, [](TransportPe& me) {
    for (std::uint64_t i = 0; i < times; ++i)
      me.transport->put(0, heap_at(1, i * 8), &i, 8, false);
  });
  EXPECT_LE(cost.requests, times + 1); // one flush at most
  EXPECT_LT(cost.completions, times / 2);
}

TEST(Posting, SmallBlockingPutsReturnBeforeTheirCompletion) {
  FakeVerbs fake({roce_device("fake0")});
  run_over(fake, [&](TransportPe& me) {
    if (me.pe == 0) {
      fake.silent = true;
      std::vector<std::byte> data(8192, std::byte{5});
      for (const std::size_t size_bytes : {1, 256, 257, 8192}) {
        me.transport->put(0, heap_at(1, 16384), data.data(), size_bytes, true);
        std::memset(data.data(), 5, data.size());
      }
      std::memset(data.data(), 6, data.size()); // the source may be reused
      fake.silent = false;
      me.transport->quiet(0);
    }
    me.barrier();
    for (std::size_t at = 0; me.pe == 1 && at < 8192; ++at)
      ASSERT_EQ(me.heap[16384 + at], std::byte{5});
    me.barrier();
  });
}

/// What was sent through the other NIC has arrived before what follows a fence.
TEST(Posting, LargePutsUseAllNics) {
  FakeVerbs fake({roce_device("fake0", 1), roce_device("fake1", 2)});
  TransportWorldOptions two;
  two.nics = {{"fake0", 1}, {"fake1", 1}};
  run_over(
      fake,
      [&](TransportPe& me) {
        constexpr std::size_t size_bytes = 1 << 20;
        if (me.pe == 0) {
          me.transport->put(0, heap_at(1, 0), me.heap + size_bytes, size_bytes, false);
          me.transport->get(0, me.heap, heap_at(1, size_bytes), size_bytes, true);
          me.transport->put(0, heap_at(1, 0), "12345678", 8, false);
          me.transport->quiet(0);
          const std::vector<NicTraffic> traffic = me.transport->traffic();
          ASSERT_EQ(traffic.size(), 2u);
          EXPECT_EQ(traffic[0].nic, (HcaPort{"fake0", 1}));
          EXPECT_EQ(traffic[1].nic, (HcaPort{"fake1", 1}));
          EXPECT_EQ(traffic[0].put_bytes, size_bytes / 2 + 8);
          EXPECT_EQ(traffic[1].put_bytes, size_bytes / 2);
          EXPECT_EQ(traffic[0].get_bytes, size_bytes / 2);
          EXPECT_EQ(traffic[1].get_bytes, size_bytes / 2);
          EXPECT_NE(me.transport->connection(1).find("fake0:1 -> fake0:1, 2 QPs"),
                    std::string::npos);
          EXPECT_NE(me.transport->connection(1).find("fake1:1 -> fake1:1, 2 QPs"),
                    std::string::npos);
          EXPECT_EQ(me.transport->nics_to(1), (std::vector<NicPair>{{{"fake0", 1}, {"fake0", 1}},
                                                                    {{"fake1", 1}, {"fake1", 1}}}));
          EXPECT_TRUE(me.transport->nics_to(0).empty());
          EXPECT_TRUE(me.transport->nics_to(2).empty());
        }
        me.barrier();
      },
      two);
  EXPECT_GT(fake.requests_on("fake0"), 0u);
  EXPECT_GT(fake.requests_on("fake1"), 0u);
}

/// Only long transfers, and only while they were in flight.
TEST(Posting, ThePaceOfEachNicIsReported) {
  FakeVerbs fake({roce_device("fake0", 1), roce_device("fake1", 2)});
  TransportWorldOptions two;
  two.nics = {{"fake0", 1}, {"fake1", 1}};
  run_over(
      fake,
      [&](TransportPe& me) {
        constexpr std::size_t size_bytes = 1 << 20;
        if (me.pe == 0) {
          me.transport->put(0, heap_at(1, 0), me.heap + size_bytes, 8192, true);
          me.transport->quiet(0);
          EXPECT_EQ(me.transport->traffic()[0].long_bytes, 0u);
          const auto start = std::chrono::steady_clock::now();
          fake.silent = true;
          me.transport->put(0, heap_at(1, 0), me.heap + size_bytes, size_bytes, false);
          me.transport->put(1, heap_at(1, 0), me.heap + size_bytes, size_bytes, false);
          const std::chrono::nanoseconds silent_for(20'000'000);
          while (std::chrono::steady_clock::now() < start + silent_for)
            std::this_thread::yield();
          fake.silent = false;
          me.transport->quiet(0);
          me.transport->quiet(1);
          const std::chrono::nanoseconds passed = std::chrono::steady_clock::now() - start;
          for (const NicTraffic& traffic : me.transport->traffic()) {
            EXPECT_EQ(traffic.long_bytes, size_bytes) << traffic.nic.device;
            // Two QP sets, each of which had transfers in flight all the time.
            EXPECT_GE(traffic.long_ns, static_cast<std::uint64_t>(silent_for.count()));
            EXPECT_LE(traffic.long_ns, static_cast<std::uint64_t>(2 * passed.count()));
          }
        }
        me.barrier();
      },
      two);
}

/// Two HCAs are not atomic with respect to each other, so all of a PE's atomics go to one.
TEST(Posting, AtomicsUseOneNicWhateverTheContext) {
  FakeVerbs fake({roce_device("fake0", 1), roce_device("fake1", 2)});
  TransportWorldOptions two;
  two.nics = {{"fake1", 1}, {"fake0", 1}};
  two.options = {{"IB_NUM_RC_PER_DEVICE", "4"}};
  run_over(
      fake,
      [&](TransportPe& me) {
        for (int context = 0; context < 8; ++context) {
          me.transport->atomic(context, heap_at(1, 0), {AtomicOp::add, 8, 1});
          me.transport->post_atomic(context, heap_at(1, 0), {AtomicOp::add, 8, 1});
          me.transport->atomic(context, heap_at(1, 8), {AtomicOp::swap, 4, 1});
          me.transport->put_signal(context, heap_at(1, 0), nullptr, 0, heap_at(1, 16), 1,
                                   SignalOp::add, false);
          me.transport->quiet(context);
        }
        me.barrier();
      },
      two);
  EXPECT_EQ(fake.requests_on("fake0"), 0u);
}

/// A completion queue shorter than the send queues on it, and a device without inline data.
TEST(Posting, SmallLimitsAreKept) {
  FakeDevice device = roce_device("fake0");
  device.max_cqe = 24;
  device.max_inline_bytes = 0;
  device.max_reads = 1;
  FakeVerbs fake({device});
  TransportWorldOptions wanted;
  wanted.n_pes = 3;
  run_over(
      fake,
      [](TransportPe& me) {
        std::vector<std::uint64_t> values(3000);
        for (std::size_t i = 0; i < values.size(); ++i) {
          values[i] = i + 1;
          for (int to = 0; to < 3; ++to)
            me.transport->put(0, heap_at(to, (static_cast<std::size_t>(me.pe) * 3000 + i) * 8),
                              &values[i], 8, i % 2 == 0);
        }
        for (int to = 0; to < 3; ++to)
          me.transport->put_signal(0, heap_at(to, 1 << 20), values.data(), 24000,
                                   heap_at(to, 2 << 20), 1, SignalOp::add, false);
        me.transport->put_signal(0, heap_at(0, 0), nullptr, 0,
                                 heap_at(0, (2 << 20) + 64 + static_cast<std::size_t>(me.pe) * 8),
                                 9, SignalOp::set, false);
        me.transport->quiet(0);
        me.barrier();
        const auto word = [&](std::size_t at) {
          std::uint64_t value = 0;
          std::memcpy(&value, me.heap + at, 8);
          return value;
        };
        for (std::size_t i = 0; i < 9000; ++i)
          ASSERT_EQ(word(i * 8), i % 3000 + 1) << i;
        EXPECT_EQ(word(2 << 20), 3u);
        for (std::size_t pe = 0; me.pe == 0 && pe < 3; ++pe)
          EXPECT_EQ(word((2 << 20) + 64 + pe * 8), 9u);
        me.barrier();
      },
      wanted);
}

} // namespace
} // namespace shmemctl::test
