// Several threads, each with a ring: which thread takes which request, what one can block, and of
// what all are notified.
#include <algorithm>
#include <array>
#include <atomic>
#include <gtest/gtest.h>
#include <mutex>
#include <set>
#include <thread>

#include "src/runtime/proxy/proxy.h"
#include "tests/support/expect_error.h"
#include "tests/support/no_transport.h"
#include "tests/unit/runtime/proxy/memory_world.h"

namespace shmemctl::test {
namespace {

/// Records the requests by PE and context; a get of PE `held` does not complete while `hold`.
class NotingTransport final : public NoTransport {
public:
  std::atomic<bool> hold{false}, inside{false};
  int held = -1;
  int fails_pe = -1;
  std::mutex mutex;
  std::vector<std::pair<int, std::string>> calls;      ///< context, what
  std::set<std::pair<int, std::thread::id>> who_is_in; ///< contexts and their threads

  const char* name() const override { return "noting"; }
  void put(int context, const RemoteAddress& target, const void*, std::size_t, bool) override {
    note(context, "put " + std::to_string(target.pe));
    if (target.pe == fails_pe)
      throw Error(ExitCode::unavailable, "mlx5_0 port 1", "put to PE " + std::to_string(target.pe),
                  "transport retry counter exceeded", "look at the cable");
  }
  void get(int context, void*, const RemoteAddress& source, std::size_t, bool blocking) override {
    note(context, (blocking ? "get " : "begin ") + std::to_string(source.pe));
    if (source.pe != held)
      return;
    inside = true;
    while (hold.load())
      std::this_thread::yield();
  }
  std::uint64_t atomic(int context, const RemoteAddress& target, const AtomicRequest&) override {
    note(context, "atomic " + std::to_string(target.pe));
    return 0;
  }
  void post_atomic(int context, const RemoteAddress& target, const AtomicRequest&) override {
    note(context, "post " + std::to_string(target.pe));
  }
  void put_signal(int context, const RemoteAddress& target, const void*, std::size_t,
                  const RemoteAddress&, std::uint64_t, SignalOp, bool) override {
    note(context, "signal " + std::to_string(target.pe));
  }
  void fence(int context) override { note(context, "fence"); }
  void quiet(int context) override { note(context, "quiet"); }

