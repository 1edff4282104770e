// Failures: every wait ends, and names the cause.
#include <atomic>
#include <gtest/gtest.h>
#include <thread>

#include "src/runtime/proxy/proxy.h"
#include "tests/support/counting_transport.h"
#include "tests/support/expect_error.h"
#include "tests/support/no_transport.h"
#include "tests/unit/runtime/proxy/memory_world.h"

namespace shmemctl::test {
namespace {

Error network_error() {
  return {ExitCode::unavailable, "mlx5_0 port 1", "put to PE 1", "transport retry counter exceeded",
          "look at the cable"};
}

/// Fails after some calls, or stays in a call until it is let go.
class BadTransport final : public NoTransport {
public:
  int fails_after = -1; ///< calls; -1: never
  bool fails_in_quiet = false, fails_in_progress = false;
  std::atomic<bool> hold{false}, inside{false};
  std::atomic<int> calls{0};

  const char* name() const override { return "bad"; }
  void put(int, const RemoteAddress&, const void*, std::size_t, bool) override { call(); }
  void get(int, void*, const RemoteAddress&, std::size_t, bool) override { call(); }
  std::uint64_t atomic(int, const RemoteAddress&, const AtomicRequest&) override {
    call();
    return 1;
  }
  void put_signal(int, const RemoteAddress&, const void*, std::size_t, const RemoteAddress&,
                  std::uint64_t, SignalOp, bool) override {
    call();
  }
  void fence(int) override { call(); }
  void quiet(int) override {
    if (fails_in_quiet)
      throw network_error();
  }
  void progress() override {
    if (fails_in_progress && calls.load() > 0)
      throw network_error();
  }

private:
  void call() {
    inside = true;
    while (hold.load())
      std::this_thread::yield();
    if (calls++ == fails_after)
      throw network_error();
  }
};

ProxyOptions small_options() {
  ProxyOptions options;
  options.capacity = 8;
  options.limits = {4, 4};
  return options;
}

/// For waits that nothing ends: a producer times out, and names the PE that it waited for.
ProxyOptions impatient() {
  ProxyOptions options = small_options();
  options.timeout_s = 1;
  return options;
}

TEST(ProxyFaults, ATransportsErrorReachesEveryProducer) {
  BadTransport transport;
  transport.fails_after = 50;
  JobHealth health;
  Proxy proxy({&transport}, health, small_options());
  std::vector<std::thread> threads;
  std::atomic<int> told{0};
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      ProxyProducer producer(proxy.channel(), 0);
      try {
        for (;;)
          producer.atomic({0, 1, 0}, {AtomicOp::add, 8, 1, 0});
      } catch (const Error& error) {
        told += error.message().find("retry counter exceeded") != std::string::npos;
        EXPECT_EQ(error.where().pe, network_error().where().pe);
      }
    });
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(told.load(), 4);
  EXPECT_EQ(transport.calls.load(), 51) << "nothing is carried out after the error";
  expect_error(ExitCode::unavailable, {"mlx5_0", "retry counter"}, [&] { proxy.stop(); });
}

TEST(ProxyFaults, QuietThrowsTheErrorOfANonBlockingRequest) {
  for (const bool in_quiet : {true, false}) {
    BadTransport transport;
    transport.fails_in_quiet = in_quiet;
    transport.fails_in_progress = !in_quiet;
    JobHealth health;
    Proxy proxy({&transport}, health, small_options());
    ProxyProducer producer(proxy.channel(), 0);
    expect_error(ExitCode::unavailable, {"retry counter"}, [&] {
      producer.put_value({0, 1, 0}, 1, 8);
      producer.quiet();
      while (!in_quiet) // progress is called after the round in which the first one was completed
        producer.quiet();
    });
    expect_error(ExitCode::unavailable, {"retry counter"}, [&] { proxy.stop(); });
  }
}

