// Threads, the real ring and the real proxy thread, for ThreadSanitizer.
#include <array>
#include <atomic>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <thread>

#include "src/runtime/proxy/proxy.h"
#include "tests/support/counting_transport.h"
#include "tests/support/no_transport.h"
#include "tests/unit/runtime/proxy/memory_world.h"

namespace shmemctl::test {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) || !defined(NDEBUG)
constexpr std::uint64_t rounds = 3'000;
#else
constexpr std::uint64_t rounds = 60'000;
#endif
constexpr std::size_t n_producers = 4;

/// Of one producer to one PE.
constexpr std::size_t max_pes = 6;
using Counts = std::array<std::array<std::atomic<std::uint64_t>, max_pes>, n_producers>;

/// Each producer numbers its puts to each PE (in the offset), and the number is in the data
/// too, with the producer. What was taken on a context is complete at a quiet of it. A context has
/// one thread.
class OrderTransport final : public NoTransport {
public:
  /// State of one thread: only it writes here, so a second one is a race that ThreadSanitizer
  /// reports.
  struct Lane {
    std::array<std::array<std::uint64_t, max_pes>, n_producers> taken{};
    std::uint64_t wrong = 0, quiets = 0;
  };
  std::array<Lane, 64> lanes{}; ///< by context
  Counts complete{};

  const char* name() const override { return "order"; }
  void put(int context, const RemoteAddress& target, const void* source, std::size_t,
           bool) override {
    Lane& lane = lanes[static_cast<std::size_t>(context)];
    std::uint64_t value = 0;
    std::memcpy(&value, source, sizeof value);
    const std::size_t producer = value >> 32;
    std::uint64_t& taken = lane.taken[producer][static_cast<std::size_t>(target.pe)];
    lane.wrong += target.offset_bytes != taken || (value & 0xffffffff) != taken;
    ++taken;
  }
  void get(int, void* target, const RemoteAddress& source, std::size_t size_bytes, bool) override {
    const std::uint64_t value = ~source.offset_bytes;
    std::memcpy(target, &value, size_bytes);
  }
  std::uint64_t atomic(int, const RemoteAddress&, const AtomicRequest& request) override {
    return ~request.operand;
  }
  void quiet(int context) override {
    Lane& lane = lanes[static_cast<std::size_t>(context)];
    ++lane.quiets;
    for (std::size_t producer = 0; producer < n_producers; ++producer)
      for (std::size_t pe = 0; pe < max_pes; ++pe)
        if (lane.taken[producer][pe] > 0)
          complete[producer][pe].store(lane.taken[producer][pe], std::memory_order_relaxed);
  }
};

/// Puts from memory and of values, one or many, to all PEs, with waits in between.
class StressProducer {
public:
  StressProducer(Proxy& proxy, OrderTransport& transport, std::size_t number, std::size_t n_pes,
                 Counts& issued)
      : producer_(proxy.channel(), proxy_context), transport_(transport), number_(number),
        n_pes_(n_pes), issued_(issued), random_(static_cast<unsigned>(number)) {}

  void run() {
    for (std::uint64_t i = 0; i < rounds; ++i) {
      if (used_ > data_.size() - 8) // the words are reused
        wait_for_all();
      step();
    }
    wait_for_all();
  }

private:
  ProxyRequest next() {
    const std::size_t pe = random_() % n_pes_;
    std::uint64_t& word = data_[used_++ % data_.size()];
    const std::uint64_t turn = next_[pe]++;
    word = number_ << 32 | turn;
    ProxyRequest request;
    request.op = ProxyOp::put;
    request.context = proxy_context;
    request.pe = static_cast<int>(pe);
    request.offset_bytes = turn;
    request.local = reinterpret_cast<std::uint64_t>(&word);
    request.size_bytes = sizeof word;
    return request;
  }

  void step() {
    const std::uint64_t kind = random_() % 16;
    const int pe = static_cast<int>(random_() % n_pes_);
    if (kind == 0) {
      std::array<ProxyRequest, 5> many;
      for (ProxyRequest& request : many)
        request = next();
      producer_.post(many);
    } else if (kind == 1) {
      EXPECT_EQ(producer_.atomic({pe, 1, 0}, {AtomicOp::add, 8, used_, 0}), ~used_);
    } else if (kind == 2) {
      EXPECT_EQ(producer_.get_value({pe, 1, used_}, 8), ~used_);
    } else if (kind == 3) {
      producer_.fence(random_() % 2 == 0 ? -1 : pe);
    } else if (kind < 9) {
      const ProxyRequest request = next();
      producer_.put_value({request.pe, 1, request.offset_bytes},
                          number_ << 32 | request.offset_bytes, 8);
    } else {
      producer_.post(next());
    }
    for (std::size_t to = 0; to < n_pes_; ++to)
      issued_[number_][to].store(next_[to], std::memory_order_release);
  }