  std::vector<std::string> on(int context) {
    const std::lock_guard lock(mutex);
    std::vector<std::string> mine;
    for (const auto& [where, what] : calls)
      if (where == context)
        mine.push_back(what);
    return mine;
  }

private:
  void note(int context, const std::string& what) {
    const std::lock_guard lock(mutex);
    calls.emplace_back(context, what);
    who_is_in.emplace(context, std::this_thread::get_id());
  }
};

ProxyOptions several(unsigned threads) {
  ProxyOptions options;
  options.threads = threads;
  return options;
}

TEST(ProxyFifos, EachPeHasARingAndEachRingAContext) {
  NotingTransport transport;
  JobHealth health;
  Proxy proxy({4, &transport}, health, several(2));
  {
    ProxyProducer producer(proxy.channel(), proxy_context);
    for (const int pe : {0, 1, 2, 3}) {
      producer.put_value({pe, 1, 0}, 1, 8);
      producer.post_atomic({pe, 1, 0}, {AtomicOp::add, 8, 1, 0});
    }
    producer.fence(1);
    producer.fence();
    producer.quiet();
    producer.quiet(); // nothing is left to wait for
  }
  proxy.stop();
  using Calls = std::vector<std::string>;
  EXPECT_EQ(transport.on(proxy_context),
            (Calls{"put 0", "post 0", "put 2", "post 2", "fence", "quiet"}));
  EXPECT_EQ(transport.on(proxy_context - 1),
            (Calls{"put 1", "post 1", "put 3", "post 3", "fence", "fence", "quiet"}));
  EXPECT_EQ(transport.who_is_in.size(), 2u) << "one thread in each context";
  EXPECT_GE(proxy.statistics().requests, 12u);
  EXPECT_EQ(proxy.statistics(0).requests + proxy.statistics(1).requests,
            proxy.statistics().requests);
}

TEST(ProxyFifos, ABlockingGetHoldsUpItsRingOnly) {
  NotingTransport transport;
  transport.held = 1;
  transport.hold = true;
  JobHealth health;
  Proxy proxy({2, &transport}, health, several(2));
  std::thread waiter([&] {
    ProxyProducer producer(proxy.channel(), proxy_context);
    producer.get_value({1, 1, 0}, 8);
  });
  while (!transport.inside.load())
    std::this_thread::yield();
  {
    ProxyProducer producer(proxy.channel(), proxy_context);
    for (int i = 0; i < 100; ++i)
      producer.atomic({0, 1, 0}, {AtomicOp::add, 8, 1, 0}); // each waits for its result
  }
  EXPECT_EQ(transport.on(proxy_context).size(), 100u);
  transport.hold = false;
  waiter.join();
  proxy.stop();
}

TEST(ProxyFifos, GetsThatWaitTogetherOverlap) {
  NotingTransport transport;
  transport.held = 0;
  transport.hold = true;
  JobHealth health;
  Proxy proxy({1, &transport}, health);
  constexpr int waiters = 5;
  std::vector<std::thread> threads;
  const auto ask = [&] {
    ProxyProducer producer(proxy.channel(), proxy_context);
    producer.get_value({0, 1, 0}, 8);
  };
  threads.emplace_back(ask);
  while (!transport.inside.load())
    std::this_thread::yield();
  for (int i = 0; i < waiters; ++i)
    threads.emplace_back(ask);
  const ProxyFifoView& ring = proxy.channel().view();
  const auto written = [&](std::size_t slot) {
    for (std::size_t word = 0; word < ProxyTraits::words; ++word)
      if ((HostAtomics::load_acquire(ring.slots + slot * ProxyTraits::words + word) & 0xff) != 1)
        return false;
    return true;
  };
  for (std::size_t slot = 1; slot <= waiters; ++slot)
    while (!written(slot))
      std::this_thread::yield();
  transport.hold = false;
  for (std::thread& thread : threads)
    thread.join();
  proxy.stop();
  const std::vector<std::string> calls = transport.on(proxy_context);
  EXPECT_EQ(std::count(calls.begin(), calls.end(), "get 0"), 1) << "the first one was alone";
  EXPECT_EQ(std::count(calls.begin(), calls.end(), "begin 0"), waiters);
  EXPECT_EQ(calls.back(), "quiet");
}

TEST(ProxyFifos, AnErrorInOneRingReachesTheProducersOfAll) {
  NotingTransport transport;
  transport.fails_pe = 3;
  JobHealth health;
  Proxy proxy({4, &transport}, health, several(4));
  std::array<std::thread, 4> threads;
  std::atomic<int> told{0}, others{0};
  for (int pe = 0; pe < 4; ++pe)
    threads[static_cast<std::size_t>(pe)] = std::thread([&, pe] {
      ProxyProducer producer(proxy.channel(), proxy_context);
      try {
        if (pe == 3)
          while (others.load() < 3) // the other producers have begun
            std::this_thread::yield();
        for (bool first = true;; first = false) {
          producer.put_value({pe, 1, 0}, 1, 8);
          producer.quiet();
          others += first ? 1 : 0;
        }
      } catch (const Error& error) {
        told += error.message().find("PE 3") != std::string::npos &&
                error.message().find("retry counter") != std::string::npos;
      }
    });
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(told.load(), 4);
  expect_error(ExitCode::unavailable, {"mlx5_0", "PE 3"}, [&] { proxy.stop(); });
}

TEST(ProxyFifos, AStuckRingIsNamedByAQuietOfAll) {
  NotingTransport transport;
  JobHealth health;
  ProxyOptions options = several(3);
  options.timeout_s = 3;
  Proxy proxy({3, &transport}, health, options);
  ProxyProducer producer(proxy.channel(), proxy_context);
  for (const int pe : {0, 1, 2})
    producer.put_value({pe, 1, 0}, 1, 8);
  std::uint64_t first = 0;
  ProxyChannel::Producer dying(proxy.channel().view(1), 0); // reserves a request, and exits
  ASSERT_TRUE(dying.reserve(1, first));
  expect_error(ExitCode::deadline, {"quiet of ring 1", "request 1", "never filled"},
               [&] { producer.quiet(); });
  expect_error(ExitCode::deadline, {"never filled"}, [&] { proxy.stop(); });
}

TEST(ProxyFifos, AStopDrainsAll) {
  MemoryWorld world(5);
  Proxy proxy(world.ways(), world.health, several(3));
  ProxyProducer producer(proxy.channel(), proxy_context);
  for (int i = 0; i < 3000; ++i)
    producer.post_atomic(world.at(i % 5, 0), {AtomicOp::add, 8, 1, 0});
  proxy.stop();
  for (int pe = 0; pe < 5; ++pe)
    EXPECT_EQ(world.word(pe, 0), 600u);
  expect_error(ExitCode::unavailable, {"stopped"}, [&] { producer.quiet(); });
}

TEST(ProxyFifos, ContextsOfOtherThreadsAreRefused) {
  NotingTransport transport;
  JobHealth health;
  for (const int context : {proxy_context - 1, 0, 64}) {
    Proxy proxy({2, &transport}, health, several(2));
    ProxyProducer producer(proxy.channel(), context);
    expect_error(ExitCode::unavailable, {"on context"}, [&] {
      producer.put_value({0, 1, 0}, 1, 8);
      producer.quiet();
    });
  }
  Proxy proxy({2, &transport}, health, several(2));
  ProxyProducer producer(proxy.channel(), proxy_context - 2);
  producer.put_value({1, 1, 0}, 1, 8);
  producer.quiet();
  EXPECT_EQ(transport.on(proxy_context - 3).size(), 2u);
  proxy.stop();
}

TEST(ProxyFifos, RejectsInvalidOptions) {
  JobHealth health;
  const auto refuse = [&](auto&& change) {
    ProxyOptions options;
    change(options);
    expect_error(ExitCode::usage, {"proxy threads"}, [&] { ProxyChannel(health, options, 2); });
  };
  refuse([](ProxyOptions& options) { options.threads = 0; });
  refuse([](ProxyOptions& options) { options.threads = max_proxy_threads + 1; });
  refuse([](ProxyOptions& options) { options.fifo_of_pe = {0}; });
  refuse([](ProxyOptions& options) { options.fifo_of_pe = {0, 1}; });
}

TEST(ProxySettings, PesAreDealtOutAlongNodesAndAlongRails) {
  std::vector<PeHost> hosts(8); // two nodes of four
  for (std::size_t pe = 0; pe < hosts.size(); ++pe)
    hosts[pe].node_id = hosts[pe].machine_id = 1 + pe / 4;
  const Options options(
      Environment{{"SHMEMCTL_PROXY_THREADS", "2"}, {"SHMEMCTL_PROXY_CPUS", "3,5-6"}});
  const ProxyOptions made = proxy_options(options, place(0, hosts), CpuSet{0, 1}, 7);
  EXPECT_EQ(made.fifo_of_pe, (std::vector<std::uint8_t>{0, 1, 0, 1, 1, 0, 1, 0}));
  EXPECT_EQ(made.threads, 2u);
  EXPECT_EQ(made.timeout_s, 7);
  EXPECT_EQ(made.cpus, (std::vector<CpuSet>{{3}, {5}}));
}

TEST(ProxySettings, Cpus) {
  const Placement alone = place(0, std::vector<PeHost>(1));
  const auto made = [&](const Environment& environment) {
    return proxy_options(Options(environment), alone, CpuSet{0, 1}, 7).cpus;
  };
  EXPECT_EQ(made({}), (std::vector<CpuSet>{{0, 1}}));
  EXPECT_EQ(made({{"SHMEMCTL_PROXY_THREADS", "3"}, {"SHMEMCTL_PROXY_CPUS", "2-3"}}),
            (std::vector<CpuSet>{{2, 3}, {2, 3}, {2, 3}}));
  expect_error(ExitCode::usage, {"PROXY_CPUS=2;3"}, [&] {
    made({{"SHMEMCTL_PROXY_CPUS", "2;3"}});
  });
  expect_error(ExitCode::usage, {"CPU 16000"}, [] {
    ProxyOptions options;
    options.cpus = {CpuSet{16000}};
    NotingTransport transport;
    JobHealth health;
    Proxy({&transport}, health, options);
  });
}

} // namespace
} // namespace shmemctl::test
