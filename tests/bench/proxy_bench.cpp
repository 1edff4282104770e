// Figures of the proxy's ring: requests per second to a transport that does nothing, and the time
// of one request beside a bare cache line that two threads hand to each other.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <sched.h>
#include <thread>
#include <vector>

#include "src/runtime/proxy/proxy.h"
#include "tests/support/counting_transport.h"

using namespace shmemctl;
using test::CountingTransport;

namespace {

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// The `number`-th of the processors that the program may use.
int nth_cpu(std::size_t number) {
  static const cpu_set_t allowed = [] {
    cpu_set_t set;
    CPU_ZERO(&set);
    ::sched_getaffinity(0, sizeof set, &set);
    return set;
  }();
  number %= static_cast<std::size_t>(CPU_COUNT(&allowed));
  for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &allowed) && number-- == 0)
      return static_cast<int>(cpu);
  return 0;
}

/// Keeps this thread, and those that it starts from now on, there. The proxy's threads get the
/// first processors, producers the others in turn: without that threads move and share a processor
/// now and then, which is what would be measured.
void pin(std::size_t number) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(nth_cpu(number)), &one);
  ::sched_setaffinity(0, sizeof one, &one);
}

/// The producer's processor: never the proxy's, if there are enough.
std::size_t producer_cpu(std::size_t number, std::size_t n_threads = 1) {
  const std::size_t all = std::max(2u, std::thread::hardware_concurrency());
  return n_threads < all ? n_threads + number % (all - n_threads) : number;
}

void wait_turn(bool yields) {
  if (yields)
    std::this_thread::yield();
#if defined(__x86_64__)
  else
    __builtin_ia32_pause();
#endif
}

ProxyRequest request_of(std::uint64_t number, int pe = 0) {
  ProxyRequest request;
  request.op = ProxyOp::put;
  request.context = proxy_context;
  request.pe = pe;
  request.region = 1;
  request.offset_bytes = number;
  request.size_bytes = 8;
  return request;
}

/// What producers post: one reservation for each `batch` requests; quiet at the end.
void post_many(Proxy& proxy, int pe, std::uint64_t count, std::size_t batch) {
  ProxyProducer producer(proxy.channel(), proxy_context);
  std::vector<ProxyRequest> requests(batch, request_of(1, pe));
  for (std::uint64_t i = 0; i < count; i += batch)
    producer.post(requests);
  producer.quiet();
}

/// Arguments: producers, requests per reservation, threads of the proxy. Producers have a PE each.
void requests(benchmark::State& state) {
  const auto n_producers = static_cast<std::size_t>(state.range(0));
  const auto batch = static_cast<std::size_t>(state.range(1));
  constexpr std::uint64_t each = 1 << 20;
  ProxyOptions options;
  options.threads = static_cast<unsigned>(state.range(2));
  std::vector<CountingTransport> transports(options.threads);
  std::vector<Transport*> ways;
  for (std::size_t pe = 0; pe < n_producers; ++pe)
    ways.push_back(&transports[pe % transports.size()]);
  for (unsigned thread = 0; thread < options.threads; ++thread)
    options.cpus.push_back(CpuSet{nth_cpu(thread)});
  JobHealth health;
  Proxy proxy(ways, health, options);
  for (auto _ : state) {
    std::atomic<std::size_t> ready{0};
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < n_producers; ++i)
      threads.emplace_back([&, i] {
        pin(producer_cpu(i, options.threads));
        ++ready;
        while (ready.load() <= n_producers)
          std::this_thread::yield();
        post_many(proxy, static_cast<int>(i), each, batch);
      });
    while (ready.load() < n_producers)
      std::this_thread::yield();
    const auto begin = std::chrono::steady_clock::now();
    ++ready;
    for (std::thread& thread : threads)
      thread.join();
    state.SetIterationTime(seconds_since(begin));
  }
  proxy.stop();
  const ProxyStatistics statistics = proxy.statistics();
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(n_producers * each));
  state.counters["mean_batch"] =
      static_cast<double>(statistics.requests) / static_cast<double>(statistics.batches);
  state.counters["max_depth"] = static_cast<double>(statistics.max_depth);
}

/// There and back: a cache line that two threads write in turn.
void cache_line_ping_pong(benchmark::State& state) {
  alignas(128) static std::atomic<std::uint64_t> there, back;
  there = back = 0;
  const bool yields = std::thread::hardware_concurrency() < 2;
  pin(producer_cpu(0));
  std::thread other([&] {
    pin(0);
    for (std::uint64_t turn = 1; turn != 0;) {
      const std::uint64_t seen = there.load(std::memory_order_acquire);
      if (seen < turn) {
        wait_turn(yields);
        continue;
      }
      back.store(seen, std::memory_order_release);
      turn = seen == ~std::uint64_t{0} ? 0 : turn + 1;
    }
  });
  std::uint64_t turn = 0;
  for (auto _ : state) {
    there.store(++turn, std::memory_order_release);
    while (back.load(std::memory_order_acquire) != turn)
      wait_turn(yields);
  }
  there.store(~std::uint64_t{0}, std::memory_order_release);
  other.join();
}

/// There and back: a request into the ring, and the word that the transport writes for it.
void request_to_transport(benchmark::State& state) {
  CountingTransport transport;
  JobHealth health;
  pin(0);
  Proxy proxy({&transport}, health);
  pin(producer_cpu(0));
  {
    ProxyProducer producer(proxy.channel(), 0);
    const bool yields = std::thread::hardware_concurrency() < 2;
    std::uint64_t number = 0;
    for (auto _ : state) {
      producer.post(request_of(++number));
      while (transport.last.load(std::memory_order_acquire) != number + 1)
        wait_turn(yields);
    }
  }
  proxy.stop();
}

/// There and back: an atomic whose old value comes back through the result.
void fetch(benchmark::State& state) {
  CountingTransport transport;
  JobHealth health;
  pin(0);
  Proxy proxy({&transport}, health);
  pin(producer_cpu(0));
  {
    ProxyProducer producer(proxy.channel(), 0);
    for (auto _ : state)
      benchmark::DoNotOptimize(producer.atomic({0, 1, 0}, {AtomicOp::add, 8, 1, 0}));
  }
  proxy.stop();
}

} // namespace

BENCHMARK(requests)
    ->ArgNames({"producers", "batch", "threads"})
    ->ArgsProduct({{1, 2, 4}, {1, 16}, {1, 2, 4}})
    ->UseManualTime()
    ->Iterations(5);
BENCHMARK(cache_line_ping_pong)->UseRealTime();
BENCHMARK(request_to_transport)->UseRealTime();
BENCHMARK(fetch)->UseRealTime();

BENCHMARK_MAIN();
