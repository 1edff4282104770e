// Threads, the real ring and the real thread: what ThreadSanitizer looks at.
#include <array>
#include <atomic>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <thread>

#include "src/runtime/proxy/proxy.h"
#include "tests/support/counting_transport.h"
#include "tests/unit/proxy/memory_world.h"

namespace shmemctl::test {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) || !defined(NDEBUG)
constexpr std::uint64_t rounds = 3'000;
#else
constexpr std::uint64_t rounds = 60'000;
#endif
constexpr std::size_t n_producers = 4;

/// Each producer numbers its puts (in the offset), and the number stands in the data too, which is
/// read when the put is completed: at a quiet.
class OrderTransport final : public Transport {
public:
  std::array<std::uint64_t, n_producers> taken{}; ///< of the proxy thread
  std::array<std::atomic<std::uint64_t>, n_producers> complete{};
  std::uint64_t wrong = 0, quiets = 0;

  const char* name() const override { return "order"; }
  std::string local_info() override { return {}; }
  Reach reach(const PeerPlace&, const PeerPlace&) const override { return {can_put, ""}; }
  void connect(const std::vector<PeerPlace>&, Exchange&, const Deadline&) override {}
  std::string set_region(const RegionView&) override { return {}; }
  void put(int context, const RemoteAddress& target, const void* source, std::size_t size_bytes,
           bool) override {
    const auto producer = static_cast<std::size_t>(context);
    std::uint64_t value = 0;
    std::memcpy(&value, source, size_bytes);
    wrong += target.offset_bytes != taken[producer] || value != target.offset_bytes;
    ++taken[producer];
  }
  void get(int, void*, const RemoteAddress&, std::size_t, bool) override {}
  std::uint64_t atomic(int, const RemoteAddress&, const AtomicRequest& request) override {
    return ~request.operand;
  }
  void put_signal(int, const RemoteAddress&, const void*, std::size_t, const RemoteAddress&,
                  std::uint64_t, SignalOp, bool) override {}
  void fence(int) override {}
  void quiet(int) override {
    ++quiets;
    for (std::size_t i = 0; i < n_producers; ++i)
      complete[i].store(taken[i], std::memory_order_relaxed);
  }
};

/// Puts from memory and of values, one or many, with waits in between.
void produce(Proxy& proxy, OrderTransport& transport, std::size_t number,
             std::array<std::atomic<std::uint64_t>, n_producers>& issued) {
  ProxyProducer producer(proxy.channel(), static_cast<int>(number));
  std::mt19937 random(static_cast<unsigned>(number));
  std::array<std::uint64_t, 64> data{}; // plain words: a race is ThreadSanitizer's to find
  std::uint64_t next = 0, quiet_at = 0;
  const auto request_of = [&](std::uint64_t value) {
    std::uint64_t& word = data[value % data.size()];
    word = value;
    ProxyRequest request;
    request.op = ProxyOp::put;
    request.context = static_cast<std::uint8_t>(number);
    request.pe = 0;
    request.offset_bytes = value;
    request.local = reinterpret_cast<std::uint64_t>(&word);
    request.size_bytes = sizeof word;
    return request;
  };
  const auto wait_for_all = [&] {
    std::array<std::uint64_t, n_producers> before{};
    for (std::size_t i = 0; i < n_producers; ++i)
      before[i] = issued[i].load(std::memory_order_acquire);
    producer.quiet();
    for (std::size_t i = 0; i < n_producers; ++i)
      EXPECT_GE(transport.complete[i].load(std::memory_order_relaxed), before[i])
          << "quiet of producer " << number << " for " << i;
  };
  while (next < rounds) {
    const std::uint64_t kind = random() % 16;
    if (next - quiet_at > data.size() - 8) { // the words are used again
      wait_for_all();
      quiet_at = next;
    }
    if (kind == 0) {
      std::array<ProxyRequest, 5> many;
      for (ProxyRequest& request : many)
        request = request_of(next++);
      producer.post(many);
    } else if (kind == 1) {
      EXPECT_EQ(producer.atomic({0, 1, 0}, {AtomicOp::add, 8, next, 0}), ~next);
    } else if (kind < 8) {
      producer.put_value({0, 1, next}, next, 8);
      ++next;
    } else {
      producer.post(request_of(next));
      ++next;
    }
    issued[number].store(next, std::memory_order_release);
  }
  wait_for_all();
}

void run_stress(const ProxyOptions& options) {
  OrderTransport transport;
  JobHealth health;
  Proxy proxy({&transport}, health, options);
  std::array<std::atomic<std::uint64_t>, n_producers> issued{};
  std::vector<std::thread> threads;
  for (std::size_t number = 0; number < n_producers; ++number)
    threads.emplace_back([&, number] { produce(proxy, transport, number, issued); });
  for (std::thread& thread : threads)
    thread.join();
  proxy.stop();
  EXPECT_EQ(transport.wrong, 0u) << "lost, repeated, out of order, or before its data";
  for (std::size_t number = 0; number < n_producers; ++number)
    EXPECT_EQ(transport.taken[number], issued[number].load());
  EXPECT_GT(transport.quiets, 0u);
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