TEST(ProxyFaults, MalformedRequests) {
  const auto refuse = [](ProxyRequest request, const char* word) {
    CountingTransport transport;
    JobHealth health;
    Proxy proxy({&transport, nullptr}, health, small_options());
    ProxyProducer producer(proxy.channel(), 0);
    expect_error(ExitCode::unavailable, {"proxy", word}, [&] {
      producer.post(request);
      producer.quiet();
    });
    EXPECT_EQ(transport.calls, 0u);
  };
  ProxyRequest good;
  good.op = ProxyOp::put_value;
  good.pe = 0;
  good.size_bytes = 8;
  const auto changed = [&](auto&& change) {
    ProxyRequest request = good;
    change(request);
    return request;
  };
  refuse(changed([](ProxyRequest& r) { r.pe = 2; }), "PE 2 of 2");
  refuse(changed([](ProxyRequest& r) { r.pe = -1; }), "PE -1");
  refuse(changed([](ProxyRequest& r) { r.pe = 1; }), "PE 1"); // no transport reaches PE 1
  refuse(changed([](ProxyRequest& r) { r.size_bytes = 3; }), "3 bytes");
  refuse(changed([](ProxyRequest& r) { r.size_bytes = 16; }), "16 bytes");
  refuse(changed([](ProxyRequest& r) { r.context = 64; }), "context 64");
  refuse(changed([](ProxyRequest& r) { r.op = static_cast<ProxyOp>(200); }), "operation 200");
  refuse(changed([](ProxyRequest& r) { r.op = ProxyOp::none; }), "operation 0");
  refuse(changed([](ProxyRequest& r) {
           r.op = ProxyOp::atomic;
           r.detail = 99;
         }),
         "operation 5");
  refuse(changed([](ProxyRequest& r) {
           r.op = ProxyOp::fence;
           r.pe = 2;
         }),
         "operation 7");
}

TEST(ProxyFaults, NamesAProducerThatDiesWithItsSlotEmpty) {
  CountingTransport transport;
  JobHealth health;
  Proxy proxy({&transport}, health, impatient());
  ProxyProducer producer(proxy.channel(), 0);
  for (int i = 0; i < 3; ++i)
    producer.put_value({0, 1, 0}, 1, 8);
  std::thread([&] { // reserves request 3, and exits
    ProxyChannel::Producer dying(proxy.channel().view(), 0);
    std::uint64_t first = 0;
    ASSERT_TRUE(dying.reserve(1, first));
    EXPECT_EQ(first, 3u);
  })
      .join();
  expect_error(ExitCode::deadline, {"quiet", "request 3", "never filled"},
               [&] { producer.quiet(); });
  EXPECT_EQ(transport.calls, 3u);
  // The other producers get the same error, at once or when they wait for room.
  ProxyProducer other(proxy.channel(), 0);
  expect_error(ExitCode::deadline, {"request 3", "never filled"}, [&] { other.quiet(); });
  expect_error(ExitCode::deadline, {"request 3", "never filled"}, [&] { proxy.stop(); });
}

TEST(ProxyFaults, StopDoesNotWaitForeverForADeadProducer) {
  CountingTransport transport;
  JobHealth health;
  Proxy proxy({&transport}, health, impatient());
  ProxyChannel::Producer dying(proxy.channel().view(), 0);
  std::uint64_t first = 0;
  ASSERT_TRUE(dying.reserve(1, first));
  expect_error(ExitCode::deadline, {"last requests", "request 0", "never filled"},
               [&] { proxy.stop(); });
}

TEST(ProxyFaults, ADeadProxyThreadIsNamed) {
  JobHealth health;
  ProxyChannel channel(health, impatient()); // no thread drains the ring
  ProxyProducer producer(channel, 0);
  expect_error(ExitCode::deadline,
               {"posting to the proxy's full ring", "proxy thread", "request 0", "died"}, [&] {
                 for (int i = 0; i < 20; ++i)
                   producer.put_value({0, 1, 0}, 1, 8);
               });
  EXPECT_GT(channel.stalled_s(), 0.1);
  // Its slot stays empty: no producer may be left waiting after it.
  ProxyProducer other(channel, 0);
  expect_error(ExitCode::deadline, {"proxy thread"}, [&] { other.quiet(); });
}

