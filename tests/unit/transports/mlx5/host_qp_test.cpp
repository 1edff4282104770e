// Posting by host threads: operations, waits, and the errors of failures.
#include <gtest/gtest.h>

#include <numeric>
#include <thread>
#include <vector>

#include "src/base/error.h"
#include "tests/unit/transports/mlx5/emulated_hca_world.h"
#include "transports/mlx5/host_qp.h"

namespace shmemctl::test {
namespace {

/// Memory of a peer, an HCA that waits serve, and a queue.
struct HostWorld {
  alignas(64) std::array<std::byte, 8192> here{}, there{};
  std::shared_ptr<MappedExecutor> way = std::make_shared<MappedExecutor>();
  EmulatedHca hca{EmulatedWorld::emulated_options(way)};
  std::unique_ptr<HcaMemory> memory = hca.register_memory({here.data(), here.size(), access_all});
  JobHealth health;
  HostQp queue;

  explicit HostWorld(const QpOptions& options = EmulatedWorld::small_ring(), double timeout_s = 60)
      : queue(hca, options, health, 3, std::chrono::duration<double>(timeout_s)) {
    KeyWindow window;
    window.key = EmulatedWorld::rkey;
    window.address = address_of(there.data());
    window.size_bytes = there.size();
    window.access = access_all;
    window.mapped = there.data();
    way->add(window);
    queue.connect(queue.local());
  }
  RaddrSegment at(std::size_t offset) const {
    return {address_of(there.data() + offset), EmulatedWorld::rkey};
  }
  template <class Number>
  Number value(std::size_t offset) const {
    Number number;
    std::memcpy(&number, there.data() + offset, sizeof number);
    return number;
  }
  EmulatedHcaQp& emulated() { return static_cast<EmulatedHcaQp&>(queue.hca_queue()); }
};

QpOptions options_with(CqMode mode) {
  QpOptions options = EmulatedWorld::small_ring();
  options.completions = mode;
  return options;
}

class Mlx5HostQueue : public testing::TestWithParam<CqMode> {};
INSTANTIATE_TEST_SUITE_P(Modes, Mlx5HostQueue, testing::Values(CqMode::ring, CqMode::collapsed));

TEST_P(Mlx5HostQueue, WritesAndReads) {
  HostWorld world(options_with(GetParam()));
  std::iota(reinterpret_cast<std::uint8_t*>(world.here.data()),
            reinterpret_cast<std::uint8_t*>(world.here.data()) + 1000, std::uint8_t{0});
  for (int round = 0; round < 100; ++round) {
    const auto offset = static_cast<std::size_t>(round * 7);
    world.queue.write(world.at(offset), world.here.data(), world.memory->lkey(), 1000);
    const HostQp::Ticket ticket =
        world.queue.read(world.at(offset), world.here.data() + 4096, world.memory->lkey(), 1000,
                         {DoorbellMode::now, true, true});
    world.queue.wait(ticket);
    EXPECT_TRUE(world.queue.done(ticket));
    EXPECT_EQ(std::memcmp(world.here.data(), world.here.data() + 4096, 1000), 0);
    std::memset(world.here.data() + 4096, 0, 1000);
  }
  world.queue.quiet();
}

TEST_P(Mlx5HostQueue, InlineOfEverySize) {
  HostWorld world(options_with(GetParam()));
  std::array<std::uint8_t, HostQp::max_inline> data;
  for (std::size_t size = 0; size <= data.size(); ++size) {
    std::iota(data.begin(), data.end(), static_cast<std::uint8_t>(size));
    world.queue.write_inline(world.at(128), data.data(), size);
    const auto copy = data;
    data.fill(0); // the source is free
    world.queue.quiet();
    EXPECT_EQ(std::memcmp(world.there.data() + 128, copy.data(), size), 0) << size;
  }
  EXPECT_THROW(world.queue.write_inline(world.at(0), data.data(), data.size() + 1), Error);
}

TEST_P(Mlx5HostQueue, EveryAtomic) {
  HostWorld world(options_with(GetParam()));
  const auto check = [&](std::uint8_t size, const AtomicFields& fields, std::uint64_t old,
                         std::uint64_t expected) {
    std::memcpy(world.there.data() + 64, &old, size);
    EXPECT_EQ(world.queue.fetch(world.at(64), fields), old);
    const std::uint64_t is =
        size == 4 ? world.value<std::uint32_t>(64) : world.value<std::uint64_t>(64);
    EXPECT_EQ(is, expected);
  };
  for (const std::uint8_t size : {std::uint8_t{4}, std::uint8_t{8}}) {
    const std::uint64_t bits = all_bits(size);
    const std::uint64_t old = 0x0123456789abcdef & bits, value = 0xfedcba9876543211 & bits;
    check(size, atomic_fetch(size), old, old);
    check(size, atomic_add(size, value), old, (old + value) & bits);
    check(size, atomic_xor(size, value), old, old ^ value);
    check(size, atomic_or(size, value), old, old | value);
    check(size, atomic_and(size, value), old, old & value);
    check(size, atomic_swap(size, value), old, value);
    check(size, atomic_compare_swap(size, old, value), old, value);
    check(size, atomic_compare_swap(size, old ^ 1, value), old, old);
  }
  for (int i = 0; i < 100; ++i)
    world.queue.update(world.at(256), atomic_add(8, 3));
  world.queue.quiet();
  EXPECT_EQ(world.value<std::uint64_t>(256), 300u);
}

TEST_P(Mlx5HostQueue, DeferredDoorbellsAndFlush) {
  HostWorld world(options_with(GetParam()));
  const std::uint64_t value = 5;
  const HostQp::Ticket ticket =
      world.queue.write_inline(world.at(0), &value, 8, {DoorbellMode::later, true, false});
  for (int i = 0; i < 10; ++i)
    world.queue.progress();
  EXPECT_FALSE(world.queue.done(ticket));
  world.queue.flush();
  world.queue.wait(ticket);
  EXPECT_EQ(world.value<std::uint64_t>(0), 5u);
  // More than there is room for, without a doorbell: waiting for room rings it.
  for (int i = 0; i < 100; ++i)
    world.queue.write_inline(world.at(8), &value, 8, {DoorbellMode::later, false, false});
  world.queue.quiet();
}

TEST_P(Mlx5HostQueue, QuietOfNothing) {
  HostWorld world(options_with(GetParam()));
  world.queue.quiet();
  world.queue.wait(world.queue.write(world.at(0), nullptr, 0, 0));
  world.queue.quiet();
}

std::string message_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_FALSE(error.fix().empty());
    return error.message() + " / " + error.fix();
  }
  return "nothing was thrown";
}

