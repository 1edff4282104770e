// The proxy over real transports: what it executes, in which order, and how it stops.
#include "src/runtime/proxy/proxy.h"

#include <array>
#include <cstring>
#include <gtest/gtest.h>
#include <thread>

#include "tests/support/counting_transport.h"
#include "tests/support/expect_error.h"
#include "tests/support/network_only_transport.h"
#include "tests/unit/runtime/proxy/memory_world.h"

namespace shmemctl::test {
namespace {

TEST(Proxy, CarriesOutEveryOperation) {
  MemoryWorld world(2);
  Proxy proxy(world.ways(), world.health);
  ProxyProducer producer(proxy.channel(), proxy_context);
  std::array<std::uint64_t, 8> source{1, 2, 3, 4, 5, 6, 7, 8}, target{};

  producer.put(world.at(1, 0), source.data(), sizeof source, true);
  EXPECT_EQ(world.word(1, 56), 8u);
  producer.put(world.at(1, 64), source.data(), sizeof source);
  producer.quiet();
  EXPECT_EQ(world.word(1, 64), 1u);

  producer.get(target.data(), world.at(1, 0), sizeof target);
  EXPECT_EQ(target, source);
  target = {};
  producer.get(target.data(), world.at(1, 0), sizeof target, false);
  producer.quiet();
  EXPECT_EQ(target, source);

  for (const unsigned size_bytes : {1u, 2u, 4u, 8u}) {
    world.word(1, 128) = 0;
    producer.put_value(world.at(1, 128), 0x8182838485868788, size_bytes);
    producer.quiet();
    const std::uint64_t expected = 0x8182838485868788 & low_bits(8 * size_bytes);
    EXPECT_EQ(world.word(1, 128), expected);
    EXPECT_EQ(producer.get_value(world.at(1, 128), size_bytes), expected);
  }

  producer.put_signal(world.at(1, 256), source.data(), sizeof source, world.at(1, 512), 41,
                      SignalOp::set, true);
  producer.put_signal(world.at(1, 320), source.data(), 8, world.at(1, 512), 1, SignalOp::add);
  producer.quiet();
  EXPECT_EQ(world.word(1, 512), 42u);
  EXPECT_EQ(world.word(1, 256), 1u);
  EXPECT_EQ(world.word(1, 320), 1u);
  proxy.stop();
  EXPECT_GE(proxy.statistics().requests, 17u);
  EXPECT_GE(proxy.statistics().batches, 1u);
}

TEST(Proxy, Atomics) {
  MemoryWorld world(2);
  Proxy proxy(world.ways(), world.health);
  ProxyProducer producer(proxy.channel(), proxy_context);
  const RemoteAddress word = world.at(1, 0);
  producer.post_atomic(word, {AtomicOp::set, 8, 100, 0});
  EXPECT_EQ(producer.atomic(word, {AtomicOp::add, 8, ~0ull, 0}), 100u);
  EXPECT_EQ(producer.atomic(word, {AtomicOp::fetch, 8, 0, 0}), 99u);
  EXPECT_EQ(producer.atomic(word, {AtomicOp::swap, 8, 0xff00ff00ff00ff00, 0}), 99u);
  EXPECT_EQ(producer.atomic(word, {AtomicOp::compare_swap, 8, 12, 0xff00ff00ff00ff00}),
            0xff00ff00ff00ff00);
  EXPECT_EQ(producer.atomic(word, {AtomicOp::bit_or, 8, 3, 0}), 12u);
  EXPECT_EQ(producer.atomic(word, {AtomicOp::bit_and, 8, 6, 0}), 15u);
  EXPECT_EQ(producer.atomic(word, {AtomicOp::bit_xor, 8, 1, 0}), 6u);
  producer.post_atomic(word, {AtomicOp::add, 4, 5, 0});
  EXPECT_EQ(producer.atomic(word, {AtomicOp::fetch, 4, 0, 0}), 12u);
  proxy.stop();
}

TEST(Proxy, QuietCompletesDelayedOperations) {
  MemoryWorld world(2);
  NetworkOnlyTransport far({world.region()}, 7);
  Proxy proxy({&far, &far}, world.health);
  ProxyProducer producer(proxy.channel(), 3);
  for (std::uint64_t round = 1; round <= 200; ++round) {
    producer.put(world.at(1, 0), &round, sizeof round);
    producer.put_value(world.at(1, 8), round, 8);
    producer.quiet();
    ASSERT_EQ(world.word(1, 0), round);
    ASSERT_EQ(world.word(1, 8), round);
  }
  proxy.stop();
}

TEST(Proxy, FenceIsInOrder) {
  MemoryWorld world(2);
  NetworkOnlyTransport far({world.region()}, 11);
  Proxy proxy({&far, &far}, world.health);
  std::atomic<bool> done{false};
  std::thread watcher([&] {
    std::atomic_ref<std::uint64_t> data(world.word(1, 0)), flag(world.word(1, 64));
    while (!done.load()) {
      const std::uint64_t seen = flag.load(std::memory_order_acquire);
      EXPECT_GE(data.load(std::memory_order_acquire), seen);
      std::this_thread::yield();
    }
  });
  {
    ProxyProducer producer(proxy.channel(), 3);
    for (std::uint64_t round = 1; round <= 2000; ++round) {
      producer.put_value(world.at(1, 0), round, 8);
      producer.fence(round % 2 == 0 ? -1 : 1);
      producer.put_value(world.at(1, 64), round, 8);
      if (round % 50 == 0)
        producer.fence();
    }
    producer.quiet();
  }
  done = true;
  watcher.join();
  EXPECT_EQ(world.word(1, 64), 2000u);
  proxy.stop();
}

TEST(Proxy, EachPeHasItsTransport) {
  CountingTransport near, far;
  JobHealth health;
  Proxy proxy({&near, &far, &far}, health);
  ProxyProducer producer(proxy.channel(), 0);
  for (const int pe : {0, 1, 2, 2})
    producer.put_value({pe, 1, 0}, 1, 8);
  producer.quiet();
  EXPECT_EQ(near.calls, 1u);
  EXPECT_EQ(far.calls, 3u);
  proxy.stop();
}

TEST(Proxy, RequestsPostedTogetherAndMoreThanTheRingHolds) {
  CountingTransport transport;
  JobHealth health;
  ProxyOptions options;
  options.capacity = 8;
  options.limits.publish_every = 4;
  Proxy proxy({&transport}, health, options);
  ProxyProducer producer(proxy.channel(), 0);
  ProxyRequest request;
  request.op = ProxyOp::put;
  request.pe = 0;
  request.size_bytes = 1;
  const std::vector<ProxyRequest> requests(1000, request);
  producer.post(requests);
  producer.quiet();
  EXPECT_EQ(transport.calls, 1000u);
  EXPECT_LE(proxy.statistics().max_depth, 32u); // a round, or two reservations of 8
  proxy.stop();
}

TEST(Proxy, ATransferOfNothing) {
  CountingTransport transport;
  JobHealth health;
  Proxy proxy({&transport}, health);
  ProxyProducer producer(proxy.channel(), 0);
  producer.put({0, 1, 0}, nullptr, 0, true);
  producer.get(nullptr, {0, 1, 0}, 0);
  EXPECT_EQ(transport.calls, 0u);
  proxy.stop();
}

TEST(Proxy, AStopDrainsAndThenRefuses) {
  CountingTransport transport;
  JobHealth health;
  Proxy proxy({&transport}, health);
  ProxyProducer producer(proxy.channel(), 0);
  for (int i = 0; i < 3000; ++i)
    producer.put_value({0, 1, 0}, 1, 8);
  proxy.stop();
  EXPECT_EQ(transport.calls, 3000u);
  proxy.stop();                  // once more does nothing
  for (int i = 0; i < 5000; ++i) // does not use up what a running proxy has
    expect_error(ExitCode::unavailable, {"proxy", "stopped"}, [&] { producer.quiet(); });
  expect_error(ExitCode::unavailable, {"stopped"}, [&] { producer.put_value({0, 1, 0}, 1, 8); });
}

TEST(Proxy, AnIdleProxySleepsAndWakes) {
  MemoryWorld world(1);
  ProxyOptions options;
  options.idle_spins = options.idle_yields = 1;
  Proxy proxy(world.ways(), world.health, options);
  ProxyProducer producer(proxy.channel(), 0);
  for (std::uint64_t round = 1; round <= 20; ++round) {
    const std::uint64_t sleeps = proxy.statistics().sleeps;
    while (proxy.statistics().sleeps < sleeps + 3)
      std::this_thread::yield();
    producer.put_value(world.at(0, 0), round, 8);
    producer.quiet();
    ASSERT_EQ(world.word(0, 0), round);
  }
  proxy.stop();
}

TEST(Proxy, SpinningEndsAfterATimeHoweverManyTurnsAreLeft) {
  MemoryWorld world(1);
  ProxyOptions options;
  options.idle_spins = 1 << 30;
  options.idle_yields = 1;
  options.max_spin = std::chrono::microseconds(200);
  Proxy proxy(world.ways(), world.health, options);
  while (proxy.statistics().sleeps < 3)
    std::this_thread::yield();
  proxy.stop();
}

TEST(Proxy, ProducersAreCreatedAndDestroyed) {
  MemoryWorld world(1);
  ProxyOptions options;
  options.n_results = 2;
  Proxy proxy(world.ways(), world.health, options);
  for (std::uint64_t i = 0; i < 600; ++i) { // more requests than tags
    ProxyProducer producer(proxy.channel(), 0);
    ASSERT_EQ(producer.atomic(world.at(0, 0), {AtomicOp::add, 8, 1, 0}), i);
  }
  proxy.stop();
}

} // namespace
} // namespace shmemctl::test