  void wait_for_all() {
    std::array<std::array<std::uint64_t, max_pes>, n_producers> before{};
    for (std::size_t other = 0; other < n_producers; ++other)
      for (std::size_t pe = 0; pe < n_pes_; ++pe)
        before[other][pe] = issued_[other][pe].load(std::memory_order_acquire);
    producer_.quiet();
    for (std::size_t other = 0; other < n_producers; ++other)
      for (std::size_t pe = 0; pe < n_pes_; ++pe)
        EXPECT_GE(transport_.complete[other][pe].load(std::memory_order_relaxed), before[other][pe])
            << "quiet of producer " << number_ << " for " << other << " to PE " << pe;
    used_ = 0;
  }

  ProxyProducer producer_;
  OrderTransport& transport_;
  std::size_t number_, n_pes_;
  Counts& issued_;
  std::mt19937 random_;
  std::array<std::uint64_t, 64> data_{}; // plain words: ThreadSanitizer reports a race
  std::array<std::uint64_t, max_pes> next_{};
  std::uint64_t used_ = 0;
};

void run_stress(const ProxyOptions& options, std::size_t n_pes = 1) {
  OrderTransport transport;
  JobHealth health;
  Proxy proxy(std::vector<Transport*>(n_pes, &transport), health, options);
  Counts issued{};
  std::vector<std::thread> threads;
  for (std::size_t number = 0; number < n_producers; ++number)
    threads.emplace_back(
        [&, number] { StressProducer(proxy, transport, number, n_pes, issued).run(); });
  for (std::thread& thread : threads)
    thread.join();
  proxy.stop();
  for (std::size_t pe = 0; pe < n_pes; ++pe) {
    const auto context =
        static_cast<std::size_t>(proxy_context) - proxy.channel().fifo_of(static_cast<int>(pe));
    const OrderTransport::Lane& lane = transport.lanes[context];
    EXPECT_EQ(lane.wrong, 0u) << "lost, repeated, out of order, or before its data";
    EXPECT_GT(lane.quiets, 0u);
    for (std::size_t number = 0; number < n_producers; ++number)
      EXPECT_EQ(lane.taken[number][pe], issued[number][pe].load());
  }
}

TEST(ProxyStress, ATinyRingThroughTheWrapOfTheNumbers) {
  ProxyOptions options;
  options.capacity = 4;
  options.limits = {3, 2};
  options.first_sequence = ProxyTraits::Sequence::mask - 1000; // wraps in the middle
  run_stress(options);
}

TEST(ProxyStress, TheUsualRing) {
  run_stress({});
}

TEST(ProxyStress, SeveralRings) {
  for (const unsigned threads : {2u, 3u}) {
    ProxyOptions options;
    options.threads = threads;
    run_stress(options, max_pes);
  }
}

TEST(ProxyStress, SeveralTinyRingsThroughTheWrapOfTheNumbers) {
  ProxyOptions options;
  options.threads = 2;
  options.capacity = 4;
  options.limits = {3, 2};
  options.first_sequence = ProxyTraits::Sequence::mask - 1000;
  run_stress(options, max_pes);
}

TEST(ProxyStress, AStopBesideBusyProducers) {
  for (int round = 0; round < 20; ++round) {
    CountingTransport transport;
    JobHealth health;
    ProxyOptions options;
    options.capacity = 8;
    options.limits = {4, 4};
    Proxy proxy({&transport}, health, options);
    std::atomic<std::uint64_t> accepted{0}, running{0};
    std::vector<std::thread> threads;
    for (std::size_t number = 0; number < n_producers; ++number)
      threads.emplace_back([&] {
        ProxyProducer producer(proxy.channel(), 0);
        try {
          for (;;) {
            producer.put_value({0, 1, 0}, 1, 8);
            ++accepted;
            ++running;
          }
        } catch (const Error& error) {
          EXPECT_NE(error.message().find("stopped"), std::string::npos) << error.message();
        }
      });
    while (running.load() < 200)
      std::this_thread::yield();
    proxy.stop();
    for (std::thread& thread : threads)
      thread.join();
    EXPECT_EQ(transport.calls, accepted.load()) << "accepted means carried out";
  }
}

} // namespace
} // namespace shmemctl::test