TEST_P(Mlx5HostQueue, AFailureNamesDevicePortPeerAndStatus) {
  HostWorld world(options_with(GetParam()));
  const std::uint64_t value = 5;
  world.queue.write_inline({address_of(world.there.data()), 0x1234}, &value, 8);
  const std::string message = message_of([&] { world.queue.quiet(); });
  std::vector<std::string> parts = {"emulated-mlx5", "port 1", "PE 3"};
  // A collapsed completion may be the flush of what came behind the failure.
  if (GetParam() == CqMode::ring)
    parts.insert(parts.end(), {"RDMA WRITE", "remote access error"});
  for (const std::string& part : parts)
    EXPECT_NE(message.find(part), std::string::npos) << part << " in " << message;
  // It stays so.
  EXPECT_NE(message_of([&] { world.queue.quiet(); }).find("PE 3"), std::string::npos);
  EXPECT_NE(message_of([&] { world.queue.progress(); }).find("PE 3"), std::string::npos);
  EXPECT_NE(message_of([&] { world.queue.fetch(world.at(0), atomic_add(8, 1)); }).find("PE 3"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              for (int i = 0; i < 1000; ++i)
                world.queue.write_inline(world.at(0), &value, 8);
            }).find("PE 3"),
            std::string::npos);
}

TEST(Mlx5HostQueueErrors, TheCauseAsTheEmulatedHcaKnowsIt) {
  HostWorld world;
  const std::uint64_t value = 5;
  world.queue.write_inline(world.at(world.there.size() - 4), &value, 8);
  const std::string message = message_of([&] { world.queue.quiet(); });
  EXPECT_NE(message.find("outside of the memory of its key"), std::string::npos) << message;
}