TEST(ProxyFaults, NamesThePeThatTheProxyIsBusyWith) {
  BadTransport transport;
  transport.hold = true;
  JobHealth health;
  Proxy proxy({&transport, &transport, &transport}, health, impatient());
  ProxyProducer producer(proxy.channel(), 0);
  producer.put_value({2, 1, 0}, 1, 8);
  while (!transport.inside)
    std::this_thread::yield();
  expect_error(ExitCode::deadline, {"quiet", "put of a value", "PE 2"}, [&] { producer.quiet(); });
  transport.hold = false;
  expect_error(ExitCode::deadline, {"PE 2"}, [&] { proxy.stop(); });
}

/// A job that fails on request.
class FailingHealth final : public JobHealth {
public:
  std::atomic<bool> failed{false};
  void check() const override {
    if (failed.load())
      throw Error(ExitCode::unavailable, "PE 5 on host n7", "run", "it was killed", "see its log");
  }
};

TEST(ProxyFaults, TheJobsFailureEndsProxyAndProducers) {
  CountingTransport transport;
  FailingHealth health;
  const ProxyOptions options = small_options();
  Proxy proxy({&transport}, health, options);
  ProxyProducer producer(proxy.channel(), 0);
  std::atomic<int> done{0};
  std::thread killer([&] {
    while (done.load() < 100)
      std::this_thread::yield();
    health.failed = true;
  });
  expect_error(ExitCode::unavailable, {"PE 5", "killed"}, [&] {
    for (;;) {
      producer.quiet();
      ++done;
    }
  });
  killer.join();
  expect_error(ExitCode::unavailable, {"PE 5", "killed"}, [&] { proxy.stop(); });
}

TEST(ProxyFaults, AnUnansweredWaitThrowsTheJobsFailure) {
  FailingHealth health;
  const ProxyOptions options = small_options();
  ProxyChannel channel(health, options);
  ProxyProducer producer(channel, 0);
  producer.put_value({0, 1, 0}, 1, 8);
  health.failed = true;
  expect_error(ExitCode::unavailable, {"PE 5", "killed"}, [&] { producer.quiet(); });
}

TEST(ProxyFaults, WithoutAStopItRejectsTheRest) {
  BadTransport transport;
  transport.hold = true;
  JobHealth health;
  auto proxy = std::make_unique<Proxy>(std::vector<Transport*>{&transport}, health);
  {
    ProxyProducer producer(proxy->channel(), 0);
    for (int i = 0; i < 100; ++i)
      producer.put_value({0, 1, 0}, 1, 8);
  }
  while (!transport.inside)
    std::this_thread::yield();
  std::thread opener([&] { transport.hold = false; });
  proxy.reset();
  opener.join();
  EXPECT_GE(transport.calls.load(), 1);
}

TEST(ProxyFaults, MoreWaitersThanResultSlots) {
  MemoryWorld world(1);
  ProxyOptions options;
  options.n_results = 1;
  Proxy proxy(world.ways(), world.health, options);
  {
    ProxyProducer first(proxy.channel(), 0);
    first.get_value(world.at(0, 0), 8);
    ProxyProducer second(proxy.channel(), 0);
    expect_error(ExitCode::unavailable, {"result slot", "all 1 are in use"},
                 [&] { second.get_value(world.at(0, 0), 8); });
    first.get_value(world.at(0, 0), 8);
  }
  ProxyProducer third(proxy.channel(), 0);
  third.get_value(world.at(0, 0), 8);
  proxy.stop();
}

TEST(ProxyFaults, RejectsInvalidRingOptions) {
  JobHealth health;
  const auto refuse = [&](auto&& change) {
    ProxyOptions options;
    change(options);
    expect_error(ExitCode::usage, {"proxy"}, [&] { ProxyChannel(health, options); });
  };
  for (const std::size_t capacity : {0ul, 1ul, 3ul, 1000ul, 1ul << 25})
    refuse([&](ProxyOptions& options) { options.capacity = capacity; });
  refuse([](ProxyOptions& options) { options.limits.batch = 0; });
  refuse([](ProxyOptions& options) { options.limits.batch = 33; });
  refuse([](ProxyOptions& options) { options.limits.publish_every = 0; });
  refuse([](ProxyOptions& options) {
    options.capacity = 8;
    options.limits.publish_every = 9;
  });
}

} // namespace
} // namespace shmemctl::test