TEST(Mlx5HostQueueErrors, RetriesExceeded) {
  HostWorld world;
  world.emulated().inject({3, Syndrome::retries_exceeded});
  const std::uint64_t value = 5;
  for (int i = 0; i < 5; ++i)
    world.queue.write_inline(world.at(0), &value, 8);
  const std::string message = message_of([&] { world.queue.quiet(); });
  EXPECT_NE(message.find("transport retry counter exceeded (syndrome 0x15"), std::string::npos)
      << message;
  EXPECT_NE(message.find("WQE 3"), std::string::npos) << message;
}

/// A job whose waits end with a message of its own.
class ExpiringHealth final : public JobHealth {
public:
  void give_up(const std::string& step, int peer) override {
    throw Error(ExitCode::deadline, "PE " + std::to_string(peer), step, "too late", "hurry");
  }
};

/// A QP that no thread serves, and the device's report about it.
class UnservedQueue final : public HcaQp {
public:
  UnservedQueue(std::unique_ptr<HcaQp> queue, const std::string& event)
      : queue_(std::move(queue)), event_(event) {}
  PeerInfo local() const override { return queue_->local(); }
  void connect(const PeerInfo& peer) override { queue_->connect(peer); }
  const QpView& view() const override { return queue_->view(); }
  QpCapabilities abilities() const override { return queue_->abilities(); }
  std::optional<std::string> fatal_event() override {
    return event_.empty() ? std::nullopt : std::optional(event_);
  }
  std::string detail(std::uint16_t) const override { return {}; }

private:
  std::unique_ptr<HcaQp> queue_;
  const std::string& event_;
};
class UnservedHca final : public Hca {
public:
  std::string event;
  const HcaInfo& info() const override { return hca_.info(); }
  std::unique_ptr<HcaMemory> register_memory(const MemoryRequest& request) override {
    return hca_.register_memory(request);
  }
  std::unique_ptr<HcaQp> create_queue(const QpOptions& options) override {
    return std::make_unique<UnservedQueue>(hca_.create_queue(options), event);
  }

private:
  EmulatedHca hca_{EmulatedWorld::emulated_options(std::make_shared<MappedExecutor>())};
};

TEST(Mlx5HostQueueErrors, AWaitHasADeadline) {
  UnservedHca hca;
  ExpiringHealth health;
  HostQp queue(hca, EmulatedWorld::small_ring(), health, 3, std::chrono::milliseconds(50));
  const std::uint64_t value = 5;
  EXPECT_NE(message_of([&] {
              for (int i = 0; i < 100; ++i)
                queue.write_inline({0, 0}, &value, 8);
            }).find("full send queue"),
            std::string::npos);
  HostQp other(hca, EmulatedWorld::small_ring(), health, 3, std::chrono::milliseconds(50));
  other.write_inline({0, 0}, &value, 8);
  EXPECT_NE(message_of([&] { other.quiet(); }).find("too late"), std::string::npos);
}

TEST(Mlx5HostQueueErrors, AnEventEndsAWait) {
  UnservedHca hca;
  hca.event = "completion queue error";
  JobHealth health;
  HostQp queue(hca, EmulatedWorld::small_ring(), health, 3, std::chrono::seconds(60));
  const std::uint64_t value = 5;
  queue.write_inline({0, 0}, &value, 8);
  const std::string message = message_of([&] { queue.quiet(); });
  for (const char* part : {"emulated-mlx5", "port 1", "PE 3", "completion queue error"})
    EXPECT_NE(message.find(part), std::string::npos) << part << " in " << message;
}

/// The job has failed on another PE.
class FailedHealth final : public JobHealth {
public:
  void check() const override {
    throw Error(ExitCode::unavailable, "PE 5", "run", "was killed", "look at its host");
  }
};

TEST(Mlx5HostQueueErrors, AJobThatHasFailedEndsAWait) {
  UnservedHca hca;
  FailedHealth health;
  HostQp queue(hca, EmulatedWorld::small_ring(), health, 3, std::chrono::seconds(60));
  const std::uint64_t value = 5;
  queue.write_inline({0, 0}, &value, 8);
  EXPECT_NE(message_of([&] { queue.quiet(); }).find("PE 5"), std::string::npos);
}

} // namespace
} // namespace shmemctl::test
